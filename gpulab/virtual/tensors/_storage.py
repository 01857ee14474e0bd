"""The layout and the device memory of virtual tensors, and the values that small ones carry."""

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
from gpulab.virtual.tensors._computed_results import ComputedResults

# Host memory for the whole of a larger segment might not be had; its blocks get their own, and
# only there a block that is used again does not hold what was left in it.
_LARGEST_SHARED_BYTES = 1 << 30

_CPU = torch.device("cpu")  # named everywhere, because the program may set another default
_identities = count(1)


class MissingValues(NamedTuple):
    """Why the bytes of a storage are not computed.

    Attributes
    ----------
    why
        A clause that goes on with the option's value.
    option
        The option of the virtual GPU that sets the limit.
    """

    why: str
    option: str


class ByteRange(NamedTuple):
    """Bytes of a buffer, from ``first`` to before ``end``."""

    buffer: "HostBuffer"
    first: int
    end: int

    def overlaps(self, other: "ByteRange") -> bool:
        """Tell whether they have a byte in common."""
        return self.buffer is other.buffer and self.first < other.end and other.first < self.end


class TensorLayout:
    """Sizes, strides and type of a tensor; made once for each combination, so that it is a key.

    Attributes
    ----------
    n_elements
        Elements of the tensor.
    size_bytes
        Bytes that reading it touches: less than its elements take where it is expanded.
    span_bytes
        Bytes from its first to its last element.
    """

    __slots__ = ("dtype", "n_elements", "size_bytes", "sizes", "span_bytes", "strides")

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
        self.size_bytes = min(self.n_elements, span) * dtype.itemsize


@cache
def layout(sizes: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype) -> TensorLayout:
    """Return the one layout of these sizes, strides and type."""
    return TensorLayout(sizes, strides, dtype)


def layout_of(tensor: torch.Tensor) -> TensorLayout:
    """Return the layout of a tensor."""
    return layout(tuple(tensor.shape), tensor.stride(), tensor.dtype)


class Values:
    """The bytes behind a storage, made when first needed.

    They lie in the memory that the allocator gave, so that a block which is used again holds
    what was left in it, and work that is still under way writes into its next owner.
    Work that is pending holds these and not the storage, so that memory is free again as soon
    as the program drops its tensors.

    Attributes
    ----------
    missing
        Why the bytes are not computed, so that the tensor has shape and cost only; or None.
    """

    __slots__ = ("_buffer", "_offset_bytes", "_viewed", "missing", "size_bytes")

    def __init__(self, block: MemoryBlock, size_bytes: int, missing: MissingValues | None) -> None:
        self.size_bytes = size_bytes
        self.missing = missing
        self._buffer, self._offset_bytes = _buffer_of(block)
        self._viewed: tuple[TensorLayout, int, torch.Tensor] | None = None

    def view(self, layout: TensorLayout, offset: int) -> torch.Tensor:
        """Return a CPU tensor over these bytes; ``offset`` counts elements.

        It may be one that was returned before, so its shape must be left as it is.
        """
        viewed = self._viewed
        if viewed is not None and viewed[0] is layout and viewed[1] == offset:
            return viewed[2]
        first = self._offset_bytes // layout.dtype.itemsize + offset
        whole = self._buffer.as_type(layout.dtype)
        values = whole.as_strided(layout.sizes, layout.strides, first)
        self._viewed = layout, offset, values  # most memory is only ever seen as one tensor
        return values

    def to_write(self, layout: TensorLayout, offset: int) -> torch.Tensor:
        """Return the same tensor to write into; results that lie there end."""
        results = self._buffer.results
        if results:
            first = self._offset_bytes + offset * layout.dtype.itemsize
            results.forget(first, first + layout.span_bytes)
        return self.view(layout, offset)

    def bytes_of(self, layout: TensorLayout, offset: int) -> ByteRange:
        """Return which bytes of which buffer that tensor covers, gaps included."""
        first = self._offset_bytes + offset * layout.dtype.itemsize
        return ByteRange(self._buffer, first, first + layout.span_bytes)


