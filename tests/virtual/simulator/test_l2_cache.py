"""The virtual GPU's cache keeps dirty lines, and later kernels pay for writing them back."""

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
    """Return the cache as a flush by writing 256 MB leaves it."""
    cache = L2Cache(L2_BYTES)
    assert cache.serve(writes(FLUSH, 256 * MB)) == Traffic(0, 256 * MB, 0)
    return cache


def test_a_kernel_that_reads_waits_for_what_it_pushes_out(cache: L2Cache) -> None:
    """34 % of the bytes that it reads, until nothing is left to be written back."""
    assert cache.serve(reads(TIMED, 30 * MB)) == Traffic(0, 30 * MB, 10_200_000)
    assert cache.serve(reads(OTHER, 300 * MB)).late_bytes == DIRTY_BYTES - 10_200_000
    assert cache.serve(reads(TIMED, 300 * MB)).late_bytes == 0


def test_a_flush_that_reads_leaves_nothing_to_write_back(cache: L2Cache) -> None:
    """Twice the cache is enough; once leaves a part, for which the next kernel waits."""
    cache.serve(reads(FLUSH, 2 * L2_BYTES))
    assert cache.serve(reads(TIMED, 30 * MB)).late_bytes == 0
    cache.serve(writes(OTHER, 256 * MB))
    cache.serve(reads(FLUSH, L2_BYTES))
    assert cache.serve(reads(TIMED, 30 * MB)).late_bytes == DIRTY_BYTES - 20_400_000


def test_a_kernel_that_only_writes_is_not_slowed(cache: L2Cache) -> None:
    """But what it writes takes the place of what was there, so its own results are left."""
    assert cache.serve(writes(TIMED, 10 * MB)).late_bytes == 0
    assert cache.serve(reads(OTHER, 300 * MB)).late_bytes == DIRTY_BYTES


def test_own_results_hide_most_of_what_they_push_out(cache: L2Cache) -> None:
    """If 10 MB are evicted for 10 MB of results, the kernel waits for 4."""
    kernel = [*reads(TIMED, 10 * MB), *writes(OTHER, 10 * MB)]
    assert cache.serve(kernel).late_bytes == 4 * MB


def test_only_what_has_no_room_is_pushed_out() -> None:
    """After a small write flush there is room for results."""
    cache = L2Cache(L2_BYTES)
    cache.serve(writes(FLUSH, 20 * MB))
    kernel = [*reads(TIMED, 1 * MB), *writes(OTHER, 10 * MB)]
    # 1.8 MB more than fit, but reading and writing 11 MB sweeps 3.74 MB out.
    assert cache.serve(kernel).late_bytes == 1_496_000


def test_what_is_written_over_never_goes_to_memory() -> None:
    """The same result again and again keeps its room, also when everything is in the cache."""
    cache = L2Cache(L2_BYTES)
    kernel = [*reads(TIMED, 1 * MB), *writes(OTHER, 10 * MB)]
    for _ in range(5):
        assert cache.serve(kernel).late_bytes == 0
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == 10 * MB


def test_more_results_than_are_kept_back_leave_at_once() -> None:
    """At most 47 % of the cache stays dirty, for any amount written."""
    cache = L2Cache(L2_BYTES)
    cache.serve([*writes(TIMED, 100 * MB), *writes(OTHER, 100 * MB)])
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == DIRTY_BYTES


def test_the_oldest_results_leave_first() -> None:
    """What is left of them is written over at no cost later."""
    cache = L2Cache(L2_BYTES)
    for address in (TIMED, OTHER):
        cache.serve(writes(address, 10 * MB))
    assert cache.serve(reads(FLUSH, 30 * MB)).late_bytes == 10_200_000
    cache.serve(writes(OTHER, 1 * MB))  # in place of the 9.8 MB that are left of it
    assert cache.serve(reads(FLUSH, 300 * MB)).late_bytes == 1 * MB


def test_what_is_in_the_cache_already_still_pushes_results_out(cache: L2Cache) -> None:
    """Written in place, 10 MB that were read before need room among the results."""
    cache.serve(reads(TIMED, 10 * MB))  # sweeps 3.4 MB out, of which the change needs 10
    in_place = [*reads(TIMED, 10 * MB), *writes(TIMED, 10 * MB)]
    assert cache.serve(in_place) == Traffic(20 * MB, 0, 2_640_000)
    assert cache.serve(in_place) == Traffic(20 * MB, 0, 0)
