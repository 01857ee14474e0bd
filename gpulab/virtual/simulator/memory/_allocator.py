"""Allocate device memory like PyTorch's caching allocator: each stream reuses its free blocks."""

from collections.abc import Iterable

from gpulab.virtual.simulator.memory._blocks import (
    BLOCK_BYTES,
    Arena,
    MemoryBlock,
    PoolId,
    PrivatePool,
    Segment,
)
from gpulab.virtual.simulator.memory._out_of_memory import (
    OutOfDeviceMemoryError,
    oom_message,
)
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks, PendingFrees
from gpulab.virtual.simulator.memory._pools import MemoryPools, ReservedMemory, segment_bytes
from gpulab.virtual.simulator.memory._statistics import MemoryUsage

# The memory of a CUDA context on an H200 (CUDA 13.0, PyTorch 2.11), read after the first kernel.
# Work on side streams takes about 70 MiB more, which is not modelled.
CONTEXT_BYTES = 554_500_096

# Each device has its own range of addresses, as with CUDA's unified virtual addressing. No address
# is used twice, so the range must hold all segments that a process ever takes.
_FIRST_ADDRESS = 1 << 42
_DEVICE_RANGE_BYTES = 1 << 44


class Allocator:
    """Hands out blocks of one device's memory, and counts them."""

    def __init__(
        self,
        capacity_bytes: int,
        *,
        device_index: int = 0,
        context_bytes: int = CONTEXT_BYTES,
        hooks: DeviceHooks | None = None,
    ) -> None:
        self.device_index = device_index
        self.usage = MemoryUsage()
        self.pools = MemoryPools()
        first_address = _FIRST_ADDRESS + device_index * _DEVICE_RANGE_BYTES
        self.reserve = ReservedMemory(
            capacity_bytes, context_bytes, first_address=first_address, usage=self.usage
        )
        self._hooks = hooks or DeviceHooks()
        self._pending = PendingFrees(self._hooks)
        self._is_abandoned = False
        # An empty tensor needs a block object, too, but no memory.
        self._nowhere = Segment(Arena(None, 0, is_small=True), 0, 0)

    @property
    def allocated_bytes(self) -> int:
        """Bytes in use."""
        return self.usage.allocated_bytes.total

    @property
    def reserved_bytes(self) -> int:
        """Bytes that are allocated from the device, in use or not."""
        return self.reserve.held_bytes

    @property
    def free_bytes(self) -> int:
        """Free bytes of the device, as ``cudaMemGetInfo`` returns them."""
        return self.reserve.free_bytes

    @property
    def capacity_bytes(self) -> int:
        """Memory of the device."""
        return self.reserve.capacity_bytes

    @property
    def fraction(self) -> float:
        """The share of the device's memory that the allocator may take."""
        allowed = self.reserve.allowed_bytes
        return 1.0 if allowed is None else allowed / self.capacity_bytes

    def set_fraction(self, fraction: float) -> None:
        """Limit the allocator to a share of the device's memory."""
        self.reserve.allowed_bytes = int(fraction * self.capacity_bytes)

    def allocate(self, size_bytes: int, stream: int, pool: PoolId | None = None) -> MemoryBlock:
        """Return a block of at least ``size_bytes`` for ``stream``.

        A request for 0 bytes gets an empty block at address 0, which is not counted.

        Later requests of ``stream`` may get the block after its release. By default the private
        pool that serves the stream now is asked.

        Raises
        ------
        OutOfDeviceMemoryError
            If the device has too little memory, also after unused segments were given back.
        """
        if not size_bytes:
            return MemoryBlock(self._nowhere, 0, 0)
        if self.pools.is_routing:
            # Pending frees are not checked: as in PyTorch, a capture allows no event queries.
            pool = self.pools.routed(stream) if pool is None else pool
        elif self._pending:
            self._take_back(self._pending.done())
        rounded = -(-size_bytes // BLOCK_BYTES) * BLOCK_BYTES
        arena = self.pools.arena(pool, stream, rounded)
        block = arena.take(rounded) or self._from_device(arena, rounded)
        return self._hand_out(block, rounded, size_bytes)

    def release(self, block: MemoryBlock) -> None:
        """Free ``block`` for later requests of its stream, once no other stream uses it."""
        if not block.size_bytes:
            return
        block.is_allocated = False
        is_held = bool(block.used_on)
        self.usage.release(block.segment.arena.kind, block.size_bytes, is_held=is_held)
        if not is_held:
            self._take_back((block,))
            if self._is_abandoned:
                self.abandon()
        else:
            self._pending.hold(block)

    def record_stream(self, block: MemoryBlock, stream: int) -> None:
        """Note that ``stream`` uses ``block``: its reuse waits for that stream's work.

        This is the work that was submitted before the release.
        """
        if stream == block.stream:
            return
        if block.used_on is None:
            block.used_on = set()
        block.used_on.add(stream)

    def empty_cache(self) -> None:
        """Give unused segments back to the device, except those of private pools in use."""
        if not self.pools.is_routing:
            # As in PyTorch: a block that another stream still uses may keep a whole segment.
            self._wait_for_pending()
            self._give_back(None)
        # A graph's replays write to fixed addresses, so a pool in use must not lose its segments.
        for private in self.pools.private():
            if private.use_count:
                continue
            self._give_back(private)
            if not private.n_segments:
                self.pools.forget(private)

    def abandon(self) -> None:
        """Free the real memory of unused segments, now and after each release.

        A notebook's history of outputs may hold the device until the process ends. Without this
        call the values would stay in real memory, too.
        """
        self._is_abandoned = True
        self.drop_unused_values()

    def drop_unused_values(self) -> None:
        """Free the real memory of segments that no tensor uses; they stay reserved.

        Call it while no kernel is pending: one that still runs may write into the next owner.
        """
        for segment in self.reserve.segments:
            if all(block.is_free for block in segment.blocks()):
                segment.payload = None

    def segments(self) -> list[Segment]:
        """Return the segments of the allocator, ordered by address."""
        return sorted(self.reserve.segments, key=lambda segment: segment.address)

    def _hand_out(self, block: MemoryBlock, size_bytes: int, requested_bytes: int) -> MemoryBlock:
        arena = block.segment.arena
        kind = arena.kind
        if arena.splits(block.size_bytes - size_bytes):
            block = self._split(block, size_bytes)
        elif block.previous is not None or block.next is not None:
            # A free part of a segment that is partly in use: one "inactive split" less.
            self.usage.split(kind, -1, -block.size_bytes)
        block.is_allocated = True
        block.requested_bytes = requested_bytes
        self.usage.hand_out(kind, block.size_bytes, requested_bytes)
        return block

    def _split(self, block: MemoryBlock, size_bytes: int) -> MemoryBlock:
        arena = block.segment.arena
        if block.previous is not None or block.next is not None:
            self.usage.split(arena.kind, 0, -size_bytes)
        else:
            self.usage.split(arena.kind, 1, block.size_bytes - size_bytes)
        front = block.cut(size_bytes)
        arena.add(block)
        return front

    def _take_back(self, blocks: Iterable[MemoryBlock]) -> None:
        for block in blocks:
            arena = block.segment.arena
            self.usage.take_back(arena.kind, block.size_bytes, block.requested_bytes)
            # As in PyTorch the changes in free parts are added up and counted once. Counted one
            # by one they would make the totals of "allocated" and "freed" larger.
            n_split = split_bytes = 0
            for neighbour in (block.previous, block.next):
                if neighbour is not None and neighbour.is_free:
                    n_split -= 1
                    split_bytes -= neighbour.size_bytes
                    arena.remove(neighbour)
                    block.absorb(neighbour)
            arena.add(block)
            if block.previous is not None or block.next is not None:
                n_split, split_bytes = n_split + 1, split_bytes + block.size_bytes
            if split_bytes:
                self.usage.split(arena.kind, n_split, split_bytes)

    def _from_device(self, arena: Arena, size_bytes: int) -> MemoryBlock:
        wanted_bytes = segment_bytes(size_bytes)
        # PyTorch's order: first the device, then the device again after unused segments went back,
        # and at last the error.
        if not self.reserve.has(wanted_bytes):
            self._make_room()
        if not self.reserve.has(wanted_bytes):
            self.usage.counts["num_ooms"] += 1
            private = [
                arena for each in self.pools.private() for arena in self.pools.arenas_of(each)
            ]
            private_bytes = sum(arena.free_bytes for arena in private)
            asked = self.device_index, wanted_bytes, self.reserve
            raise OutOfDeviceMemoryError(oom_message(*asked, self.allocated_bytes, private_bytes))
        return self.reserve.take(arena, wanted_bytes, self._hooks)

    def _make_room(self) -> None:
        # Not during a capture: cudaFree would wait for the device, which a capture forbids.
        if not self.pools.is_routing:
            self.empty_cache()
            self.usage.counts["num_alloc_retries"] += 1

    def _wait_for_pending(self) -> None:
        self.usage.counts["num_sync_all_streams"] += 1
        self._take_back(self._pending.wait())

    def _give_back(self, pool: PrivatePool | None) -> None:
        for arena in self.pools.arenas_of(pool):
            self.reserve.give_back(arena, self._hooks)