class HostBuffer:
    """Host memory that stands for a segment of the device's, made when first written.

    Attributes
    ----------
    number
        A number that no other buffer has.
    results
        The results of operators whose inputs or outputs lie in it.
    """

    __slots__ = ("_by_type", "_size_bytes", "_storage", "number", "results")

    def __init__(self, size_bytes: int) -> None:
        self.number = next(_identities)
        self.results = ComputedResults()
        self._size_bytes = size_bytes
        self._storage: torch.UntypedStorage | None = None
        self._by_type: dict[torch.dtype, torch.Tensor] = {}

    def as_type(self, dtype: torch.dtype) -> torch.Tensor:
        """Return all the bytes as a tensor of this type."""
        whole = self._by_type.get(dtype)
        if whole is None:
            n_elements = self._size_bytes // dtype.itemsize
            with torch.inference_mode(False):  # noqa: FBT003 # torch's signature
                # One that was made in inference mode could not be written outside it.
                empty = torch.empty(0, dtype=dtype, device=_CPU)
                whole = empty.set_(self.storage(), 0, (n_elements,), (1,))
            self._by_type[dtype] = whole
        return whole

    def storage(self) -> torch.UntypedStorage:
        """Return the bytes."""
        if self._storage is None:
            # The system makes pages when they are touched, and has them back when this is dropped:
            # malloc, once it has freed so large a block, keeps twice as much for itself.
            pages = _pages(max(1, self._size_bytes))
            zeros = np.frombuffer(pages, np.uint8, self._size_bytes)
            self._storage = torch.from_numpy(zeros).untyped_storage()
        return self._storage


def _pages(size_bytes: int) -> mmap.mmap:
    """Return memory that a forked process does not share."""
    if sys.platform == "win32":  # it has no forks
        return mmap.mmap(-1, size_bytes)
    return mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def _buffer_of(block: MemoryBlock) -> tuple[HostBuffer, int]:
    """Return the buffer that a block lies in, and where in it."""
    segment = block.segment
    if segment.size_bytes > _LARGEST_SHARED_BYTES:
        return HostBuffer(block.size_bytes), 0
    if segment.payload is None:
        segment.payload = HostBuffer(segment.size_bytes)
    return cast("HostBuffer", segment.payload), block.offset_bytes


class Storage:
    """Device memory of one or several tensors.

    Attributes
    ----------
    gpu
        The GPU whose memory it is.
    identity
        A number that no other storage has.
    block, address
        Where it lies; the cache knows it by the address.
    values
        What it holds, if that is computed.
    counted_bytes
        What it adds to the machine's memory of values.
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
        self.streams: tuple[SimulatedStream, ...] = ()
        try:
            self.block = machine.allocate(gpu, size_bytes)
        except OutOfDeviceMemoryError as error:
            raise torch.OutOfMemoryError(str(error)) from None
        self.address = self.block.address
        self.values = Values(self.block, size_bytes, missing)
        if missing is None:
            self.counted_bytes = size_bytes
            machine.value_bytes += size_bytes
        self.allocation: Allocation | None = None
        if machine.hazards is not None:
            machine.hazards.allocate(self.identity, self._allocation())

    def record_stream(self, stream: SimulatedStream) -> None:
        """Keep the memory, once it is dropped, until what ``stream`` has by then is done."""
        self.gpu.memory.record_stream(self.block, stream.number)
        self.streams = (*self.streams, stream)

    def set_missing(self, missing: MissingValues | None) -> None:
        """Say whether the bytes are computed from now on, and if not, why."""
        self.values.missing = missing
        size_bytes = self.values.size_bytes if missing is None else 0
        self.machine.value_bytes += size_bytes - self.counted_bytes
        self.counted_bytes = size_bytes

    def __del__(self, _at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # Without a block the allocation had failed; at exit the modules are gone already.
        if hasattr(self, "block") and not _at_exit():
            if self.machine.hazards is not None:
                keys = [stream.key for stream in self.streams]
                self.machine.hazards.free(self.identity, self._allocation(), keys)
            self.machine.value_bytes -= self.counted_bytes
            self.gpu.memory.release(self.block)

    def _allocation(self) -> Allocation:
        if self.allocation is None:
            block = self.block
            stream = (self.gpu.index, block.stream)
            self.allocation = Allocation(stream, self.address, block.size_bytes)
        return self.allocation
