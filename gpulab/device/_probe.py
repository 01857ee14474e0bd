"""Find out what this machine has: versions, the driver, and why CUDA cannot be used."""

import ctypes
import importlib
import importlib.metadata
import os
import re
import sys
import warnings
from dataclasses import dataclass
from functools import cache

from gpulab.core.versions import torch_version

_ARCHITECTURE = re.compile(r"(?P<kind>sm|compute)_(?P<major>\d+)(?P<minor>\d)[a-z]?")
DRIVER_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why torch cannot use a CUDA GPU here, and what would change that, in clauses."""

    reason: str
    cure: str
    needs_another_build: bool = False


def cuda_version() -> str | None:
    """Return the version of CUDA that torch was built for, or None for a CPU build."""
    import torch

    return torch.version.cuda


def cuda_name() -> str:
    """Return the name of the current CUDA GPU, as the driver reports it."""
    import torch

    return torch.cuda.get_device_name()


def cuda_obstacle() -> Obstacle | None:
    """Return why torch cannot use a CUDA GPU; None if it can.

    Call it outside a virtual GPU: inside one, torch sees a GPU by design.
    """
    import torch

    release = torch_version().split("+", maxsplit=1)[0]
    built_for = cuda_version()
    if built_for is None:
        return Obstacle(
            f"torch {release} is a CPU build",
            "install a build of torch for CUDA, or use the virtual GPU: gpulab.use()",
            needs_another_build=True,
        )
    with warnings.catch_warnings():
        # torch warns about the same problems; the messages below also say what to do.
        warnings.simplefilter("ignore")
        if torch.cuda.is_available():
            return _architecture_obstacle(release)
    return _driver_obstacle(f"torch {release} is built for CUDA {built_for}", built_for)


def _architecture_obstacle(release: str) -> Obstacle | None:
    """Return that torch has no kernels for the GPU, which else the first kernel would say."""
    capability, architectures = cuda_capability(), cuda_architectures()
    names = [_ARCHITECTURE.fullmatch(name) for name in architectures]
    built_for = [(int(name["major"]), int(name["minor"]), name["kind"]) for name in names if name]
    # Compiled kernels run within one major version, and PTX on everything newer.
    if not built_for or any(
        (major, minor) <= capability and (major == capability[0] or kind == "compute")
        for major, minor, kind in built_for
    ):
        return None
    return Obstacle(
        f"torch {release} has no kernels for {cuda_name()} (sm_{capability[0]}{capability[1]}); "
        f"it has {', '.join(architectures)}",
        "install a build of torch that has them: `gpulab doctor` prints the line",
        needs_another_build=True,
    )


def cuda_capability() -> tuple[int, int]:
    """Return the compute capability of the current CUDA GPU, e.g. (9, 0)."""
    import torch

    return torch.cuda.get_device_capability()


def cuda_architectures() -> list[str]:
    """Return what this torch has kernels for, e.g. ``["sm_80", "sm_90"]``."""
    import torch

    return torch.cuda.get_arch_list()


def _driver_obstacle(build: str, built_for: str) -> Obstacle:
    supported = driver_cuda_version()
    if supported is None:
        return Obstacle(
            f"{build}, but no NVIDIA driver was found", "install the NVIDIA driver for your GPU"
        )
    # Within one major version of CUDA, torch also runs on an older driver.
    if supported[0] < int(built_for.split(".", maxsplit=1)[0]):
        return Obstacle(
            f"{build}, but the NVIDIA driver supports CUDA {supported[0]}.{supported[1]} at most",
            "update the NVIDIA driver, or install a torch built for an older CUDA",
            needs_another_build=True,
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
    # This call needs no initialised driver, so it works without a GPU. 12040 means 12.4.
    library.cuDriverGetVersion(ctypes.byref(version))
    return version.value // 1000, version.value % 1000 // 10


@cache
def driver_version() -> str | None:
    """Return the version of the NVIDIA driver, e.g. ``"580.159.03"``, or None if unreadable."""
    return read_driver()[0]


def read_driver() -> tuple[str | None, str, str]:
    """Return the driver's version, or None with its state in a word or two, and the reason."""
    try:
        nvml = importlib.import_module("pynvml")
    except ModuleNotFoundError:
        return None, "unknown", "nvidia-ml-py is not installed"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return None, "none found", f"NVML answers: {error}"
    try:
        return str(nvml.nvmlSystemGetDriverVersion()), "", ""
    finally:
        # NVML counts its openings, so other users of it in this process are not disturbed.
        nvml.nvmlShutdown()
