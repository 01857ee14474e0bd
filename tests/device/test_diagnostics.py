"""The report on a machine gives a reason and a cure for each gap, and no guesses."""

import ctypes
import platform
import re
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch

from gpulab.core import versions
from gpulab.core.errors import UnsupportedVersionError
from gpulab.device import _builds, _diagnostics, _probe, clocks
from gpulab.device._builds import InstalledGpu
from gpulab.device._probe import Obstacle
from gpulab.device._report import DiagnosisRow, Report

ROWS = Report(
    (
        DiagnosisRow("torch", "2.13.0", "supported"),
        DiagnosisRow("GPU", "none", "a <CPU> build", "the virtual NVIDIA H200"),
    )
)


def test_report_is_aligned_text() -> None:
    """The text has one aligned line per topic, with what is used instead."""
    assert str(ROWS) == (
        "torch  2.13.0  supported\n"
        "GPU    none    a <CPU> build; used instead: the virtual NVIDIA H200"
    )


def test_report_as_plain_data() -> None:
    """The JSON names its schema and has every field of every row."""
    assert ROWS.to_dict() == {
        "schema": "gpulab.doctor/1",
        "rows": [
            {"topic": "torch", "state": "2.13.0", "reason": "supported", "instead": ""},
            {
                "topic": "GPU",
                "state": "none",
                "reason": "a <CPU> build",
                "instead": "the virtual NVIDIA H200",
            },
        ],
    }


@pytest.mark.parametrize("version", ["3.10.14", "3.15.0", "2.7.18"])
def test_unsupported_python(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unsupported Python is refused with the supported ones."""
    monkeypatch.setattr(platform, "python_version", lambda: version)
    with pytest.raises(UnsupportedVersionError) as error:
        versions.check_python()
    assert str(error.value) == (
        f"Python {version} is not supported; make an environment with Python 3.11 to 3.14"
    )


@pytest.mark.parametrize("version", ["2.10.1", "2.16.0+cu132", "3.0.0"])
def test_an_untried_torch_is_named_once(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torch outside the range that was tried gives one warning, which names both."""
    monkeypatch.setattr(versions, "torch_version", lambda: version)
    both = rf"tried with torch 2\.11 to 2\.15, and this is torch {re.escape(version)}:"
    with pytest.warns(UserWarning, match=both):
        versions.warn_of_untried_torch()
    versions.warn_of_untried_torch()  # a second warning would be an error


@pytest.fixture(autouse=True)
def _fresh_warning() -> Iterator[None]:
    """Warn anew in each test, and in none after the last."""
    versions.warn_of_untried_torch.cache_clear()
    yield
    versions.warn_of_untried_torch.cache_clear()


def _machine(
    monkeypatch: pytest.MonkeyPatch, *, driver: tuple[int, int] | None, visible: str | None = None
) -> None:
    """Make torch look like a CUDA build on a machine where it sees no GPU."""
    monkeypatch.setattr(_probe, "torch_version", lambda: "2.13.0+cu130")
    monkeypatch.setattr(_probe, "cuda_version", lambda: "13.0")
    monkeypatch.setattr(_probe, "driver_cuda_version", lambda: driver)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)


BUILT = "torch 2.13.0 is built for CUDA 13.0"


@pytest.mark.parametrize(
    ("driver", "visible", "reason", "cure"),
    [
        (None, None, ", but no NVIDIA driver was found", "install the NVIDIA driver"),
        ((12, 4), None, ", but the NVIDIA driver supports CUDA 12.4 at most", "update the NVIDIA"),
        ((13, 0), "", ", but CUDA_VISIBLE_DEVICES='' shows it no GPU", "unset CUDA_VISIBLE_DEV"),
        ((13, 1), None, " and the NVIDIA driver is there, but no GPU is visible", "check that"),
    ],
)
def test_each_obstacle_has_its_reason_and_cure(
    monkeypatch: pytest.MonkeyPatch,
    driver: tuple[int, int] | None,
    visible: str | None,
    reason: str,
    cure: str,
) -> None:
    """Without a usable GPU the reason is the one thing that is missing, with what to do."""
    _machine(monkeypatch, driver=driver, visible=visible)
    obstacle = _probe.cuda_obstacle()
    assert obstacle is not None
    assert obstacle.reason == BUILT + reason
    assert obstacle.cure.startswith(cure)
    assert obstacle.needs_another_build == (driver == (12, 4))
    monkeypatch.setattr(_probe, "cuda_version", lambda: None)
    obstacle = _probe.cuda_obstacle()
    assert obstacle is not None
    assert (obstacle.reason, obstacle.needs_another_build) == (
        *("torch 2.13.0 is a CPU build", True),
    )


