"""The machine that a sweep runs on: its provenance, its CPU's name and its free memory.

psutil knows the free memory of every system, but neither the limit of a container nor the CPU's
name. py-cpuinfo knows the name; it starts processes and takes more than a second to find it.
"""

import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # psutil ships no types
import torch

from gpulab import clocks, device
from gpulab._version import __version__
from gpulab.device import outside

_LIMITS = ("max", "current")
_CPU = Path("/proc/cpuinfo")
_GROUP = Path("/sys/fs/cgroup")


def provenance() -> dict[str, object]:
    """Return the provenance of the points that this process measures: GPU, CPU and versions."""
    with device.active() as gpu:
        at = device.conditions()
        reading = clocks.try_read()
    with outside():
        n_threads = torch.get_num_threads()
    return {
        "gpu": gpu.name,
        "source": gpu.source,
        "driver": at.driver_version,
        "torch": at.torch_version,
        "cuda": at.cuda_version,
        "cpu": cpu_name(),
        "n_threads": n_threads,
        "python": at.python_version,
        "gpulab": __version__,
        "taken_at": at.taken_at,
        "clocks": None if reading is None else _clocks(reading),
    }


def _clocks(reading: clocks.Reading) -> dict[str, object]:
    return {
        "sm_mhz": reading.sm_mhz,
        "memory_mhz": reading.memory_mhz,
        "max_sm_mhz": reading.max_sm_mhz,
        "power_limit_w": reading.power_limit_w,
    }


def utc_now() -> str:
    """Return the time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def cpu_name() -> str:
    """Return the CPU's name as the system reports it, or its architecture."""
    lines = _CPU.read_text("utf-8").splitlines() if _CPU.exists() else []
    for line in lines:  # of Linux; other systems do not have the file
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def free_host_bytes() -> int:
    """Return the memory that the host can still give; the limit of a container counts."""
    available = int(psutil.virtual_memory().available)
    in_group = _group_bytes()
    return available if in_group is None else min(available, in_group)


def _group_bytes() -> int | None:
    """Return what the control group leaves of its limit; None without a limit."""
    try:
        limit, used = (int((_GROUP / f"memory.{kind}").read_text("ascii")) for kind in _LIMITS)
        rows = (line.split() for line in (_GROUP / "memory.stat").read_text("ascii").splitlines())
        # Cached pages of files count as used, but the system drops them when it needs memory.
        return limit - used + int(dict(rows)["inactive_file"])
    except (OSError, ValueError, KeyError):  # no limit: the file is missing, or says "max"
        return None


def free_gpu_bytes() -> int:
    """Return the memory that the current GPU can still give to PyTorch."""
    free, _total = torch.cuda.mem_get_info()
    return free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
