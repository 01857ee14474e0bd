"""Record which stream accessed which bytes, also in memory that has been freed since."""

from bisect import bisect_left, insort
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


class FreedMemory:
    """Accesses to freed memory that the device may not have finished, by address."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, int]] = []  # device and address, sorted
        self._by_address: dict[tuple[int, int], tuple[Allocation, list[RecordedAccess]]] = {}
        self._n_swept_at = _MIN_SWEPT

    @property
    def n_recorded(self) -> int:
        """Number of recorded accesses."""
        return sum(len(history) for _, history in self._by_address.values())

    def keep(self, block: Allocation, history: list[RecordedAccess], host: Clock) -> None:
        """Store the accesses to a block that goes back to its stream's pool."""
        for past in history:
            past.owner = block.stream
        self._put(block, history)
        # The limit doubles with what a sweep leaves, so a free costs a constant time on average.
        if len(self._by_address) >= self._n_swept_at:
            self._sweep(host)

    def claim(self, block: Allocation) -> list[RecordedAccess]:
        """Return the old accesses to the bytes of a block, which its new owner must follow.

        Only accesses from the same stream's pool count. Another stream can get this address
        only after ``cudaFree``, and ``cudaFree`` waits for all work of the device.
        """
        key = (block.stream[0], block.address)
        # The usual case: a loop gets the same block again that it has just freed.
        if key in self._by_address and self._by_address[key][0] == block:
            # Both containers change together: _overlapping trusts the sorted list alone.
            del self._blocks[bisect_left(self._blocks, key)]
            return self._by_address.pop(key)[1]
        inherited: list[RecordedAccess] = []
        for freed, history in self._overlapping(block):
            if freed.stream != block.stream:
                continue
            inherited += _moved(history, freed.address - block.address, block.size_bytes)
            # The parts of the freed block before and after the new one stay free.
            self._put_back(
                freed,
                history,
                Allocation(freed.stream, freed.address, block.address - freed.address),
            )
            self._put_back(
                freed, history, Allocation(freed.stream, block.stop, freed.stop - block.stop)
            )
        return inherited

    def _sweep(self, host: Clock) -> None:
        """Drop the accesses that the host knows to be done, and plan the next sweep.

        The next one comes when there are twice as many blocks as this one leaves.
        """
        remaining = {
            key: (block, [past for past in history if not past.is_past(host)])
            for key, (block, history) in self._by_address.items()
        }
        self._by_address = {
            key: (block, history) for key, (block, history) in remaining.items() if history
        }
        self._blocks = sorted(self._by_address)
        self._n_swept_at = max(_MIN_SWEPT, 2 * len(self._by_address))

    def _overlapping(self, block: Allocation) -> list[tuple[Allocation, list[RecordedAccess]]]:
        """Remove and return all freed blocks that share bytes with ``block``."""
        device = block.stream[0]
        first = bisect_left(self._blocks, (device, block.address))
        # The block before may begin earlier and reach into this one; freed blocks never overlap.
        if first and self._blocks[first - 1][0] == device:
            before, _ = self._by_address[self._blocks[first - 1]]
            first -= before.stop > block.address
        last = bisect_left(self._blocks, (device, block.stop), lo=first)
        keys = self._blocks[first:last]
        del self._blocks[first:last]
        return [self._by_address.pop(key) for key in keys]

    def _put(self, block: Allocation, history: list[RecordedAccess]) -> None:
        if not history:  # a new owner of the block has nothing to come after
            return
        key = (block.stream[0], block.address)
        if key not in self._by_address:
            insort(self._blocks, key)
        self._by_address[key] = block, history

    def _put_back(
        self, freed: Allocation, history: list[RecordedAccess], rest: Allocation
    ) -> None:
        self._put(rest, _moved(history, freed.address - rest.address, rest.size_bytes))


def _moved(history: list[RecordedAccess], by_bytes: int, size_bytes: int) -> list[RecordedAccess]:
    """Return the accesses to the bytes of another block, as offsets into that block.

    ``by_bytes`` is the address of the old block minus that of the other one.
    """
    moved = [past.moved(by_bytes) for past in history]
    for past in moved:
        past.extent = past.extent.clipped(0, size_bytes)
    return [past for past in moved if past.extent.stop > 0 and past.extent.start < size_bytes]