def _gpu(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    capability: tuple[int, int],
    architectures: list[str],
) -> None:
    """Make torch see a GPU, and look as if it were built for these architectures."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(_probe, "cuda_name", lambda: name)
    monkeypatch.setattr(_probe, "cuda_capability", lambda: capability)
    monkeypatch.setattr(_probe, "cuda_architectures", lambda: architectures)


CUDA_13 = ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]
CUDA_12_6 = ["sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"]


@pytest.mark.parametrize(
    ("capability", "architectures", "usable"),
    [
        ((7, 0), CUDA_13, False),
        ((7, 0), CUDA_12_6, True),
        ((6, 1), CUDA_12_6, True),
        *(((major, minor), CUDA_13, True) for major, minor in ((7, 5), (8, 0), (8, 9), (9, 0))),
        ((12, 0), CUDA_13, True),
        ((12, 0), CUDA_12_6, False),
        ((12, 0), [*CUDA_12_6, "compute_90"], True),
        ((9, 0), ["sm_90a"], True),
        ((7, 2), ["sm_75"], False),
        ((7, 0), [], True),
    ],
)
def test_a_gpu_needs_kernels(
    capability: tuple[int, int],
    architectures: list[str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    usable: bool,
) -> None:
    """A GPU is usable with kernels for its major version, or with PTX that is not newer."""
    _machine(monkeypatch, driver=(13, 0))
    _gpu(monkeypatch, "a GPU", capability, architectures)
    assert (_probe.cuda_obstacle() is None) == usable


def test_a_gpu_without_kernels_is_named_with_the_line_to_paste(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A V100 with a torch for CUDA 13 is not usable, and doctor prints the line that cures it."""
    _machine(monkeypatch, driver=(13, 0))
    _gpu(monkeypatch, "Tesla V100-SXM2-16GB", (7, 0), ["sm_75", "sm_80"])
    v100 = [InstalledGpu("580.65.06", (7, 0))]
    monkeypatch.setattr(_builds, "installed_gpus", lambda: v100)
    obstacle = _probe.cuda_obstacle()
    assert _rows(obstacle, "the virtual NVIDIA H200")["GPU"] == DiagnosisRow(
        "GPU",
        "not usable",
        "torch 2.13.0 has no kernels for Tesla V100-SXM2-16GB (sm_70); it has sm_75, sm_80",
        "the virtual NVIDIA H200. To use the GPU: pip install --force-reinstall "
        '"torch>=2.11,<2.16" --index-url https://download.pytorch.org/whl/cu126',
    )


def test_driver_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's version is one number: 1000 times major plus 10 times minor."""

    def answer(pointer: object) -> None:
        pointer._obj.value = 12110  # type: ignore[attr-defined] # what byref() returns

    library = SimpleNamespace(cuDriverGetVersion=answer)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    assert _probe.driver_cuda_version() == (12, 11)


@pytest.fixture(autouse=True)
def _fresh_driver_version() -> Iterator[None]:
    """Clear the cached driver version, which the tests fake."""
    yield
    _probe.driver_version.cache_clear()


def _nvml(init: Callable[[], None]) -> SimpleNamespace:
    return SimpleNamespace(
        NVMLError=RuntimeError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: "580.159.03",
    )


def _refuse() -> None:
    raise RuntimeError("Driver Not Loaded")


