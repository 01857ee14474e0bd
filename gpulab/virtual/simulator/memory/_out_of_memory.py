"""The error for a device without enough memory, with PyTorch's text."""

from dataclasses import dataclass

from gpulab.core.errors import VirtualGpuError

# Above each size PyTorch writes this unit, with two decimals.
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


@dataclass(frozen=True, slots=True)
class OutOfMemoryFigures:
    """The figures of a failed request, in bytes.

    Attributes
    ----------
    device_index
        Number of the GPU.
    wanted_bytes
        The size of the segment that the request needed.
    capacity_bytes, free_bytes
        Memory of the device, and the free part of it.
    used_bytes
        Memory of the process: the allocator's segments and the CUDA context.
    allowed_bytes
        The limit that the program has set for the process, or None.
    allocated_bytes, reserved_bytes
        Memory in use by tensors, and all memory of the allocator.
    private_bytes
        Free memory in private pools.
    """

    device_index: int
    wanted_bytes: int
    capacity_bytes: int
    free_bytes: int
    used_bytes: int
    allowed_bytes: int | None
    allocated_bytes: int
    reserved_bytes: int
    private_bytes: int


class OutOfDeviceMemoryError(VirtualGpuError):
    """The virtual GPU has too little memory for a request; the text is PyTorch's.

    Attributes
    ----------
    figures
        The figures in the text.
    """

    def __init__(self, figures: OutOfMemoryFigures) -> None:
        super().__init__(oom_message(figures))
        self.figures = figures


def oom_message(figures: OutOfMemoryFigures) -> str:
    """Return the text of the ``torch.OutOfMemoryError`` that PyTorch raises.

    The wording is that of ``c10/cuda/CUDACachingAllocator.cpp``, with its doubled spaces. Like
    PyTorch, it counts the free memory of private pools as allocated.
    """
    s = figures
    allocated_bytes = s.allocated_bytes + s.private_bytes
    allowed = private = ""
    if s.allowed_bytes is not None:
        allowed = f"{_size(s.allowed_bytes)} allowed; "
    if s.private_bytes:
        private = f"with {_size(s.private_bytes)} allocated in private pools (e.g., CUDA Graphs), "
    return (
        f"CUDA out of memory. Tried to allocate {_size(s.wanted_bytes)}. "
        f"GPU {s.device_index} has a total capacity of {_size(s.capacity_bytes)} "
        f"of which {_size(s.free_bytes)} is free. "
        f"Including non-PyTorch memory, this process has {_size(s.used_bytes)} memory in use. "
        f"{allowed}Of the allocated memory {_size(allocated_bytes)} is allocated by PyTorch, "
        f"{private}and {_size(s.reserved_bytes - allocated_bytes)} is reserved by PyTorch "
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
