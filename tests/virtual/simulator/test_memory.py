"""The L2 cache keeps what was read or written last, as far as it fits."""

import pytest

from gpulab.virtual import L2Cache, Traffic
from gpulab.virtual.simulator._l2_cache import CacheAccess

MB = 1 << 20


def test_the_second_reading_hits() -> None:
    """A second read of data that fits hits the cache."""
    cache = L2Cache(60 * MB)
    access = (CacheAccess(1, 8 * MB, is_write=False),)
    assert cache.serve(access) == Traffic(0, 8 * MB)
    assert cache.serve(access) == Traffic(8 * MB, 0)


@pytest.mark.parametrize("size_bytes", [4 * MB, 60 * MB])
@pytest.mark.parametrize("writes", [False, True])
def test_a_repeated_kernel_finds_less_the_more_it_touches(
    size_bytes: int, *, writes: bool
) -> None:
    """All at half of the cache, nothing from 0.85 on, as on an H100 and an H200."""
    found = []
    for share in (0.5, 0.7, 0.9):
        cache = L2Cache(size_bytes)
        size = int(size_bytes * share)
        accesses = [CacheAccess(1, size, is_write=False)]
        accesses += [CacheAccess(1, size, is_write=True)] * writes
        for _ in range(2):
            traffic = cache.serve(accesses)
        found.append(traffic.hit_bytes / (traffic.hit_bytes + traffic.miss_bytes))
    assert found == pytest.approx([1, 0.5, 0], abs=0.01)


def test_two_tensors_that_came_alone_do_not_stay_together() -> None:
    """A kernel that finds both pushes half of them out: with 0.7 of the cache it has no room."""
    cache = L2Cache(100 * MB)
    both = [CacheAccess(address, 35 * MB, is_write=False) for address in (1, 2)]
    for access in both:
        cache.serve([access])
    found = [cache.serve(both).hit_bytes / MB for _ in range(2)]
    assert found == pytest.approx([70, 35], abs=0.1)


def test_the_longest_unused_leaves_first() -> None:
    """A third array evicts the first, as two thirds of the L2 are usable."""
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
