"""Where and with what results are taken: the GPU in use, its host and the versions."""

import os
import platform
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

import gpulab
from gpulab.virtual import virtual_gpu

_PACKAGES = (
    *("torch", "triton", "cupy-cuda13x", "cuda-bench", "cupti-python", "kernelmeter"),
    *("flashinfer-python", "numpy", "ipython"),
)


def gpu_in_use(*, virtual: bool) -> AbstractContextManager[object]:
    """Return the context in which the GPU is the real one or a virtual H200."""
    return virtual_gpu("H200") if virtual else nullcontext()


def provenance(*, virtual: bool) -> dict[str, Any]:
    """Return what is to be kept with results taken on the GPU in use, now."""
    at = torch.cuda.current_device()
    return {
        "gpu": ("virtual " if virtual else "") + torch.cuda.get_device_name(),
        "l2_bytes": torch.cuda.get_device_properties(at).L2_cache_size,
        "driver": _driver(),
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "gpulab": gpulab.__version__,
        "cpu": _cpu(),
        "n_cpus": os.cpu_count(),
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "clock_before_mhz": clock_mhz(virtual=virtual),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def clock_mhz(*, virtual: bool) -> int | None:
    """Return the clock of the multiprocessors, or None where it cannot be read."""
    if virtual:
        return None
    try:
        clock: int = torch.cuda.clock_rate()
    except Exception:  # noqa: BLE001 # without NVML there is no clock to read
        return None
    return clock


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _driver() -> str:
    path = Path("/proc/driver/nvidia/version")
    words = path.read_text().split() if path.exists() else []
    return next((word for word in words if word[0].isdigit() and word.count(".") > 1), "")


def _cpu() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
