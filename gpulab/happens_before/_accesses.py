"""Who used which bytes of a memory, and what is left of that when the memory is handed on."""

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import Any, NamedTuple

from gpulab.happens_before._byte_ranges import Extent
from gpulab.happens_before._call_sites import Site
from gpulab.happens_before._vector_clocks import Clock, StreamKey, Thread

# So many freed blocks are worth looking through for those that need not be kept.
_MIN_SWEPT = 32


class Touch(NamedTuple):
    """What an operation does to one tensor.

    Attributes
    ----------
    memory
        Names the storage while it lives.
    extent
        The bytes of the storage that are touched.
    is_write
        Whether they are written; an operation in place needs no second touch for its reading.
    label
        The tensor, for the report: a text, or something with ``dtype`` and ``sizes``.
    """

    memory: Hashable
    extent: Extent
    is_write: bool
    label: Any


class Use:
    """One operation's use of one tensor.

    Attributes
    ----------
    thread, tick
        The stream and its epoch.
    extent, is_write
        Which bytes it touches, and how.
    name, site, label
        The operation, its line of the program and the tensor, for the report.
    owner
        The stream whose allocator pool the memory went back to since; None while it lives.
    """

    __slots__ = ("extent", "is_write", "label", "name", "owner", "site", "thread", "tick")

    def __init__(self, thread: Thread, touch: Touch, name: str, site: Site) -> None:
        self.thread = thread
        self.renew(touch, name, site)

    def renew(self, touch: Touch, name: str, site: Site) -> None:
        """Let a later use by the same stream stand here."""
        _, self.extent, self.is_write, self.label = touch
        self.tick = self.thread.tick
        self.name = name
        self.site = site
        self.owner: StreamKey | None = None

    @property
    def lacks_record(self) -> bool:
        """Whether the memory was freed without telling its allocator of this stream."""
        return self.owner is not None and self.owner != self.thread.key

    def is_past(self, clock: Clock) -> bool:
        """Tell whether whoever has this clock is behind the use."""
        return clock.get(self.thread, 0) >= self.tick

    def conflicts(self, extent: Extent, *, is_write: bool) -> bool:
        """Tell whether the order of the two matters: shared bytes, and not both read."""
        return (is_write or self.is_write) and extent.meets(self.extent)

    def continues_in(self, other: "Use") -> bool:
        """Tell whether ``other`` is the same line's use, in the same epoch, of the next bytes."""
        return (
            self.thread is other.thread
            and (self.tick, self.is_write, self.name, self.site, self.owner)
            == (other.tick, other.is_write, other.name, other.site, other.owner)
            and not (self.extent.axes or other.extent.axes)
            and self.extent.stop == other.extent.start
        )

    def moved(self, by_bytes: int) -> "Use":
        """Return the same use, of bytes ``by_bytes`` further."""
        extent = self.extent.shifted(by_bytes)
        touch = Touch(None, extent, self.is_write, self.label)
        use = Use(self.thread, touch, self.name, self.site)
        use.tick, use.owner = self.tick, self.owner
        return use


class Allocation(NamedTuple):
    """A piece of device memory, and the stream that it was allocated for."""

    stream: StreamKey
    address: int
    size_bytes: int

    @property
    def stop(self) -> int:
        """Address behind the last byte."""
        return self.address + self.size_bytes


class FreedBlocks:
    """Memory that was freed while work on it may not be done, by address."""

    def __init__(self) -> None:
        self._blocks: list[tuple[int, int]] = []  # device and address, sorted
        self._kept: dict[tuple[int, int], tuple[Allocation, list[Use]]] = {}
        self._n_swept_at = _MIN_SWEPT

    @property
    def n_uses(self) -> int:
        """Number of uses kept."""
        return sum(len(uses) for _, uses in self._kept.values())

    def keep(self, block: Allocation, uses: list[Use], host: Clock) -> None:
        """Keep the uses of a block that goes back to its stream's pool; some are past by now."""
        for use in uses:
            use.owner = block.stream
        self._put(block, uses)
        # Seldom, so that freeing stays as quick as it is where nothing is kept.
        if len(self._kept) >= self._n_swept_at:
            self._sweep(host)

    def claim(self, block: Allocation) -> list[Use]:
        """Return what is kept for the bytes of a block, whose new owner it concerns.

        Another stream can have the address only after the device got it back, which waits for
        all work; then nothing is left to be kept.
        """
        key = (block.stream[0], block.address)
        if key in self._kept and self._kept[key][0] == block:
            del self._blocks[bisect_left(self._blocks, key)]
            return self._kept.pop(key)[1]
        inherited: list[Use] = []
        for kept, uses in self._overlapping(block):
            if kept.stream != block.stream:
                continue
            inherited += _moved(uses, kept.address - block.address, block.size_bytes)
            self._put_back(
                kept, uses, Allocation(kept.stream, kept.address, block.address - kept.address)
            )
            self._put_back(kept, uses, Allocation(kept.stream, block.stop, kept.stop - block.stop))
        return inherited

    def _sweep(self, host: Clock) -> None:
        """Drop what the host has seen done, each time that there is twice as much as was left."""
        left = {
            key: (block, [use for use in uses if not use.is_past(host)])
            for key, (block, uses) in self._kept.items()
        }
        self._kept = {key: (block, uses) for key, (block, uses) in left.items() if uses}
        self._blocks = sorted(self._kept)
        self._n_swept_at = max(_MIN_SWEPT, 2 * len(self._kept))

    def _overlapping(self, block: Allocation) -> list[tuple[Allocation, list[Use]]]:
        """Take out all that shares bytes with ``block``."""
        device = block.stream[0]
        first = bisect_left(self._blocks, (device, block.address))
        if first and self._blocks[first - 1][0] == device:
            before, _ = self._kept[self._blocks[first - 1]]
            first -= before.stop > block.address
        last = bisect_left(self._blocks, (device, block.stop), lo=first)
        keys = self._blocks[first:last]
        del self._blocks[first:last]
        return [self._kept.pop(key) for key in keys]

    def _put(self, block: Allocation, uses: list[Use]) -> None:
        if not uses or block.size_bytes <= 0:
            return
        key = (block.stream[0], block.address)
        if key not in self._kept:
            insort(self._blocks, key)
        self._kept[key] = block, uses

    def _put_back(self, kept: Allocation, uses: list[Use], rest: Allocation) -> None:
        self._put(rest, _moved(uses, kept.address - rest.address, rest.size_bytes))


def _moved(uses: list[Use], by_bytes: int, size_bytes: int) -> list[Use]:
    """Return the uses that reach into a block which starts ``-by_bytes`` after theirs."""
    moved = [use.moved(by_bytes) for use in uses]
    for use in moved:
        use.extent = use.extent.clipped(0, size_bytes)
    return [use for use in moved if use.extent.stop > 0 and use.extent.start < size_bytes]
