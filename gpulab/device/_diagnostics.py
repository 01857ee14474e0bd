"""Diagnose a machine: what it has for timing GPU work, and what replaces what is missing."""

import importlib
import importlib.metadata
import platform
from typing import Any

from gpulab.core import versions
from gpulab.device import _builds, _probe, clocks
from gpulab.device._report import DiagnosisRow, Report


def examine(*, in_use: str, obstacle: _probe.Obstacle | None, virtual: str | None) -> Report:
    """Return a report on everything that timing depends on.

    ``obstacle`` says why torch cannot use a CUDA GPU, and ``virtual`` why the virtual GPU cannot
    be used; both are None if it can.
    """
    return Report(
        (
            _python_row(),
            _torch_row(),
            _device_row(in_use, obstacle),
            _driver_row(),
            _clock_row(obstacle),
            _processes_row(obstacle),
            _profiler_row(obstacle),
            _virtual_row(virtual),
            _lab_row(),
        )
    )


def _python_row() -> DiagnosisRow:
    supported = versions.is_within(platform.python_version(), versions.PYTHON_RANGE)
    pythons = versions.span(versions.PYTHON_RANGE)
    advice = "" if supported else f"nothing; make an environment with Python {pythons}"
    return DiagnosisRow("Python", platform.python_version(), f"{pythons} are supported", advice)


def _torch_row() -> DiagnosisRow:
    reason = f"{versions.span(versions.TORCH_RANGE)} were tried"
    if not versions.torch_was_tried():
        reason += "; this one measures a CUDA GPU, and the virtual GPU if it passes its self-check"
    return DiagnosisRow("torch", versions.torch_version(), reason)


def _device_row(in_use: str, obstacle: _probe.Obstacle | None) -> DiagnosisRow:
    if obstacle is None:
        return DiagnosisRow("GPU", in_use, "torch can use a CUDA GPU")
    installed = _builds.installed_gpus() if obstacle.needs_another_build else []
    if not installed:
        return DiagnosisRow("GPU", "none", obstacle.reason, in_use)
    cure = _builds.cure(installed, torch=versions.TRIED_TORCH)
    return DiagnosisRow("GPU", "not usable", obstacle.reason, f"{in_use}. To use the GPU: {cure}")


def _driver_row() -> DiagnosisRow:
    version, state, reason = _probe.read_driver()
    if version is not None:
        return DiagnosisRow("driver", version, "read through NVML")
    lacking = "nothing; results carry no driver version"
    return DiagnosisRow("driver", state, reason, lacking)


def _clock_row(obstacle: _probe.Obstacle | None) -> DiagnosisRow:
    lacking = "nothing; results carry no clock"
    if obstacle is not None:
        return DiagnosisRow("clocks", "not readable", "there is no GPU to read", lacking)
    import torch

    try:
        clock_mhz = torch.cuda.clock_rate()
    # The report must come out on a broken machine: there it is needed most.
    except Exception as error:  # noqa: BLE001 # NVML's own errors cannot be named without it
        return DiagnosisRow("clocks", "not readable", f"NVML answers: {error}", lacking)
    return DiagnosisRow("clocks", f"{clock_mhz} MHz", "read through NVML")


def _processes_row(obstacle: _probe.Obstacle | None) -> DiagnosisRow:
    topic = "GPU shared"
    if obstacle is not None:
        return DiagnosisRow(topic, "no", "there is no GPU to share")
    lacking = "nothing; results do not say whether the GPU is shared"
    try:
        others = clocks.other_processes()
    # As for the clocks.
    except Exception as error:  # noqa: BLE001 # as above
        return DiagnosisRow(topic, "unknown", f"NVML answers: {error}", lacking)
    if others is None:
        return DiagnosisRow(topic, "unknown", "NVML lists no processes", lacking)
    if not others.number:
        return DiagnosisRow(topic, "no", "NVML lists no other process")
    cure = "choose another GPU (CUDA_VISIBLE_DEVICES), or wait until nvidia-smi lists none"
    return DiagnosisRow(topic, "yes", f"{others} may slow a measurement; {cure}")


def _profiler_row(obstacle: _probe.Obstacle | None) -> DiagnosisRow:
    if obstacle is not None:
        virtual = "the virtual GPU's own records"
        return DiagnosisRow("profiler", "not usable", "there is no GPU to trace", virtual)
    from torch import profiler

    activities: Any = profiler.supported_activities
    if profiler.ProfilerActivity.CUDA not in activities():
        return DiagnosisRow(
            "profiler", "not usable", "this torch was built without CUPTI", "CUDA events"
        )
    return DiagnosisRow("profiler", "usable", "this torch was built with CUPTI")


def _virtual_row(failure: str | None) -> DiagnosisRow:
    if failure is not None:
        cure = "" if versions.torch_was_tried() else f"; or {versions.INSTALL_TORCH}"
        return DiagnosisRow("virtual GPU", "not usable", failure, f"a CUDA GPU only{cure}")
    checked = "values, gradients, streams, graphs and more passed their self-check"
    return DiagnosisRow(
        "virtual GPU", "usable", f"{checked}; its times are computed, not measured"
    )


def _lab_row() -> DiagnosisRow:
    try:
        version = importlib.metadata.version("jupyterlab")
    except importlib.metadata.PackageNotFoundError:
        cure = "plain Python; or pip install jupyterlab"
        return DiagnosisRow("JupyterLab", "not installed", "the lessons need it", cure)
    return DiagnosisRow("JupyterLab", version, "the lessons run in it")
