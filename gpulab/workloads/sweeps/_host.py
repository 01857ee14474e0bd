"""Facts about the machine of a sweep: its provenance, the name of its CPU and its free memory.

psutil reports the free memory of every system, but neither the limit of a container nor the CPU's
name. py-cpuinfo reports the name, but it starts processes and takes more than a second.
"""

import platform
from datetime import UTC, datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # psutil ships no types
import torch

from gpulab import __version__, device
from gpulab.device import clocks, outside

_LIMITS = ("max", "current")
_CPU = Path("/proc/cpuinfo")
_GROUP = Path("/sys/fs/cgroup")


def provenance() -> dict[str, object]:
    """Return where points measured by this process come from: GPU, CPU, versions and clocks."""
    with device.active() as gpu:
        at = device.conditions()
        # With the GPU still entered, because a virtual one has clocks of its own.
        reading = clocks.try_read()
    with outside():
        # Outside a virtual GPU, which sets torch to one thread while it is entered.
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
    """Return the current time in UTC, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def cpu_name() -> str:
    """Return the CPU's name as the system reports it, or its architecture."""
    lines = _CPU.read_text("utf-8").splitlines() if _CPU.exists() else []
    for line in lines:  # only Linux has this file
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def free_host_bytes() -> int:
    """Return the free memory of the host, or what a container's limit leaves, if that is less."""
    available = int(psutil.virtual_memory().available)
    in_group = _group_bytes()
    return available if in_group is None else min(available, in_group)


def _group_bytes() -> int | None:
    """Return the memory that the control group may still use; None without a limit."""
    try:
        limit, used = (int((_GROUP / f"memory.{kind}").read_text("ascii")) for kind in _LIMITS)
        rows = (line.split() for line in (_GROUP / "memory.stat").read_text("ascii").splitlines())
        # Cached pages of files count as used, but the system drops them when it needs memory.
        return limit - used + int(dict(rows)["inactive_file"])
    except (OSError, ValueError, KeyError):  # no limit: the file is missing, or says "max"
        return None


def free_gpu_bytes() -> int:
    """Return the memory of the current GPU that PyTorch can still use."""
    free, _total = torch.cuda.mem_get_info()
    # The driver counts blocks in PyTorch's cache as used, but PyTorch can use them again.
    return free + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
