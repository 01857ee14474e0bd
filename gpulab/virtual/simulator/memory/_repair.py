"""Repair an allocator that an error has left half changed, from the blocks of its segments.

The repair trusts three things: which blocks there are, whether each is in use, and which of them
wait for other streams. From these it computes links, addresses, lists of free blocks and figures
again. A block that was just being given to a tensor has no owner, and stays in use. If nothing is
wrong, nothing changes.
"""

from collections.abc import Iterable
from operator import attrgetter

from gpulab.virtual.simulator.memory._blocks import MemoryBlock, PrivatePool, Segment
from gpulab.virtual.simulator.memory._pending_frees import PendingFrees
from gpulab.virtual.simulator.memory._pools import MemoryPools
from gpulab.virtual.simulator.memory._statistics import MemoryUsage


def repair(
    segments: Iterable[Segment], pools: MemoryPools, pending: PendingFrees, usage: MemoryUsage
) -> None:
    """Make the lists of free blocks and all present figures agree with the segments."""
    held = list(segments)
    for segment in held:
        _place(segment)
    blocks = [block for segment in held for block in segment.blocks()]
    kept = pending.recount()
    for block in blocks:
        block.is_free = not block.is_allocated and block not in kept
    pools.offer([block for block in blocks if block.is_free])
    _count(usage, held, blocks)
    for private in pools.private():
        _count_private(private, held, usage)


def _place(segment: Segment) -> None:
    """Make the blocks of a segment follow one another and fill it."""
    # The links to the next block are right even in the middle of a ``cut`` or an ``absorb``;
    # addresses, sizes and links back may not be.
    address, previous = segment.address, None
    end = segment.address + segment.size_bytes
    for block in segment.blocks():
        after = block.next
        block.previous, block.address = previous, address
        if after is None:
            block.size_bytes = end - address
        elif after.address > address:
            block.size_bytes = after.address - address
        address, previous = address + block.size_bytes, block


_size, _requested = attrgetter("size_bytes"), attrgetter("requested_bytes")


def _count(usage: MemoryUsage, segments: list[Segment], blocks: list[MemoryBlock]) -> None:
    in_use = [block for block in blocks if block.is_allocated]
    active = [block for block in blocks if not block.is_free]
    parts = [block for block in blocks if block.is_free and block.is_split]
    # Only present values: peaks and totals are history, which the blocks cannot tell.
    for quantity, found, size in (
        (usage.allocation, in_use, _one),
        (usage.allocated_bytes, in_use, _size),
        (usage.active, active, _one),
        (usage.active_bytes, active, _size),
        (usage.requested_bytes, active, _requested),
        (usage.inactive_split, parts, _one),
        (usage.inactive_split_bytes, parts, _size),
    ):
        quantity.current = _by_kind((block.segment, size(block)) for block in found)
    usage.segment.current = _by_kind((segment, 1) for segment in segments)
    usage.reserved_bytes.current = _by_kind((segment, segment.size_bytes) for segment in segments)


def _count_private(private: PrivatePool, segments: list[Segment], usage: MemoryUsage) -> None:
    own = [segment for segment in segments if segment.arena.pool is private]
    private.n_segments = len(own)
    if private.identity in usage.reserved_by_pool:
        quantity = usage.reserved_by_pool[private.identity]
        quantity.current = _by_kind((segment, segment.size_bytes) for segment in own)


def _by_kind(amounts: Iterable[tuple[Segment, int]]) -> list[int]:
    total = [0, 0]
    for segment, amount in amounts:
        total[segment.arena.kind] += amount
    return total


def _one(_block: MemoryBlock) -> int:
    return 1
