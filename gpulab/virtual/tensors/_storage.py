"""The layout, the device memory and the values of virtual tensors."""

import math
import mmap
import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import NamedTuple, cast

import numpy as np
import torch

from gpulab.happens_before import Allocation
from gpulab.virtual.simulator import Machine, SimulatedGpu, SimulatedStream
from gpulab.virtual.simulator.memory import MemoryBlock, OutOfDeviceMemoryError
from gpulab.virtual.simulator.values import BufferContents, ByteSpan, PendingValues

# The host may not have memory for a larger segment as a whole, so each block of one gets its own
# host memory. Only there, a block that is used again does not contain the old bytes.
_LARGEST_SHARED_BYTES = 1 << 30

# Named in every call that makes a host tensor, because the program may set another default device.
_CPU = torch.device("cpu")
_identities = count(1)
_PAGE_BYTES = mmap.PAGESIZE
_WORTH_RETURNING_BYTES = 1 << 20  # below, writing zeros is faster than asking the system


class MissingValues(NamedTuple):
    """The reason why the bytes of a storage are not computed.

    Attributes
    ----------
    why
        A clause; the message continues it with the value of the option.
    option
        Field of ``ValueLimits`` that sets the limit.
    """

    why: str
    option: str


class TensorLayout:
    """Sizes, strides and type of a tensor.

    Make one with :func:`layout`, which returns the same object for the same values: layouts are
    compared and hashed by identity, which is fast.

    Attributes
    ----------
    n_elements
        Number of elements.
    size_bytes
        Number of different bytes that a read of the tensor touches. For an expanded tensor this
        is less than the size of its elements.
    span_bytes
        Number of bytes from its first to its last element, gaps included.
    is_dense
        Whether the elements fill the span, without a gap and without an overlap.
    """

    __slots__ = ("dtype", "is_dense", "n_elements", "size_bytes", "sizes", "span_bytes", "strides")

    def __init__(
        self, sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype
    ) -> None:
        self.sizes = sizes
        self.strides = strides
        self.dtype = dtype
        self.n_elements = math.prod(sizes)
        reach = sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
        span = reach + 1 if self.n_elements else 0
        self.span_bytes = span * dtype.itemsize
        self.is_dense = span == self.n_elements
        # An expanded tensor repeats its elements, and one with gaps skips bytes of its span.
        self.size_bytes = min(self.n_elements, span) * dtype.itemsize