@pytest.mark.parametrize(
    ("nvml", "state", "reason"),
    [
        (None, "unknown", "nvidia-ml-py is not installed"),
        (_nvml(_refuse), "none found", "NVML answers: Driver Not Loaded"),
    ],
)
def test_unreadable_driver(
    nvml: object, state: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without NVML or its answer, results have no driver version."""
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type] # None: not there
    lacking = "nothing; results carry no driver version"
    assert _rows()["driver"] == DiagnosisRow("driver", state, reason, lacking)
    _probe.driver_version.cache_clear()
    assert _probe.driver_version() is None


def test_driver_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver's version is the one that NVML returns."""
    monkeypatch.setitem(sys.modules, "pynvml", _nvml(lambda: None))
    assert _rows()["driver"] == DiagnosisRow("driver", "580.159.03", "read through NVML")
    _probe.driver_version.cache_clear()
    assert _probe.driver_version() == "580.159.03"


def _rows(
    obstacle: Obstacle | None = None, in_use: str = "NVIDIA H200", virtual: str | None = None
) -> dict[str, DiagnosisRow]:
    report = _diagnostics.examine(in_use=in_use, obstacle=obstacle, virtual=virtual)
    return {row.topic: row for row in report.rows}


def test_rows_without_a_gpu() -> None:
    """Each missing part has its reason and what is used instead."""
    rows = _rows(Obstacle("no driver", "install it"), "the virtual NVIDIA H200")
    assert list(rows) == [
        *("Python", "torch", "GPU", "driver", "clocks"),
        *("GPU shared", "profiler", "virtual GPU", "JupyterLab"),
    ]
    assert rows["GPU"] == DiagnosisRow("GPU", "none", "no driver", "the virtual NVIDIA H200")
    assert rows["clocks"] == DiagnosisRow(
        *("clocks", "not readable", "there is no GPU to read", "nothing; results carry no clock")
    )
    assert rows["profiler"] == DiagnosisRow(
        *("profiler", "not usable", "there is no GPU to trace", "the virtual GPU's own records")
    )


def test_rows_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a GPU the clock is read, and with CUPTI the profiler is usable."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    monkeypatch.setattr(torch.cuda, "clock_rate", lambda: 1980)
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: activities)
    rows = _rows()
    assert rows["GPU"] == DiagnosisRow("GPU", "NVIDIA H200", "torch can use a CUDA GPU")
    assert rows["clocks"] == DiagnosisRow("clocks", "1980 MHz", "read through NVML")
    assert rows["profiler"] == DiagnosisRow(
        "profiler", "usable", "this torch was built with CUPTI"
    )


def test_rows_without_clock_and_profiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable clock and a missing CUPTI are reported and do not fail."""
    monkeypatch.setattr(torch.cuda, "clock_rate", _refuse)
    monkeypatch.setattr(torch.profiler, "supported_activities", list)
    rows = _rows()
    assert rows["clocks"] == DiagnosisRow(
        "clocks",
        "not readable",
        "NVML answers: Driver Not Loaded",
        "nothing; results carry no clock",
    )
    assert rows["profiler"] == DiagnosisRow(
        "profiler", "not usable", "this torch was built without CUPTI", "CUDA events"
    )


def test_versions_outside_the_range_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report lists versions that were not tried instead of refusing them."""
    monkeypatch.setattr(versions, "torch_version", lambda: "2.4.0")
    monkeypatch.setattr(platform, "python_version", lambda: "3.15.0")
    rows = _rows()
    assert rows["torch"] == DiagnosisRow(
        "torch",
        "2.4.0",
        "2.11 to 2.15 were tried; this one measures a CUDA GPU, and the virtual GPU if it passes "
        "its self-check",
    )
    assert rows["Python"].instead == "nothing; make an environment with Python 3.11 to 3.14"


@pytest.mark.parametrize(
    ("others", "state", "reason"),
    [
        (None, "unknown", "NVML lists no processes"),
        (clocks.OtherProcesses(0, 0), "no", "NVML lists no other process"),
        (
            clocks.OtherProcesses(1, 2**30),
            "yes",
            "1 other process with 1.00 GiB of its memory may slow a measurement; choose",
        ),
    ],
)
def test_a_shared_gpu_has_a_row(
    others: clocks.OtherProcesses | None, state: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The report says how many processes have the GPU open, and how much memory they use."""
    monkeypatch.setattr(clocks, "other_processes", lambda: others)
    row = _diagnostics._processes_row(None)
    assert row.state == state
    assert row.reason.startswith(reason)
