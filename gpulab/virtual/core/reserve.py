"""The memory that is held from the device: how much there is, and how much may be taken."""

from gpulab.virtual.core.kept import Hooks
from gpulab.virtual.core.segments import SMALL_BYTES, Arena, Block, Segment
from gpulab.virtual.core.usage import Usage

# What PyTorch asks the device for (c10/core/AllocatorConfig.h): small requests are cut from
# segments of 2 MiB, those below 10 MiB from segments of 20 MiB, and larger ones take whole
# multiples of 2 MiB.
_SMALL_SEGMENT_BYTES = 2 << 20
_MIN_LARGE_BYTES = 10 << 20
_LARGE_SEGMENT_BYTES = 20 << 20
_ROUND_LARGE_BYTES = 2 << 20


class Reserve:
    """The segments of one device, and the limits to them.

    Attributes
    ----------
    capacity_bytes, context_bytes
        Memory of the device, and how much of it the CUDA context takes.
    allowed_bytes
        What may be held at most, if that was limited.
    segments
        Those that are held.
    n_allocations, n_frees
        How often the device was asked for memory or got it back; no reset touches these.
    """

    def __init__(
        self, capacity_bytes: int, context_bytes: int, *, first_address: int, usage: Usage
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self.context_bytes = context_bytes
        self.allowed_bytes: int | None = None
        self.segments: set[Segment] = set()
        self.n_allocations = self.n_frees = 0
        self._usage = usage
        self._next_address = first_address

    @property
    def held_bytes(self) -> int:
        """Bytes of all segments."""
        return self._usage.reserved_bytes.total

    @property
    def free_bytes(self) -> int:
        """Bytes that nobody holds."""
        return self.capacity_bytes - self.context_bytes - self.held_bytes

    def has(self, size_bytes: int) -> bool:
        """Tell whether a segment of this size can be taken."""
        allowed = self.allowed_bytes
        within = allowed is None or self.held_bytes + size_bytes <= allowed
        return within and size_bytes <= self.free_bytes

    def take(self, arena: Arena, size_bytes: int, hooks: Hooks) -> Block:
        """Take a segment of this size from the device, and return the block that fills it."""
        hooks.on_malloc(size_bytes)
        segment = Segment(arena, self._next_address, size_bytes)
        block = segment.first = Block(segment, segment.address, size_bytes)
        self._next_address += size_bytes
        self.segments.add(segment)
        self.n_allocations += 1
        self._count(arena, size_bytes)
        return block

    def give_back(self, arena: Arena, hooks: Hooks) -> None:
        """Give the segments of an arena that are free as a whole back to the device."""
        for block in arena.whole_segments():
            hooks.on_free(block.size_bytes)
            arena.remove(block)
            # Without its link to the block the segment is gone at once, as the block is.
            block.segment.first = None
            self.segments.remove(block.segment)
            self.n_frees += 1
            self._count(arena, -block.size_bytes)

    def _count(self, arena: Arena, size_bytes: int) -> None:
        pool = arena.pool
        self._usage.reserve(arena.kind, None if pool is None else pool.identity, size_bytes)
        if pool is not None:
            pool.n_segments += 1 if size_bytes > 0 else -1


def segment_bytes(size_bytes: int) -> int:
    """Return the size of the segment that a request of ``size_bytes`` asks the device for."""
    if size_bytes <= SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if size_bytes < _MIN_LARGE_BYTES:
        return _LARGE_SEGMENT_BYTES
    return -(-size_bytes // _ROUND_LARGE_BYTES) * _ROUND_LARGE_BYTES
