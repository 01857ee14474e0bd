"""Pools of free blocks, and the segments that the allocator takes from the device.

There is a list of free blocks for each stream, size class and private pool. If it has no block for
a request, the allocator takes a new segment, within the device's memory and the program's limit.
"""

from collections.abc import Callable

from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator.memory._blocks import (
    SMALL_BYTES,
    Arena,
    MemoryBlock,
    PoolId,
    PrivatePool,
    Segment,
)
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks
from gpulab.virtual.simulator.memory._statistics import MemoryUsage

# PyTorch's sizes of segments (c10/core/AllocatorConfig.h): 2 MiB for small requests, 20 MiB for
# those below 10 MiB, and the next multiple of 2 MiB for larger ones.
_SMALL_SEGMENT_BYTES = 2 << 20
_MIN_LARGE_BYTES = 10 << 20
_LARGE_SEGMENT_BYTES = 20 << 20
_ROUND_LARGE_BYTES = 2 << 20


class ReservedMemory:
    """The segments of one device, and their limits.

    Attributes
    ----------
    allowed_bytes
        The most bytes that the allocator may take, or None without a limit.
    """

    def __init__(
        self, capacity_bytes: int, context_bytes: int, *, first_address: int, usage: MemoryUsage
    ) -> None:
        self.capacity_bytes = capacity_bytes
        self.context_bytes = context_bytes
        self.allowed_bytes: int | None = None
        self.segments: set[Segment] = set()
        self._usage = usage
        self._next_address = first_address

    @property
    def held_bytes(self) -> int:
        """Bytes of all segments."""
        return self._usage.reserved_bytes.total

    @property
    def used_bytes(self) -> int:
        """Bytes of all segments and of the CUDA context."""
        return self.context_bytes + self.held_bytes

    @property
    def free_bytes(self) -> int:
        """Free bytes of the device."""
        return self.capacity_bytes - self.used_bytes

    def has(self, size_bytes: int) -> bool:
        """Return whether the device has room for a segment of this size."""
        allowed = self.allowed_bytes
        within = allowed is None or self.held_bytes + size_bytes <= allowed
        return within and size_bytes <= self.free_bytes

    def take(self, arena: Arena, size_bytes: int, hooks: DeviceHooks) -> MemoryBlock:
        """Take a segment of this size from the device; return the block that fills it."""
        # Before any change: it raises an error if a capture does not allow cudaMalloc.
        hooks.on_malloc(size_bytes)
        # Addresses only grow: a segment never gets one that was used before.
        segment = Segment(arena, self._next_address, size_bytes)
        block = segment.first = MemoryBlock(segment, segment.address, size_bytes)
        self._next_address += size_bytes
        self.segments.add(segment)
        self._count(arena, size_bytes)
        return block

    def give_back(self, arena: Arena, hooks: DeviceHooks) -> None:
        """Give the segments of an arena that are completely free back to the device."""
        for block in arena.whole_segments():
            # Before any change: it waits for the device, and Ctrl-C may end the wait.
            hooks.on_free(block.size_bytes)
            arena.remove(block)
            # Breaks the cycle of segment and block, so that their values are freed at once and not
            # at the next garbage collection.
            block.segment.first = None
            self.segments.remove(block.segment)
            self._count(arena, -block.size_bytes)

    def _count(self, arena: Arena, size_bytes: int) -> None:
        pool = arena.pool
        self._usage.reserve(arena.kind, None if pool is None else pool.identity, size_bytes)
        if pool is not None:
            pool.n_segments += 1 if size_bytes > 0 else -1


def segment_bytes(size_bytes: int) -> int:
    """Return the size of a new segment for a request of ``size_bytes``."""
    if size_bytes <= SMALL_BYTES:
        return _SMALL_SEGMENT_BYTES
    if size_bytes < _MIN_LARGE_BYTES:
        return _LARGE_SEGMENT_BYTES
    return -(-size_bytes // _ROUND_LARGE_BYTES) * _ROUND_LARGE_BYTES


class MemoryPools:
    """The arenas of one device, its private pools, and which of these serve requests now."""

    def __init__(self) -> None:
        self._arenas: dict[tuple[PoolId | None, bool, int], Arena] = {}
        self._private: dict[PoolId, PrivatePool] = {}
        self._routes: list[tuple[PoolId, Callable[[int], bool]]] = []

    @property
    def is_routing(self) -> bool:
        """Whether requests without a named pool may go to a private one now."""
        return bool(self._routes)

    def arena(self, pool: PoolId | None, stream: int, size_bytes: int) -> Arena:
        """Return the arena for a request."""
        key = (pool, size_bytes <= SMALL_BYTES, stream)
        # ``get`` first: every allocation asks, and each arena is made once.
        return self._arenas.get(key) or self._new_arena(*key)

    def arenas_of(self, pool: PrivatePool | None) -> list[Arena]:
        """Return the arenas of a private pool; None means those outside all private pools."""
        return [arena for arena in self._arenas.values() if arena.pool is pool]

    def retain(self, pool: PoolId) -> None:
        """Count one more user of a private pool; the first one creates it."""
        if pool not in self._private:
            self._private[pool] = PrivatePool(pool)
            self._drop_contents()
        self._private[pool].use_count += 1

    def release(self, pool: PoolId) -> None:
        """Count one user of a private pool less; at 0 its free segments may go back."""
        self._held(pool).use_count -= 1
        self._drop_contents()

    def private(self) -> list[PrivatePool]:
        """Return the private pools that have memory or users."""
        return list(self._private.values())

    def forget(self, pool: PrivatePool) -> None:
        """Remove a private pool that has no memory."""
        # With its arenas: a pool of the same key may be made later.
        del self._private[pool.identity]
        for key in [key for key, arena in self._arenas.items() if arena.pool is pool]:
            del self._arenas[key]

    def route(self, pool: PoolId, accepts: Callable[[int], bool]) -> None:
        """Serve requests without a named pool from ``pool``, until :meth:`unroute`.

        ``accepts`` says of which streams; if several pools accept a stream, the last one serves
        it. The pool has one user more.
        """
        if any(pool == routed for routed, _ in self._routes):
            raise RuntimeError("beginAllocateToPool: already recording to mempool_id")
        self.retain(pool)
        self._routes.append((pool, accepts))

    def unroute(self, pool: PoolId) -> None:
        """End :meth:`route`; the pool still has its user until :meth:`release`."""
        for index, (routed, _) in enumerate(self._routes):
            if routed == pool:
                del self._routes[index]
                return
        raise RuntimeError("endAllocatePool: not currently recording to mempool_id")

    def routed(self, stream: int) -> PoolId | None:
        """Return the private pool that serves the requests of a stream now, or None."""
        for pool, accepts in reversed(self._routes):
            if accepts(stream):
                return pool
        return None

    def _drop_contents(self) -> None:
        """Free the real memory of unused pools; their segments stay, but nobody reads them."""
        for arena in self._arenas.values():
            if arena.pool is not None and not arena.pool.use_count:
                for block in arena.whole_segments():
                    block.segment.payload = None

    def _held(self, pool: PoolId) -> PrivatePool:
        if pool not in self._private:
            raise VirtualGpuError(f"no one uses the memory pool {pool}; retain it first")
        return self._private[pool]

    def _new_arena(self, pool: PoolId | None, is_small: bool, stream: int) -> Arena:  # noqa: FBT001 # a key
        private = None if pool is None else self._held(pool)
        arena = Arena(private, stream, is_small=is_small)
        self._arenas[pool, is_small, stream] = arena
        return arena
