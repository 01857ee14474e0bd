"""What this machine has for timing GPU work, and what takes the place of what it lacks."""

import ctypes
import importlib
import importlib.metadata
import os
import platform
import sys
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from html import escape
from typing import Any

from gpulab.errors import UnsupportedVersionError

PYTHON_RANGE = ((3, 11), (3, 14))
TORCH_RANGE = ((2, 11), (2, 14))
DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why torch cannot use a CUDA GPU here, and what would change that."""

    reason: str
    cure: str


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that timing depends on.

    Attributes
    ----------
    topic, state
        What was looked at, and what was found.
    reason
        Why it is so.
    instead
        What is used in its place; empty where nothing is missing.
    """

    topic: str
    state: str
    reason: str
    instead: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found on this machine, one row a topic. It says what can be timed, not how well."""

    rows: tuple[Row, ...]

    def __str__(self) -> str:
        widths = [max(len(getattr(row, name)) for row in self.rows) for name in ("topic", "state")]
        return "\n".join(
            f"{row.topic:{widths[0]}}  {row.state:{widths[1]}}  {_explained(row)}"
            for row in self.rows
        )

    def _repr_html_(self) -> str:
        # Jupyter's own style sets tables to the right, which suits numbers only.
        left = 'style="text-align: left"'
        head = "".join(f'<th scope="col" {left}>{name}</th>' for name in ("Topic", "State", "Why"))
        body = "".join(
            f'<tr><th scope="row" {left}>{escape(row.topic)}</th>'
            f"<td {left}>{escape(row.state)}</td><td {left}>{escape(_explained(row))}</td></tr>"
            for row in self.rows
        )
        return (
            "<table><caption>What this machine has for timing GPU work</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the rows as plain data, ready for JSON."""
        return {"schema": "gpulab.doctor/1", "rows": [asdict(row) for row in self.rows]}


def _explained(row: Row) -> str:
    return f"{row.reason}; used instead: {row.instead}" if row.instead else row.reason


def check_versions() -> None:
    """Refuse a Python or a torch outside the supported range.

    Raises
    ------
    UnsupportedVersionError
        If one of the two is too old or too new; the message says what to install.
    """
    if not _within(platform.python_version(), PYTHON_RANGE):
        raise UnsupportedVersionError(
            f"Python {platform.python_version()} is not supported; "
            "make an environment with Python 3.11, 3.12 or 3.13"
        )
    if not _within(torch_version(), TORCH_RANGE):
        raise UnsupportedVersionError(
            f"torch {torch_version()} is not supported; "
            'install a supported one: pip install "torch>=2.11,<2.14"'
        )


def _within(version: str, bounds: tuple[tuple[int, int], tuple[int, int]]) -> bool:
    major, minor = version.split(".")[:2]
    return bounds[0] <= (int(major), int(minor)) < bounds[1]


def torch_version() -> str:
    """Return the version of the torch that is imported, e.g. ``"2.13.0+cpu"``."""
    import torch

    return str(torch.__version__)


def cuda_version() -> str | None:
    """Return the version of CUDA that torch was built for, or None for a CPU build."""
    import torch

    return torch.version.cuda


def cuda_name() -> str:
    """Return the name of the current CUDA GPU, as the driver reports it."""
    import torch

    return torch.cuda.get_device_name()


def cuda_obstacle() -> Obstacle | None:
    """Return why torch cannot use a CUDA GPU, or None where it can.

    Ask outside the virtual GPU: inside it, torch sees a GPU by design.
    """
    import torch

    release = torch_version().split("+", maxsplit=1)[0]
    built_for = cuda_version()
    if built_for is None:
        return Obstacle(
            f"torch {release} is a CPU build",
            "install a build of torch for CUDA, or use the virtual GPU: gpulab.use()",
        )
    with warnings.catch_warnings():
        # torch warns here of what the obstacles below say with their cure
        warnings.simplefilter("ignore")
        if torch.cuda.is_available():
            return None
    return _driver_obstacle(f"torch {release} is built for CUDA {built_for}", built_for)


