"""Record which stream accessed which bytes, also in memory that has been freed since."""

from collections.abc import Hashable
from typing import Any, NamedTuple

from gpulab.happens_before._byte_ranges import Extent
from gpulab.happens_before._call_sites import Site
from gpulab.happens_before._vector_clocks import Clock, StreamKey, Thread

# A sweep reads every freed block, so it waits until there are at least this many.
_MIN_SWEPT = 32


class MemoryAccess(NamedTuple):
    """An operation's access to the bytes of one tensor.

    ``memory`` identifies the storage as long as it exists. An in-place operation needs only one
    access, a write, because whatever conflicts with a read conflicts with a write, too. ``label``
    describes the tensor in the report: a text, or an object with ``dtype`` and ``sizes``.
    """

    memory: Hashable
    extent: Extent
    is_write: bool
    label: Any


class RecordedAccess:
    """A memory access that later accesses are compared with; ``tick`` is its stream's epoch.

    Operation, line of the program and tensor are for the report. ``owner`` is the stream whose
    allocator pool got the memory back; None until the memory is freed.
    """

    __slots__ = ("extent", "is_write", "label", "name", "owner", "site", "thread", "tick")

    def __init__(self, thread: Thread, access: MemoryAccess, name: str, site: Site) -> None:
        self.thread = thread
        self.renew(access, name, site)

    def renew(self, access: MemoryAccess, name: str, site: Site) -> None:
        """Turn this record into one of a later access by the same stream."""
        _, self.extent, self.is_write, self.label = access
        self.tick = self.thread.tick
        self.name = name
        self.site = site
        self.owner: StreamKey | None = None

    @property
    def lacks_record(self) -> bool:
        """Whether the memory was freed without a ``record_stream`` for this stream."""
        # The allocator orders a reuse after the work of the memory's own stream without a call.
        return self.owner is not None and self.owner != self.thread.key

    def is_past(self, clock: Clock) -> bool:
        """Return whether the access happens before everything that comes after ``clock``."""
        return clock.get(self.thread, 0) >= self.tick

    def conflicts(self, extent: Extent, *, is_write: bool) -> bool:
        """Return whether the order matters: the two share bytes, and at least one writes."""
        return (is_write or self.is_write) and extent.meets(self.extent)

    def continues_in(self, other: "RecordedAccess") -> bool:
        """Return whether ``other`` is the same line's access to the next bytes, in one epoch."""
        return (
            self.thread is other.thread
            and (self.tick, self.is_write, self.name, self.site, self.owner)
            == (other.tick, other.is_write, other.name, other.site, other.owner)
            and not (self.extent.axes or other.extent.axes)
            and self.extent.stop == other.extent.start
        )

    def moved(self, by_bytes: int) -> "RecordedAccess":
        """Return a copy whose bytes begin ``by_bytes`` later."""
        extent = self.extent.shifted(by_bytes)
        access = MemoryAccess(None, extent, self.is_write, self.label)
        # The constructor takes the thread's present epoch; the copy keeps the old one.
        past = RecordedAccess(self.thread, access, self.name, self.site)
        past.tick, past.owner = self.tick, self.owner
        return past


class Allocation(NamedTuple):
    """A piece of device memory, and the stream that it was allocated for."""

    stream: StreamKey
    address: int
    size_bytes: int

    @property
    def stop(self) -> int:
        """The address after the last byte."""
        return self.address + self.size_bytes

    @property
    def place(self) -> tuple[int, int]:
        """Index of the device, and the first byte."""
        return self.stream[0], self.address

    def meets(self, other: "Allocation") -> bool:
        """Return whether the two share a byte."""
        is_apart = self.stop <= other.address or other.stop <= self.address
        return self.stream[0] == other.stream[0] and not is_apart


class FreedMemory:
    """Accesses to freed memory that the device may not have finished, by address."""

    def __init__(self) -> None:
        # By device and address; no two of them overlap.
        self._blocks: dict[tuple[int, int], tuple[Allocation, list[RecordedAccess]]] = {}
        self._n_swept_at = _MIN_SWEPT

    @property
    def n_recorded(self) -> int:
        """Number of recorded accesses."""
        return sum(len(history) for _, history in self._blocks.values())

    def keep(self, block: Allocation, history: list[RecordedAccess], host: Clock) -> None:
        """Store the accesses to a block that goes back to its stream's pool."""
        for past in history:
            past.owner = block.stream
        self._put(block, history)
        # The limit doubles with what a sweep leaves, so a free costs a constant time on average.
        if len(self._blocks) >= self._n_swept_at:
            self._sweep(host)

    def claim(self, block: Allocation) -> list[RecordedAccess]:
        """Return the old accesses to the bytes of a block, which its new owner must follow.

        Only accesses from the same stream's pool count. Another stream can get this address
        only after ``cudaFree``, and ``cudaFree`` waits for all work of the device.
        """
        same = self._blocks.get(block.place)
        # The usual case: a loop gets the same block again that it has just freed.
        if same is not None and same[0] == block:
            return self._blocks.pop(block.place)[1]
        inherited: list[RecordedAccess] = []
        for freed, history in [each for each in self._blocks.values() if each[0].meets(block)]:
            del self._blocks[freed.place]
            if freed.stream != block.stream:
                continue
            inherited += _moved(history, freed.address - block.address, block.size_bytes)
            # The parts of the freed block before and after the new one stay free.
            before = Allocation(freed.stream, freed.address, block.address - freed.address)
            after = Allocation(freed.stream, block.stop, freed.stop - block.stop)
            for rest in (before, after):
                self._put(rest, _moved(history, freed.address - rest.address, rest.size_bytes))
        return inherited

    def _sweep(self, host: Clock) -> None:
        """Drop the accesses that the host knows to be done, and plan the next sweep.

        The next one comes when there are twice as many blocks as this one leaves.
        """
        blocks, self._blocks = self._blocks, {}
        for block, history in blocks.values():
            self._put(block, [past for past in history if not past.is_past(host)])
        self._n_swept_at = max(_MIN_SWEPT, 2 * len(self._blocks))

    def _put(self, block: Allocation, history: list[RecordedAccess]) -> None:
        if history:  # otherwise a new owner of the block has nothing to come after
            self._blocks[block.place] = block, history


def _moved(history: list[RecordedAccess], by_bytes: int, size_bytes: int) -> list[RecordedAccess]:
    """Return the accesses to the bytes of another block, as offsets into that block.

    ``by_bytes`` is the address of the old block minus that of the other one.
    """
    moved = [past.moved(by_bytes) for past in history]
    for past in moved:
        past.extent = past.extent.clipped(0, size_bytes)
    return [past for past in moved if past.extent.stop > 0 and past.extent.start < size_bytes]
