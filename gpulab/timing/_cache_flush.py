"""Empty the L2 cache ahead of a sample, and leave nothing in it that must be written back."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

import torch

from gpulab import virtual
from gpulab.errors import FlushMemoryError
from gpulab.requirements import NameOf
from gpulab.units import format_bytes

__all__ = ["FLUSHES", "flusher", "forget_flushes"]


# How much is read, in caches. On an H200, counters see the next kernel fully cold and clean from
# 1.5 on; 1 leaves up to 5 MB of its own earlier results to be written back. The rest is for GPUs
# that choose otherwise what leaves their cache (docs/cold-cache.md).
_N_CACHES = 2
# Drivers that do not tell the size of the L2 are given one that no GPU of today exceeds.
_UNKNOWN_L2_BYTES = 128 * 1024**2
# A block of threads sums one row: long ones keep the sums small, which are all that the flush
# writes (8 kB on an H200), and there are still several for each multiprocessor.
_ROW_ELEMENTS = 16 * 1024
_ELEMENT_BYTES = 4


class _Buffer:
    """Memory larger than the L2, and a place for the sums of its rows."""

    def __init__(self, device: int) -> None:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size or _UNKNOWN_L2_BYTES
        row_bytes = _ROW_ELEMENTS * _ELEMENT_BYTES
        n_rows = -(-_N_CACHES * l2_bytes // row_bytes)
        shape = (n_rows, _ROW_ELEMENTS)
        try:
            # Made in inference mode, they could never be written outside of it.
            with torch.inference_mode(mode=False):
                self.rows = torch.zeros(shape, dtype=torch.float32, device=f"cuda:{device}")
                self.sums = torch.zeros(n_rows, dtype=torch.float32, device=f"cuda:{device}")
        except torch.OutOfMemoryError as error:
            raise FlushMemoryError(
                f"no room on cuda:{device} for the {format_bytes(n_rows * row_bytes)} that empty "
                "its cache; free tensors and call torch.cuda.empty_cache(), or measure hot"
            ) from error
        # Another stream may be current when it is used, and must not meet the zeros halfway.
        torch.cuda.synchronize(device)

    def read(self) -> None:
        """Read all of it."""
        torch.sum(self.rows, dim=1, out=self.sums)

    def write(self) -> None:
        """Write zeros over all of it."""
        self.rows.zero_()


FLUSHES: Mapping[str, str] = MappingProxyType(
    {
        "read": "reads a buffer larger than the L2, which leaves the cache cold and clean",
        "write": "writes zeros over it, as other tools do: cold, but half of it is to be written",
    }
)


_FLUSH = NameOf("flush", FLUSHES)


class _RealGpus:
    """What owns the buffers of real GPUs, which live as long as the process."""


_real_gpus = _RealGpus()
_buffers: WeakKeyDictionary[object, dict[int, _Buffer]] = WeakKeyDictionary()


def flusher(kind: str = "read") -> Callable[[], None]:
    """Return a function that enqueues, on the current stream, what empties the L2.

    It is one kernel over a buffer twice as large as the L2 of the current device, which is made
    here, once per process and device, so that a call allocates nothing. What the timed work left
    in the cache, and its unwritten results, go to memory while the flush runs. It empties the L2
    and no other memory: addresses and instructions may still be at hand elsewhere.

    Parameters
    ----------
    kind
        A key of ``FLUSHES``. ``"read"`` leaves nothing to be written back; ``"write"`` leaves
        about half of the cache so, and the kernel that follows waits for what it pushes out: on
        an H200 up to a third longer.

    Raises
    ------
    UnknownNameError
        If there is no such kind; the message names the nearest.
    FlushMemoryError
        If the GPU has no room for the buffer.
    """
    _FLUSH.check(kind=kind)
    buffer = _buffer()
    return buffer.read if kind == "read" else buffer.write


def forget_flushes() -> None:
    """Free the buffers of every GPU; functions that :func:`flusher` returned keep theirs."""
    _buffers.clear()


def _buffer() -> _Buffer:
    owner = virtual.entered() or _real_gpus
    buffers = _buffers.setdefault(owner, {})
    device = torch.cuda.current_device()
    if device not in buffers:
        buffers[device] = _Buffer(device)
    return buffers[device]
