"""The L2 cache keeps what was read or written last, as far as it fits."""

from gpulab.virtual import L2Cache, Traffic
from gpulab.virtual.simulator._l2_cache import CacheAccess

MB = 1 << 20


def test_the_second_reading_hits() -> None:
    """A second read of data that fits hits the cache."""
    cache = L2Cache(60 * MB)
    access = (CacheAccess(1, 8 * MB, is_write=False),)
    assert cache.serve(access) == Traffic(0, 8 * MB)
    assert cache.serve(access) == Traffic(8 * MB, 0)


def test_the_longest_unused_leaves_first() -> None:
    """A third array evicts the first, as half of the L2 is usable."""
    cache = L2Cache(60 * MB)
    for address in (1, 2, 3):
        cache.serve((CacheAccess(address, 15 * MB, is_write=False),))
    assert cache.serve((CacheAccess(3, 15 * MB, is_write=False),)).hit_bytes == 15 * MB
    assert cache.serve((CacheAccess(1, 15 * MB, is_write=False),)).hit_bytes == 0


def test_small_writes_stay_and_large_ones_go_to_memory() -> None:
    """Written data that fits stays in the cache; larger data goes to memory each time."""
    cache = L2Cache(60 * MB)
    small = (CacheAccess(1, 4 * MB, is_write=True),)
    assert cache.serve(small) == Traffic(0, 4 * MB)
    assert cache.serve(small) == Traffic(4 * MB, 0)
    for _ in range(2):
        assert cache.serve((CacheAccess(2, 99 * MB, is_write=True),)) == Traffic(0, 99 * MB)