@cache
def layout(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> TensorLayout:
    """Return the layout with these sizes, strides and type: the same object each time."""
    return TensorLayout(sizes, strides, dtype)


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    """Return the layout of a tensor."""
    return layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


class Values:
    """The bytes of a storage in host memory, which is allocated on first use.

    The bytes belong to the allocator's block, as on a GPU: a block that is used again contains
    its old bytes, and a kernel that still runs writes into the block's next owner. Only the end of
    a context, such as that of a cell, frees the bytes of segments that no tensor uses. A pending
    kernel refers to the values and not to the storage, so the device memory is free as soon as
    the program drops its tensors.

    Attributes
    ----------
    pending
        The log of the values that are not computed yet.
    missing
        Why the bytes are not computed, so that the tensor has only a shape and a cost; or None.
    buffer, offset_bytes
        The host memory that contains them, and where they begin in it.
    """

    __slots__ = (
        *("_is_alone", "buffer", "missing", "offset_bytes", "pending", "size_bytes", "viewed"),
    )

    def __init__(
        self,
        pending: PendingValues,
        block: MemoryBlock,
        size_bytes: int,
        missing: MissingValues | None,
    ) -> None:
        self.pending = pending
        self.size_bytes = size_bytes
        self.missing = missing
        self.buffer, self.offset_bytes = _buffer_of(block, pending)
        self._is_alone = block.segment.payload is None
        # The last view is kept: most memory is only ever seen as one tensor, and as_strided takes
        # longer than the comparison.
        self.viewed: tuple[TensorLayout, int, torch.Tensor] | None = None

    def release(self) -> None:
        """Forget the bytes if no later storage will have them."""
        if self._is_alone:
            self.pending.release(self.buffer.contents)


# A named tuple is faster to make than a dataclass, and each launch makes one for each tensor.
class Reference(NamedTuple):
    """The values of a tensor, without a reference to the tensor or its storage.

    A pending kernel refers to its tensors in this way, so that the allocator can give their memory
    to others once the program has dropped them, as on a CUDA GPU.
    """

    values: Values
    layout: TensorLayout
    offset: int

    def view(self) -> torch.Tensor:
        """Return the values as a CPU tensor over the same bytes, after they were computed.

        The tensor may be one that was returned before, so the caller must not reshape it.
        """
        pending = self.values.pending
        pending.settle(self.span())
        return pending.guarded(self.raw)

    def raw(self) -> torch.Tensor:
        """Return the same tensor with what was computed so far; call it inside the log's guard."""
        values, layout, offset = self
        viewed = values.viewed
        if viewed is not None and viewed[0] is layout and viewed[1] == offset:
            return viewed[2]
        first = values.offset_bytes // layout.dtype.itemsize + offset
        # ``as_strided`` counts from the start of the buffer, which contains other blocks, too.
        typed = values.buffer.as_type(layout.dtype)
        tensor = typed.as_strided(layout.sizes, layout.strides, first)
        values.viewed = layout, offset, tensor
        return tensor

    def set_to_zero(self) -> None:
        """Write zeros to all elements; a large tensor needs no host memory then."""
        tensor = self.raw()
        if tensor.is_contiguous():
            self.values.buffer.set_to_zero(*self.span()[1:])
        else:
            tensor.zero_()

    def span(self) -> ByteSpan:
        """Return the range of bytes that the values cover, gaps included."""
        first = self.values.offset_bytes + self.offset * self.layout.dtype.itemsize
        return self.values.buffer.contents, first, first + self.layout.span_bytes


class HostBuffer:
    """Host memory for the values of a segment of device memory, allocated on first use.

    Attributes
    ----------
    pending
        The log of the values that are not computed yet.
    contents
        Which entry of the log wrote each byte.
    """

    __slots__ = ("_by_type", "_pages", "_size_bytes", "_storage", "contents", "pending")

    def __init__(self, size_bytes: int, pending: PendingValues) -> None:
        self.pending = pending
        self.contents = BufferContents()
        self._size_bytes = size_bytes
        self._pages: mmap.mmap | None = None
        self._storage: torch.UntypedStorage | None = None
        self._by_type: dict[torch.dtype, torch.Tensor] = {}

    def as_type(self, dtype: torch.dtype) -> torch.Tensor:
        """Return all bytes as one tensor of this type."""
        typed = self._by_type.get(dtype)
        if typed is None:
            n_elements = self._size_bytes // dtype.itemsize
            with torch.inference_mode(False):  # noqa: FBT003 # torch's signature
                # A tensor made in inference mode cannot be changed in place outside of it.
                empty = torch.empty(0, dtype=dtype, device=_CPU)
                typed = empty.set_(self.storage(), 0, (n_elements,), (1,))
            self._by_type[dtype] = typed
        return typed

    def storage(self) -> torch.UntypedStorage:
        """Return the bytes as a storage of PyTorch."""
        if self._storage is None:
            # mmap and not malloc: the system provides a page only when it is touched, and gets it
            # back when the buffer is dropped. After freeing a block this large, malloc would keep
            # twice as much memory for the process.
            self._pages = _pages(max(1, self._size_bytes))
            zeros = np.frombuffer(self._pages, np.uint8, self._size_bytes)
            self._storage = torch.from_numpy(zeros).untyped_storage()
        return self._storage

    def drop_values(self) -> None:
        """Give the host memory back to the system, because nobody will read these bytes."""
        self.pending.release(self.contents)
        # The pages and not the mapping, which pending kernels may still refer to.
        if (
            not self.pending.is_used(self.contents)
            and sys.platform == "linux"
            and self._pages is not None
        ):
            self._pages.madvise(mmap.MADV_DONTNEED)

    def set_to_zero(self, first: int, end: int) -> None:
        """Write zeros to the bytes from ``first`` to ``end - 1``.

        The system gets whole pages back. When it provides them again, they contain zeros. So a
        buffer that a benchmark reads only to flush a cache takes no memory.
        """
        self.storage()
        pages = range(-(-first // _PAGE_BYTES) * _PAGE_BYTES, end // _PAGE_BYTES * _PAGE_BYTES)
        edges: tuple[range, ...] = (range(first, end),)
        # Only Linux promises zeros in a page that it has got back.
        if sys.platform == "linux" and self._pages is not None:
            if len(pages) >= _WORTH_RETURNING_BYTES:
                self._pages.madvise(mmap.MADV_DONTNEED, pages.start, len(pages))
                edges = range(first, pages.start), range(pages.stop, end)
        for edge in edges:
            self.as_type(torch.uint8)[edge.start : edge.stop].zero_()


def _pages(size_bytes: int) -> mmap.mmap:
    """Return zeroed memory that a forked process does not share."""
    # Windows has no fork and no flags.
    if sys.platform == "win32":
        return mmap.mmap(-1, size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _buffer_of(block: MemoryBlock, pending: PendingValues) -> tuple[HostBuffer, int]:
    """Return the buffer that contains a block, and the block's offset in bytes."""
    segment = block.segment
    if segment.size_bytes > _LARGEST_SHARED_BYTES:
        return HostBuffer(block.size_bytes, pending), 0
    if segment.payload is None:
        segment.payload = _Payload(HostBuffer(segment.size_bytes, pending))
    return cast("_Payload", segment.payload).buffer, block.offset_bytes


class _Payload:
    """The buffer of a segment; without it nobody will read the values."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: HostBuffer) -> None:
        self.buffer = buffer

    def __del__(self) -> None:
        # Pending kernels refer to the buffer, which would not be freed with the segment.
        self.buffer.drop_values()


class Storage:
    """Device memory of one tensor, or of several views of it.

    Attributes
    ----------
    gpu
        The GPU whose memory it is.
    identity
        A number that no other storage has.
    block, address
        The allocator's block, and its address; the model of the L2 cache uses the address.
    values
        The bytes, if they are computed.
    counted_bytes
        Number of bytes that count towards the machine's limit of memory for values.
    """

    __slots__ = (
        *("__weakref__", "address", "block", "counted_bytes", "gpu"),
        *("identity", "machine", "allocation", "streams", "values"),
    )

    def __init__(
        self,
        machine: Machine,
        gpu: SimulatedGpu,
        size_bytes: int,
        missing: MissingValues | None = None,
    ) -> None:
        self.machine = machine
        self.gpu = gpu
        self.counted_bytes = 0
        self.identity = next(_identities)
        # Streams of ``record_stream``. A tuple, because nearly all storages share the empty one.
        self.streams: tuple[SimulatedStream, ...] = ()
        try:
            self.block = machine.allocate(gpu, size_bytes)
        # Programs catch torch's class, e.g. to try a smaller batch. As on CUDA it has no cause.
        except OutOfDeviceMemoryError as error:
            raise torch.OutOfMemoryError(str(error)) from None
        self.address = self.block.address
        self.values = Values(machine.values, self.block, size_bytes, missing)
        if missing is None:
            self.counted_bytes = size_bytes
            machine.value_bytes += size_bytes
        self.allocation: Allocation | None = None
        if machine.hazards is not None:
            machine.hazards.allocate(self.identity, self._allocation())

    def record_stream(self, stream: SimulatedStream) -> None:
        """Reuse the memory only after the work that ``stream`` has when it is dropped."""
        self.gpu.memory.record_stream(self.block, stream.number)
        self.streams = (*self.streams, stream)

    def set_missing(self, missing: MissingValues | None) -> None:
        """Set whether the bytes are computed from now on: None, or the reason why not."""
        self.values.missing = missing
        size_bytes = self.values.size_bytes if missing is None else 0
        self.machine.value_bytes += size_bytes - self.counted_bytes
        self.counted_bytes = size_bytes

    def __del__(self, _at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # If the allocation failed there is no block. When Python exits, the modules that the
        # methods below need may be gone already.
        if hasattr(self, "block") and not _at_exit():
            if self.machine.hazards is not None:
                keys = [stream.key for stream in self.streams]
                self.machine.hazards.free(self.identity, self._allocation(), keys)
            self.machine.value_bytes -= self.counted_bytes
            self.values.release()
            self.gpu.memory.release(self.block)

    def _allocation(self) -> Allocation:
        if self.allocation is None:
            block = self.block
            stream = (self.gpu.index, block.stream)
            self.allocation = Allocation(stream, self.address, block.size_bytes)
        return self.allocation
