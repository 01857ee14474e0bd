"""Empty the L2 cache before a sample, and leave nothing in it that must be written back."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch

from gpulab import virtual
from gpulab.core.errors import FlushMemoryError
from gpulab.core.requirements import NameOf
from gpulab.core.units import format_bytes

__all__ = ["FLUSHES", "flusher"]


# Size of the buffer, as a multiple of the L2. On an H200, from 1.5 on hardware counters show that
# the cache is cold and clean for the next kernel; with 1, up to 5 MB of its own earlier results
# must still be written back. 2 leaves room for GPUs that replace lines in another order
# (docs/cold-cache.md).
_N_CACHES = 2
# Assumed if the driver does not report the size of the L2; no GPU of today has more.
_UNKNOWN_L2_BYTES = 128 * 1024**2
# A block of threads sums one row. The sums are all that the flush writes, so rows are long (8 kB
# of sums on an H200), but short enough that each multiprocessor gets several.
_ROW_ELEMENTS = 16 * 1024
_ELEMENT_BYTES = 4


class _Buffer:
    """A buffer larger than the L2, and memory for the sums of its rows."""

    def __init__(self, device: int) -> None:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size or _UNKNOWN_L2_BYTES
        row_bytes = _ROW_ELEMENTS * _ELEMENT_BYTES
        n_rows = -(-_N_CACHES * l2_bytes // row_bytes)
        shape = (n_rows, _ROW_ELEMENTS)
        try:
            # Tensors made in inference mode cannot be written outside of it later.
            with torch.inference_mode(mode=False):
                self.rows = torch.zeros(shape, dtype=torch.float32, device=f"cuda:{device}")
                self.sums = torch.zeros(n_rows, dtype=torch.float32, device=f"cuda:{device}")
        except torch.OutOfMemoryError as error:
            raise FlushMemoryError(
                f"no room on cuda:{device} for the {format_bytes(n_rows * row_bytes)} that empty "
                "its cache; free tensors and call torch.cuda.empty_cache(), or measure hot"
            ) from error
        # The flush may later run on another stream, which must not start before the fill ends.
        torch.cuda.synchronize(device)

    def read(self) -> None:
        """Read the whole buffer."""
        # Any reduction empties the cache alike: a maximum, and two passes over half as much, did
        # too (docs/cold-cache.md). With `out`, the flush asks PyTorch's allocator for nothing.
        torch.sum(self.rows, dim=1, out=self.sums)

    def write(self) -> None:
        """Write zeros over the whole buffer."""
        # The way of Triton's do_bench, NVBench and others; here for comparisons with them.
        self.rows.zero_()


FLUSHES: Mapping[str, str] = MappingProxyType(
    {
        "read": "reads a buffer larger than the L2, which leaves the cache cold and clean",
        "write": "fills it with zeros, as other tools do: cold, but half must be written back",
    }
)


_FLUSH = NameOf("flush", FLUSHES)


class _RealGpus:
    """The key for the buffers of real GPUs, which live as long as the process."""


_real_gpus = _RealGpus()
# The keys are weak, so the buffers of a virtual GPU are freed together with it.
_buffers: WeakKeyDictionary[object, dict[int, _Buffer]] = WeakKeyDictionary()


def flusher(kind: str = "read") -> Callable[[], None]:
    """Return a function that enqueues one kernel that empties the L2, on the current stream.

    The kernel goes over a buffer twice as large as the L2 of the current device. The buffer is
    allocated here, once per process and device, so calling the function allocates nothing. While
    the flush runs, the results that the timed work left in the cache are written to memory. Only
    the L2 is emptied: other caches may still contain addresses and instructions.

    ``kind`` is a key of ``FLUSHES``. ``"read"`` leaves nothing that must be written back.
    ``"write"`` leaves about half of the cache in that state, and the next kernel has to wait while
    its data replace it: up to a third longer on an H200. `FlushMemoryError` if the GPU has no room
    for the buffer.
    """
    _FLUSH.check(kind=kind)
    buffer = _buffer()
    return buffer.read if kind == "read" else buffer.write


def _buffer() -> _Buffer:
    owner = virtual.entered() or _real_gpus
    if owner not in _buffers:
        _forget_replaced()
    buffers = _buffers.setdefault(owner, {})
    device = torch.cuda.current_device()
    if device not in buffers:
        buffers[device] = _Buffer(device)
    return buffers[device]


def _forget_replaced() -> None:
    # A notebook's history of outputs may hold the GPUs that it used before.
    for owner in [*_buffers]:
        if isinstance(owner, virtual.VirtualGpu) and owner.is_abandoned:
            del _buffers[owner]
