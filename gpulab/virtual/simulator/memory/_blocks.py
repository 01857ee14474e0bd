"""Segments of device memory, the blocks they are cut into, and pools of free blocks."""

from bisect import bisect_left
from collections.abc import Hashable

PoolId = Hashable

# Blocks are multiples of this, and requests of at most that are small; both are PyTorch's
# (c10/core/AllocatorConfig.h).
BLOCK_BYTES = 512
SMALL_BYTES = 1 << 20

# Addresses lie below this bit of a key that orders blocks by size first.
_ADDRESS_BITS = 64


class PrivatePool:
    """Memory that only requests to this pool may use, as for one CUDA graph.

    Attributes
    ----------
    identity
        What its users know it by; PyTorch takes pairs of numbers.
    use_count
        How many graphs and handles hold it; at zero its free segments may go back.
    n_segments
        Segments of the device that it holds.
    no_split
        Whether each request takes a whole segment.
    use_on_oom
        Whether other requests may take its free blocks when the device has no memory left.
    """

    __slots__ = ("identity", "n_segments", "no_split", "use_count", "use_on_oom")

    def __init__(self, identity: PoolId, *, no_split: bool, use_on_oom: bool) -> None:
        self.identity = identity
        self.no_split = no_split
        self.use_on_oom = use_on_oom
        self.use_count = self.n_segments = 0


class Arena:
    """The free blocks that requests of one kind on one stream may take, by size and address.

    Attributes
    ----------
    pool
        The private pool that it belongs to, or None.
    is_small
        Whether it serves requests of at most 1 MiB.
    kind
        Where its figures are counted: 0 for small requests, 1 for large ones.
    stream
        Number of the stream.
    """

    __slots__ = ("_blocks", "_keys", "_min_rest_bytes", "is_small", "kind", "pool", "stream")

    def __init__(self, pool: PrivatePool | None, stream: int, *, is_small: bool) -> None:
        self.pool = pool
        self.stream = stream
        self.is_small = is_small
        self.kind = 0 if is_small else 1
        self._min_rest_bytes = BLOCK_BYTES if is_small else SMALL_BYTES + 1
        self._keys: list[int] = []
        self._blocks: list[MemoryBlock] = []

    def add(self, block: "MemoryBlock") -> None:
        """Offer a block to later requests."""
        key = block.size_bytes << _ADDRESS_BITS | block.address
        index = bisect_left(self._keys, key)
        self._keys.insert(index, key)
        self._blocks.insert(index, block)
        block.is_free = True

    def remove(self, block: "MemoryBlock") -> None:
        """Take back the offer of a block."""
        index = bisect_left(self._keys, block.size_bytes << _ADDRESS_BITS | block.address)
        del self._keys[index], self._blocks[index]
        block.is_free = False

    def clear(self) -> None:
        """Take back all offers."""
        self._keys.clear()
        self._blocks.clear()

    def take(self, size_bytes: int) -> "MemoryBlock | None":
        """Return the smallest block of at least ``size_bytes``, the lowest one among equals."""
        index = bisect_left(self._keys, size_bytes << _ADDRESS_BITS)
        if index == len(self._keys):
            return None
        del self._keys[index]
        block = self._blocks.pop(index)
        block.is_free = False
        return block

    def splits(self, rest_bytes: int) -> bool:
        """Tell whether a rest of this size is cut off for later requests."""
        return rest_bytes >= self._min_rest_bytes and not (self.pool and self.pool.no_split)

    def whole_segments(self) -> "list[MemoryBlock]":
        """Return the blocks that fill a segment, which could go back to the device."""
        return [block for block in self._blocks if not block.is_split]

    @property
    def free_bytes(self) -> int:
        """What its blocks add up to."""
        return sum(block.size_bytes for block in self._blocks)


class Segment:
    """Memory that was taken from the device in one piece.

    Attributes
    ----------
    address, size_bytes
        Where it lies and how large it is.
    arena
        Where its free blocks are offered.
    first
        Its block of the lowest address, while the device's memory is held.
    payload
        Whatever stands for its bytes; None until someone puts it there.
    """

    __slots__ = ("address", "arena", "first", "payload", "size_bytes")

    def __init__(self, arena: Arena, address: int, size_bytes: int) -> None:
        self.arena = arena
        self.address = address
        self.size_bytes = size_bytes
        self.payload: object | None = None
        self.first: MemoryBlock | None = None

    def blocks(self) -> "list[MemoryBlock]":
        """Return its blocks by address."""
        found = []
        block = self.first
        while block is not None:
            found.append(block)
            block = block.next
        return found


class MemoryBlock:
    """A part of a segment; it does not move while it is allocated.

    Attributes
    ----------
    segment, address, size_bytes
        Where it lies and how large it is.
    requested_bytes
        What was asked for, before rounding up.
    is_allocated, is_free
        Whether it is in use, and whether it can be had; neither while other streams may still
        use it after its release.
    used_on
        Other streams than its own that use it, if any were recorded.
    n_waits
        How many of them have not got past its release yet.
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
        """Where it begins in its segment."""
        return self.address - self.segment.address

    @property
    def stream(self) -> int:
        """The stream whose later work may reuse it after its release."""
        return self.segment.arena.stream

    @property
    def pool(self) -> PoolId | None:
        """Identity of the private pool that it belongs to, or None."""
        pool = self.segment.arena.pool
        return None if pool is None else pool.identity

    @property
    def is_split(self) -> bool:
        """Whether it is less than a segment."""
        return self.previous is not None or self.next is not None

    def cut(self, size_bytes: int) -> "MemoryBlock":
        """Return a new block of the first ``size_bytes``; this one keeps the rest."""
        front = MemoryBlock(self.segment, self.address, size_bytes)
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
        """Join with the block before or after this one."""
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
