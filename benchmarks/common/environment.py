"""Where results come from: the GPU in use, its host, and the versions of the packages."""

import os
from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch

import gpulab
from gpulab import clocks
from gpulab.workloads import sweeps

_PACKAGES = (
    *("torch", "triton", "cupy-cuda13x", "cuda-bench", "cupti-python", "kernelmeter"),
    *("flashinfer-python", "numpy", "ipython"),
)


def gpu_in_use(*, virtual: bool) -> AbstractContextManager[object]:
    """Return the context in which the GPU is the real one or a virtual H200."""
    return gpulab.virtual_gpu("H200") if virtual else nullcontext()


def provenance() -> dict[str, Any]:
    """Return what to save beside results: the GPU in use, its host, versions and the time."""
    at = sweeps.provenance()
    return {
        "gpu": ("virtual " if at["source"] == "virtual" else "") + str(at["gpu"]),
        "l2_bytes": l2_bytes(),
        "driver": at["driver"],
        "cuda": torch.version.cuda,
        "python": at["python"],
        "gpulab": at["gpulab"],
        "cpu": at["cpu"],
        "n_cpus": os.cpu_count(),
        "taken_at": at["taken_at"],
        "clock_before_mhz": clock_mhz(),
        "versions": {name: number for name in _PACKAGES if (number := _version(name))},
    }


def l2_bytes() -> int:
    """Return the size of the L2 cache of the GPU in use."""
    size: int = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    return size


def clock_mhz() -> int | None:
    """Return the clock of the multiprocessors, or None where it cannot be read."""
    reading = clocks.try_read()
    return None if reading is None else reading.sm_mhz


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
