"""Other processes that use the GPU, as NVML lists them: how many, and their memory."""

import os
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.core.errors import ClocksUnavailableError
from gpulab.core.requirements import COUNT_OR_ZERO
from gpulab.core.units import counted, format_bytes
from gpulab.device.clocks import _nvml as driver

_NOUN = "other process"


@dataclass(frozen=True, slots=True)
class OtherProcesses:
    """Processes other than this one that have opened the GPU for computing.

    Attributes
    ----------
    number
        How many there are.
    size_bytes
        The memory that they use together; None if the driver does not say, as in containers of
        some systems and for parts of a GPU (MIG).

    Examples
    --------
    >>> print(OtherProcesses(2, 3 * 2**30))
    2 other processes with 3.00 GiB of its memory
    >>> print(OtherProcesses(1, None))
    1 other process
    """

    number: int
    size_bytes: int | None

    def __str__(self) -> str:
        who = counted(self.number, _NOUN) if self.number == 1 else f"{self.number:,} {_NOUN}es"
        memory = "" if self.size_bytes is None else f" with {format_bytes(self.size_bytes)}"
        return who + (f"{memory} of its memory" if memory else "")


def other_processes(device: int | None = None) -> OtherProcesses | None:
    """Return the other processes on the GPU; None if the driver does not say.

    A virtual GPU has none.

    Parameters
    ----------
    device
        PyTorch's index; None is the current device.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     other_processes().number
    0
    """
    COUNT_OR_ZERO.or_none.check(device=device)
    try:
        gpu = driver.gpu_of(device)
    except ClocksUnavailableError:
        return None
    if gpu.is_virtual:
        return OtherProcesses(0, 0)
    try:
        running = list(gpu.nvml.nvmlDeviceGetComputeRunningProcesses(gpu.handle))
    except (AttributeError, gpu.nvml.NVMLError):
        return None
    others = _without_this_one(running, device)
    sizes = [process.usedGpuMemory for process in others]
    total = None if None in sizes else sum(sizes)
    return OtherProcesses(len(others), total)


def _without_this_one(running: list[Any], device: int | None) -> list[Any]:
    others = [process for process in running if process.pid != os.getpid()]
    is_here = bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]  # torch's gap
    if len(others) < len(running) or not is_here or not others:
        return others
    # In a container NVML may give the numbers that processes have outside, so none is ours. The
    # one whose memory is nearest above what PyTorch has reserved is left out.
    reserved = torch.cuda.memory_reserved(device)
    return sorted(others, key=lambda process: _distance(process.usedGpuMemory, reserved))[1:]


def _distance(used: int | None, reserved: int) -> float:
    return float("inf") if used is None or used < reserved else used - reserved
