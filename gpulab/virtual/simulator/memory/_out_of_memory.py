"""The error for a device without enough memory, with PyTorch's text."""

from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator.memory._pools import ReservedMemory

# Above each size PyTorch writes this unit, with two decimals.
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


class OutOfDeviceMemoryError(VirtualGpuError):
    """The virtual GPU has too little memory for a request; the text is PyTorch's."""


def oom_message(
    device_index: int,
    wanted_bytes: int,
    reserve: ReservedMemory,
    allocated_bytes: int,
    private_bytes: int,
) -> str:
    """Return the text of the ``torch.OutOfMemoryError`` that PyTorch raises.

    ``private_bytes`` is free memory in private pools. The wording is that of
    ``c10/cuda/CUDACachingAllocator.cpp``, with its doubled spaces. Like PyTorch, it counts the
    free memory of private pools as allocated.
    """
    allocated_bytes += private_bytes
    allowed = private = ""
    if reserve.allowed_bytes is not None:
        allowed = f"{_size(reserve.allowed_bytes)} allowed; "
    if private_bytes:
        private = f"with {_size(private_bytes)} allocated in private pools (e.g., CUDA Graphs), "
    return (
        f"CUDA out of memory. Tried to allocate {_size(wanted_bytes)}. "
        f"GPU {device_index} has a total capacity of {_size(reserve.capacity_bytes)} "
        f"of which {_size(reserve.free_bytes)} is free. "
        f"Including non-PyTorch memory, this process has {_size(reserve.used_bytes)} "
        "memory in use. "
        f"{allowed}Of the allocated memory {_size(allocated_bytes)} is allocated by PyTorch, "
        f"{private}and {_size(reserve.held_bytes - allocated_bytes)} is reserved by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  "
        "See documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/"
        "cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def _size(size_bytes: int) -> str:
    # PyTorch compares in this way: exactly 1 GiB is written as 1024.00 MiB.
    for unit_bytes, unit in _UNITS:
        if size_bytes > unit_bytes:
            return f"{size_bytes / unit_bytes:.2f} {unit}"
    return f"{size_bytes} bytes"