def _driver_obstacle(build: str, built_for: str) -> Obstacle:
    supported = driver_cuda_version()
    if supported is None:
        return Obstacle(
            f"{build}, but no NVIDIA driver was found", "install the NVIDIA driver for your GPU"
        )
    # within one major version of CUDA, torch also runs on an older driver
    if supported[0] < int(built_for.split(".", maxsplit=1)[0]):
        return Obstacle(
            f"{build}, but the NVIDIA driver supports CUDA {supported[0]}.{supported[1]} at most",
            "update the NVIDIA driver, or install a torch built for an older CUDA",
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return Obstacle(
            f"{build}, but CUDA_VISIBLE_DEVICES={visible!r} shows it no GPU",
            "unset CUDA_VISIBLE_DEVICES and start Python again",
        )
    return Obstacle(
        f"{build} and the NVIDIA driver is there, but no GPU is visible",
        "check that nvidia-smi lists a GPU",
    )


def driver_cuda_version() -> tuple[int, int] | None:
    """Return the newest CUDA that the installed driver supports, or None without a driver."""
    try:
        library = ctypes.CDLL(DRIVER_LIBRARY)
    except OSError:
        return None
    version = ctypes.c_int(0)
    # needs no initialised driver, so it answers where no GPU does; 12040 means 12.4
    library.cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


@cache
def driver_version() -> str | None:
    """Return the version of the NVIDIA driver, e.g. ``"580.159.03"``, or None if unreadable."""
    found = _read_driver_version()
    return found.state if not found.instead else None


def _read_driver_version() -> Row:
    lacking = "nothing; results carry no driver version"
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return Row("driver", "unknown", "nvidia-ml-py is not installed", lacking)
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return Row("driver", "none found", f"NVML answers: {error}", lacking)
    try:
        return Row("driver", str(nvml.nvmlSystemGetDriverVersion()), "read through NVML")
    finally:
        nvml.nvmlShutdown()


def examine(*, in_use: str, obstacle: Obstacle | None, virtual: str | None) -> Report:
    """Look at everything that timing depends on.

    Parameters
    ----------
    in_use
        The GPU that measurements take now, in words.
    obstacle
        What :func:`cuda_obstacle` found.
    virtual
        Why the virtual GPU cannot be used, or None where it can.
    """
    return Report(
        (
            _python_row(),
            _torch_row(),
            _device_row(in_use, obstacle),
            _read_driver_version(),
            _clock_row(obstacle),
            _profiler_row(obstacle),
            _virtual_row(virtual),
            _lab_row(),
        )
    )


def _python_row() -> Row:
    supported = _within(platform.python_version(), PYTHON_RANGE)
    advice = "" if supported else "nothing; make an environment with Python 3.11, 3.12 or 3.13"
    return Row("Python", platform.python_version(), "3.11 to 3.13 are supported", advice)


def _torch_row() -> Row:
    supported = _within(torch_version(), TORCH_RANGE)
    advice = "" if supported else 'nothing; pip install "torch>=2.11,<2.14"'
    return Row("torch", torch_version(), "2.11 to 2.13 are supported", advice)


def _device_row(in_use: str, obstacle: Obstacle | None) -> Row:
    if obstacle is None:
        return Row("GPU", in_use, "torch can use a CUDA GPU")
    return Row("GPU", "none", obstacle.reason, in_use)


def _clock_row(obstacle: Obstacle | None) -> Row:
    lacking = "nothing; results carry no clock"
    if obstacle is not None:
        return Row("clocks", "not readable", "there is no GPU to read", lacking)
    import torch

    try:
        clock_mhz = torch.cuda.clock_rate()
    except Exception as error:  # noqa: BLE001 # NVML's own errors cannot be named without it
        return Row("clocks", "not readable", f"NVML answers: {error}", lacking)
    return Row("clocks", f"{clock_mhz} MHz", "read through NVML")


def _profiler_row(obstacle: Obstacle | None) -> Row:
    instead = "CUDA events"
    if obstacle is not None:
        return Row("profiler", "not usable", "there is no GPU to trace", instead)
    from torch import profiler

    activities: Any = profiler.supported_activities
    if profiler.ProfilerActivity.CUDA not in activities():
        return Row("profiler", "not usable", "this torch was built without CUPTI", instead)
    return Row("profiler", "usable", "this torch was built with CUPTI")


def _virtual_row(failure: str | None) -> Row:
    if failure is not None:
        cure = "" if _within(torch_version(), TORCH_RANGE) else ", or a torch that is supported"
        return Row("virtual GPU", "not usable", failure, f"a CUDA GPU only{cure}")
    checked = "values, gradients, streams, graphs and more passed their self-check"
    return Row("virtual GPU", "usable", f"{checked}; its times are computed, not measured")


def _lab_row() -> Row:
    try:
        version = importlib.metadata.version("jupyterlab")
    except importlib.metadata.PackageNotFoundError:
        cure = "plain Python; or pip install jupyterlab"
        return Row("JupyterLab", "not installed", "the lessons need it", cure)
    return Row("JupyterLab", version, "the lessons run in it")
