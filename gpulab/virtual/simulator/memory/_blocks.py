"""Segments of device memory, the blocks that they are split into, and lists of free blocks."""

from bisect import bisect_left
from collections.abc import Hashable

PoolId = Hashable

# The size of a block is a multiple of the first. Requests of at most the second are small. Both
# numbers are PyTorch's (c10/core/AllocatorConfig.h).
BLOCK_BYTES = 512
SMALL_BYTES = 1 << 20

# A sort key is size << 64 | address: it orders blocks by size, and equal sizes by address.
_ADDRESS_BITS = 64


class PrivatePool:
    """Memory that only requests to this pool may use, e.g. those of one CUDA graph.

    Attributes
    ----------
    identity
        Its key; PyTorch uses a pair of numbers.
    use_count
        How many graphs use it. At 0 its free segments may go back.
    n_segments
        The number of its segments.
    """

    __slots__ = ("identity", "n_segments", "use_count")

    def __init__(self, identity: PoolId) -> None:
        self.identity = identity
        self.use_count = self.n_segments = 0


class Arena:
    """The free blocks for one stream, one size class and one pool, ordered by size and address."""

    __slots__ = ("_blocks", "_keys", "_min_rest_bytes", "kind", "pool", "stream")

    def __init__(self, pool: PrivatePool | None, stream: int, *, is_small: bool) -> None:
        self.pool = pool
        self.stream = stream
        self.kind = 0 if is_small else 1
        # PyTorch's rule: a large block is split only if the rest is a large block, too.
        self._min_rest_bytes = BLOCK_BYTES if is_small else SMALL_BYTES + 1
        # Two parallel lists, so that ``bisect`` compares plain integers.
        self._keys: list[int] = []
        self._blocks: list[MemoryBlock] = []

    def add(self, block: "MemoryBlock") -> None:
        """Add a free block."""
        key = block.size_bytes << _ADDRESS_BITS | block.address
        index = bisect_left(self._keys, key)
        self._keys.insert(index, key)
        self._blocks.insert(index, block)
        block.is_free = True

    def remove(self, block: "MemoryBlock") -> None:
        """Remove a free block."""
        index = bisect_left(self._keys, block.size_bytes << _ADDRESS_BITS | block.address)
        del self._keys[index], self._blocks[index]
        block.is_free = False

    def take(self, size_bytes: int) -> "MemoryBlock | None":
        """Remove and return the smallest block of at least ``size_bytes``, or return None.

        Among equal blocks it takes the one with the lowest address.
        """
        index = bisect_left(self._keys, size_bytes << _ADDRESS_BITS)
        if index == len(self._keys):
            return None
        del self._keys[index]
        block = self._blocks.pop(index)
        block.is_free = False
        return block

    def splits(self, rest_bytes: int) -> bool:
        """Return whether a remainder of this size becomes a free block of its own."""
        return rest_bytes >= self._min_rest_bytes

    def whole_segments(self) -> "list[MemoryBlock]":
        """Return the free blocks that are whole segments, which can go back to the device."""
        return [block for block in self._blocks if not block.is_split]

    @property
    def free_bytes(self) -> int:
        """The bytes of all its blocks."""
        return sum(block.size_bytes for block in self._blocks)


class Segment:
    """Memory from one ``cudaMalloc``.

    Attributes
    ----------
    address, size_bytes
        Its first byte, and its size.
    first
        Its block with the lowest address; None after it went back to the device.
    payload
        The real memory for its values; None until a tensor needs it.
    """

    __slots__ = ("address", "arena", "first", "payload", "size_bytes")

    def __init__(self, arena: Arena, address: int, size_bytes: int) -> None:
        self.arena = arena
        self.address = address
        self.size_bytes = size_bytes
        self.payload: object | None = None
        self.first: MemoryBlock | None = None

    def blocks(self) -> "list[MemoryBlock]":
        """Return its blocks, ordered by address."""
        blocks = []
        block = self.first
        while block is not None:
            blocks.append(block)
            block = block.next
        return blocks


class MemoryBlock:
    """A part of a segment; it does not move while it is allocated.

    Attributes
    ----------
    segment, address, size_bytes
        Its segment, its first byte and its size.
    requested_bytes
        The size that the program asked for, before rounding up.
    is_allocated, is_free
        Whether a tensor uses it, and whether a request can get it. Both are False after a release
        while other streams may still use it.
    used_on
        The streams of ``record_stream`` calls, without the block's own; None if there are none.
    n_waits
        How many of these streams still have work from before the release.
    previous, next
        Its neighbours in the segment, or None.
    """

    __slots__ = (
        *("address", "is_allocated", "is_free", "n_waits", "next", "previous"),
        *("requested_bytes", "segment", "size_bytes", "used_on"),
    )

    def __init__(self, segment: Segment, address: int, size_bytes: int) -> None:
        self.segment = segment
        self.address = address
        self.size_bytes = size_bytes
        self.requested_bytes = self.n_waits = 0
        self.is_allocated = self.is_free = False
        self.used_on: set[int] | None = None
        self.previous: MemoryBlock | None = None
        self.next: MemoryBlock | None = None

    @property
    def offset_bytes(self) -> int:
        """Its distance from the beginning of its segment."""
        return self.address - self.segment.address

    @property
    def stream(self) -> int:
        """The stream whose later requests may get it after its release."""
        return self.segment.arena.stream

    @property
    def pool(self) -> PoolId | None:
        """Key of the private pool that it belongs to, or None."""
        pool = self.segment.arena.pool
        return None if pool is None else pool.identity

    @property
    def is_split(self) -> bool:
        """Whether it is only a part of its segment."""
        return self.previous is not None or self.next is not None

    def cut(self, size_bytes: int) -> "MemoryBlock":
        """Return the first ``size_bytes`` as a new block; this block is the rest from then on."""
        front = MemoryBlock(self.segment, self.address, size_bytes)
        # In this order the chain of ``next`` is complete after each line; ``repair`` relies on it.
        front.previous, front.next = self.previous, self
        if self.previous is None:
            self.segment.first = front
        else:
            self.previous.next = front
        self.previous = front
        self.address += size_bytes
        self.size_bytes -= size_bytes
        return front

    def absorb(self, neighbour: "MemoryBlock") -> None:
        """Extend this block by the one right before or after it."""
        # As in ``cut``, the chain of ``next`` is complete after each line.
        self.size_bytes += neighbour.size_bytes
        if neighbour is self.previous:
            self.address = neighbour.address
            self.previous = neighbour.previous
            if self.previous is None:
                self.segment.first = self
            else:
                self.previous.next = self
        else:
            self.next = neighbour.next
            if self.next is not None:
                self.next.previous = self
