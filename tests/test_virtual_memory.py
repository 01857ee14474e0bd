"""The cache and the allocator of the virtual GPU."""

import pytest

from gpulab.virtual.allocator import Allocator, OutOfDeviceMemoryError
from gpulab.virtual.cache import L2, Access, Traffic

MB = 1 << 20


def test_the_second_reading_hits() -> None:
    """What fits stays."""
    cache = L2(60 * MB)
    access = (Access(1, 8 * MB, is_write=False),)
    assert cache.serve(access) == Traffic(0, 8 * MB)
    assert cache.serve(access) == Traffic(8 * MB, 0)


def test_the_longest_unused_leaves_first() -> None:
    """Half of the L2 is usable: a third storage drives the first out."""
    cache = L2(60 * MB)
    for storage in (1, 2, 3):
        cache.serve((Access(storage, 15 * MB, is_write=False),))
    assert cache.serve((Access(3, 15 * MB, is_write=False),)).hit_bytes == 15 * MB
    assert cache.serve((Access(1, 15 * MB, is_write=False),)).hit_bytes == 0


def test_small_writes_stay_and_large_ones_go_to_memory() -> None:
    """A result that fits costs the cache's bandwidth, one that does not the memory's."""
    assert L2(60 * MB).serve((Access(1, 4 * MB, is_write=True),)) == Traffic(4 * MB, 0)
    cache = L2(60 * MB)
    for _ in range(2):
        assert cache.serve((Access(1, 99 * MB, is_write=True),)) == Traffic(0, 99 * MB)


def test_a_freed_storage_is_forgotten() -> None:
    """Its place in the cache is free for others."""
    cache = L2(60 * MB)
    cache.serve((Access(1, 30 * MB, is_write=False),))
    cache.forget(1)
    assert cache.serve((Access(1, 20 * MB, is_write=False),)).hit_bytes == 0
    assert cache.serve((Access(2, 10 * MB, is_write=False),)).hit_bytes == 0
    assert cache.serve((Access(1, 20 * MB, is_write=False),)).hit_bytes == 20 * MB


def test_a_freed_block_is_reused_on_its_stream_only() -> None:
    """Another stream must not get memory that earlier work may still use."""
    memory = Allocator(100 * MB)
    block = memory.allocate(3 * MB, stream=0)
    memory.release(block)
    assert memory.allocate(3 * MB, stream=1) != block
    assert memory.allocate(3 * MB, stream=0) == block


def test_blocks_do_not_overlap() -> None:
    """Small blocks are cut from one segment, 512 bytes apart."""
    memory = Allocator(100 * MB)
    blocks = [memory.allocate(100, stream=0) for _ in range(5)]
    addresses = [block.address for block in blocks]
    assert addresses == [addresses[0] + 512 * i for i in range(5)]
    assert memory.n_device_allocations == 1


def test_the_peak_is_kept() -> None:
    """Freed memory counts no longer, but the peak stays."""
    memory = Allocator(100 * MB)
    memory.release(memory.allocate(10 * MB, stream=0))
    assert (memory.allocated_bytes, memory.peak_bytes) == (0, 10 * MB)


def test_freed_blocks_are_given_back_before_memory_runs_out() -> None:
    """A request that fits only without the kept blocks succeeds."""
    memory = Allocator(100 * MB)
    memory.release(memory.allocate(80 * MB, stream=0))
    memory.allocate(90 * MB, stream=0)
    assert memory.reserved_bytes == 90 * MB


def test_too_much_memory_is_refused() -> None:
    """The message says how much is in use, and what to do."""
    memory = Allocator(10 * MB)
    memory.allocate(6 * MB, stream=0)
    with pytest.raises(OutOfDeviceMemoryError) as error:
        memory.allocate(6 * MB, stream=0)
    assert str(error.value) == (
        "6291456 bytes do not fit: 6291456 of 10485760 bytes are in use; "
        "delete tensors or choose smaller sizes"
    )
