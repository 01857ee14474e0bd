"""The L2 cache keeps what was used last, and later kernels pay for writing results back."""

import pytest

from gpulab.virtual import L2Cache, Traffic
from gpulab.virtual.simulator._l2_cache import CacheAccess

MB = 1_000_000
L2_BYTES = 60 * MB
DIRTY_BYTES = 28_200_000  # 47 % of the cache
FLUSH, TIMED, OTHER = 1, 2, 3


def reads(address: int, size_bytes: int) -> list[CacheAccess]:
    """Return the accesses of a kernel that only reads."""
    return [CacheAccess(address, size_bytes, is_write=False)]


def writes(address: int, size_bytes: int) -> list[CacheAccess]:
    """Return the accesses of a kernel that only writes."""
    return [CacheAccess(address, size_bytes, is_write=True)]


@pytest.fixture
def cache() -> L2Cache:
    """Return a cache after a flush that wrote 256 MB."""
    cache = L2Cache(L2_BYTES)
    assert cache.serve(writes(FLUSH, 256 * MB)) == Traffic(0, 256 * MB, 0)
    return cache


def test_a_kernel_that_reads_waits_for_dirty_lines_it_evicts(cache: L2Cache) -> None:
    """A reading kernel writes back 34 % of its bytes until no dirty line is left."""
    assert cache.serve(reads(TIMED, 30 * MB)) == Traffic(0, 30 * MB, 10_200_000)
    assert cache.serve(reads(OTHER, 300 * MB)).late_bytes == DIRTY_BYTES - 10_200_000
    assert cache.serve(reads(TIMED, 300 * MB)).late_bytes == 0


def test_a_flush_that_reads_leaves_nothing_to_write_back(cache: L2Cache) -> None:
    """A flush that reads twice the cache leaves nothing to write back; once leaves a part."""
    cache.serve(reads(FLUSH, 2 * L2_BYTES))
    assert cache.serve(reads(TIMED, 30 * MB)).late_bytes == 0
    cache.serve(writes(OTHER, 256 * MB))
    cache.serve(reads(FLUSH, L2_BYTES))
    assert cache.serve(reads(TIMED, 30 * MB)).late_bytes == DIRTY_BYTES - 20_400_000


def test_a_kernel_that_only_writes_is_not_slowed(cache: L2Cache) -> None:
    """A kernel that only writes does not wait for write-backs, and leaves its own results."""
    assert cache.serve(writes(TIMED, 10 * MB)).late_bytes == 0
    assert cache.serve(reads(OTHER, 300 * MB)).late_bytes == DIRTY_BYTES


def test_own_results_hide_most_of_what_they_evict(cache: L2Cache) -> None:
    """A kernel that evicts 10 MB for 10 MB of its results waits for 4 of them."""
    kernel = [*reads(TIMED, 10 * MB), *writes(OTHER, 10 * MB)]
    assert cache.serve(kernel).late_bytes == 4 * MB


def test_only_what_has_no_room_is_evicted() -> None:
    """After a small flush most results have room, and only the rest evicts dirty lines."""
    cache = L2Cache(L2_BYTES)
    cache.serve(writes(FLUSH, 20 * MB))
    kernel = [*reads(TIMED, 1 * MB), *writes(OTHER, 10 * MB)]
    # 1.8 MB have no room, and reading and writing 11 MB evicts 34 % of them, 3.74 MB.
    # The results hide 60 % of these, and 1.496 MB are left.
    assert cache.serve(kernel).late_bytes == 1_496_000


def test_overwritten_results_are_not_written_back() -> None:
    """A result that is written again keeps its room and causes no write-back."""
    cache = L2Cache(L2_BYTES)
    kernel = [*reads(TIMED, 1 * MB), *writes(OTHER, 10 * MB)]
    for _ in range(5):
        assert cache.serve(kernel).late_bytes == 0
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == 10 * MB


def test_a_large_kernel_waits_for_its_own_earlier_results() -> None:
    """They leave the cache before it comes to write them again; after a clean start none wait."""
    cache = L2Cache(L2_BYTES)
    kernel = [*reads(TIMED, 60 * MB), *writes(OTHER, 60 * MB)]
    late = [cache.serve(kernel).late_bytes for _ in range(2)]
    assert late == [0, DIRTY_BYTES - int(0.6 * DIRTY_BYTES)]


def test_results_above_the_dirty_limit_leave_at_once() -> None:
    """At most 47 % of the cache is dirty, however much is written."""
    cache = L2Cache(L2_BYTES)
    cache.serve([*writes(TIMED, 100 * MB), *writes(OTHER, 100 * MB)])
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == DIRTY_BYTES


def test_the_oldest_results_are_evicted_first() -> None:
    """The oldest dirty results are evicted first, and later ones can still be overwritten."""
    cache = L2Cache(L2_BYTES)
    for address in (TIMED, OTHER):
        cache.serve(writes(address, 10 * MB))
    assert cache.serve(reads(FLUSH, 30 * MB)).late_bytes == 10_200_000
    cache.serve(writes(OTHER, 1 * MB))  # in place of the 9.8 MB that are left of it
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == 1 * MB


def test_results_that_are_written_again_become_the_latest() -> None:
    """After that the other ones are the oldest, and all of them are evicted."""
    cache = L2Cache(L2_BYTES)
    for address in (OTHER, TIMED, OTHER, TIMED):
        cache.serve(writes(address, 10 * MB))
    assert cache.serve(reads(FLUSH, 30 * MB)).late_bytes == 10_200_000
    cache.serve(writes(OTHER, 1 * MB))  # evicts 34 % of its size from the 9.8 MB of the others
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == 9_800_000 - 340_000 + 1 * MB


def test_a_change_in_place_still_evicts_other_results(cache: L2Cache) -> None:
    """An update in place of 10 MB that were only read before needs room among the results."""
    cache.serve(reads(TIMED, 10 * MB))  # evicts 3.4 MB of the 10 that the update needs
    in_place = [*reads(TIMED, 10 * MB), *writes(TIMED, 10 * MB)]
    assert cache.serve(in_place) == Traffic(20 * MB, 0, 2_640_000)
    assert cache.serve(in_place) == Traffic(20 * MB, 0, 0)


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


def test_a_tensor_that_is_read_twice_counts_once() -> None:
    """As in ``x * x`` on an H100, which takes no longer than a kernel with one argument."""
    cache = L2Cache(L2_BYTES)
    once = [*reads(TIMED, 4 * MB), *writes(OTHER, 4 * MB)]
    twice = [*reads(TIMED, 4 * MB), *once]
    assert cache.serve(twice) == Traffic(0, 8 * MB)
    assert cache.serve(twice) == cache.serve(once) == Traffic(8 * MB, 0)
