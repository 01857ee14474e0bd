"""The cost model gives exact nanoseconds; docs/fidelity.md compares it with an H200."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.gpus import gpu
from gpulab.virtual import KernelWork, Traffic, duration_ns
from gpulab.virtual.simulator._l2_cache import CacheAccess
from gpulab.virtual.simulator.costs._kernel_cost import n_sms
from gpulab.virtual.simulator.costs._matmul_tiles import MatmulShape, schedule

H200 = gpu("H200")
NOTHING = Traffic(0, 0)
MB = 1 << 20


def matmul(arithmetic: str, m: int, k: int, n: int, kind: str = "gemm") -> KernelWork:
    """Return the work of a matmul."""
    sizes = MatmulShape(1, m, n, k, kind)
    return KernelWork("gemm", arithmetic, flops=sizes.flops, n_elements=m * n, matmul=sizes)


PRODUCT_NS = {
    ("float16", 128, 128, 128): 2_211,
    ("float16", 1024, 1024, 1024): 5_344,
    ("float16", 4096, 4096, 4096): 181_270,
    ("float16", 8192, 8192, 8192): 1_427_408,
    ("float32", 256, 256, 256): 6_172,
    ("float32", 1024, 1024, 1024): 59_227,
    ("float32", 4096, 4096, 4096): 2_709_853,
    ("tf32", 1024, 1024, 1024): 12_559,
    ("float64", 2048, 2048, 2048): 292_219,
    ("bfloat16", 16, 4096, 4096): 8_764,
}
KERNEL_NS = {
    ("elementwise", 256, 0, 3_072): 1_201,
    ("elementwise", 1 << 20, 12 * MB, 0): 2_453,
    ("elementwise", 1 << 26, 0, 768 * MB): 184_158,
    ("broadcast", 1 << 22, 32 * MB, 0): 11_187,
    ("fill", 1 << 24, 0, 64 * MB): 15_283,
    ("reduction", 1 << 10, 4_096, 0): 1_801,
    ("reduction", 1 << 24, 0, 64 * MB): 21_418,
    ("normal", 1 << 22, 0, 16 * MB): 12_610,
}


@pytest.mark.parametrize("sizes", PRODUCT_NS)
def test_a_product_takes_as_long_as_its_quickest_tiles(sizes: tuple[str, int, int, int]) -> None:
    """A matmul with its matrices in the cache takes the time of its fastest tiling."""
    assert duration_ns(matmul(*sizes), NOTHING, H200) == PRODUCT_NS[sizes]


@pytest.mark.parametrize("key", KERNEL_NS)
def test_a_kernel_over_elements_takes_its_floor_and_the_slower_of_two(
    key: tuple[str, int, int, int],
) -> None:
    """A kernel takes its family's floor plus the slower of its bytes and its elements."""
    family, n_elements, hit_bytes, miss_bytes = key
    work = KernelWork(family, n_elements=n_elements)
    assert duration_ns(work, Traffic(hit_bytes, miss_bytes), H200) == KERNEL_NS[key]


def test_a_lower_clock_stretches_arithmetic_and_nothing_else() -> None:
    """Half the clock doubles a matmul's arithmetic and leaves a memory-bound kernel as it is."""
    work = matmul("float16", 4096, 4096, 4096)
    found = schedule(work.matmul or MatmulShape(1, 1, 1, 1), "float16", H200)
    slower_ns = duration_ns(work, NOTHING, H200, 2.0) - duration_ns(work, NOTHING, H200)
    assert slower_ns == pytest.approx(found.arithmetic_ns, abs=1)
    moving = KernelWork("elementwise", n_elements=MB)
    traffic = Traffic(0, 12 * MB)
    assert duration_ns(moving, traffic, H200, 2.0) == duration_ns(moving, traffic, H200)


def test_a_long_sum_of_a_small_result_is_split() -> None:
    """A long sum of a small result is split among 32 multiprocessors for each of its tiles."""
    long = schedule(MatmulShape(1, 64, 64, 8192), "float32", H200)
    assert long.n_tiles == 4 * 32
    assert long.after_ns == 1_750 + 32 * 70


def test_rows_off_16_bytes_take_older_kernels() -> None:
    """A matmul whose rows are not aligned to 16 bytes takes over four times as long."""
    aligned = schedule(MatmulShape(1, 4096, 4096, 4096), "float16", H200)
    other = schedule(MatmulShape(1, 4096, 4096, 4096, is_aligned=False), "float16", H200)
    assert other.total_ns > 4 * aligned.total_ns


def test_a_kernel_makes_its_part_of_the_accesses() -> None:
    """A kernel makes only its part of a call's accesses: reads, writes, or limited bytes."""
    read, write = CacheAccess(1, 100, is_write=False), CacheAccess(2, 50, is_write=True)
    both = (read, write)
    assert KernelWork("copy").accesses_of(both) == both
    assert KernelWork("copy", writes=False).accesses_of(both) == (read,)
    assert KernelWork("copy", reads=False).accesses_of(both) == (write,)
    assert KernelWork("copy", reads=False, writes=False).accesses_of(both) == ()
    assert KernelWork("rows", most_bytes=60).accesses_of(both) == (
        CacheAccess(1, 60, is_write=False),
        write,
    )


def test_small_work_uses_few_multiprocessors() -> None:
    """A kernel uses as many multiprocessors as its elements, rows or tiles can fill."""
    assert n_sms(KernelWork("elementwise", n_elements=1_000), H200) == 1
    assert n_sms(KernelWork("norm", n_elements=1 << 20, n_rows=8), H200) == 8
    assert n_sms(matmul("float16", 4096, 4096, 4096), H200) == 132


@given(
    st.sampled_from(["elementwise", "scan", "strided", "softmax in shared memory"]),
    st.integers(1, 1 << 30),
    st.floats(0.1, 4.0),
)
def test_memory_of_another_rate_stretches_a_kernel_by_at_most_its_ratio(
    family: str, n_bytes: int, rate: float
) -> None:
    """On a GPU that differs in its memory alone, the time changes by at most the ratio."""
    other = replace(H200, bandwidth_bytes_per_s=H200.bandwidth_bytes_per_s * rate)
    work, traffic = KernelWork(family, n_elements=n_bytes // 4 + 1), Traffic(0, n_bytes)
    here, there = (duration_ns(work, traffic, spec) for spec in (H200, other))
    low, high = sorted((1.0, 1 / rate))
    assert here * low - 1 <= there <= here * high + 1


def test_only_what_uses_the_memory_depends_on_it() -> None:
    """On half of the bandwidth a copy takes twice as long, a scan little more, a hit no more."""
    slow = replace(H200, bandwidth_bytes_per_s=H200.bandwidth_bytes_per_s / 2)

    def ratio(family: str, traffic: Traffic) -> float:
        work = KernelWork(family, n_elements=traffic.miss_bytes // 4 + 1)
        return duration_ns(work, traffic, slow) / duration_ns(work, traffic, H200)

    large = Traffic(0, 1 << 30)
    assert ratio("copy", large) == pytest.approx(2.0, abs=0.01)
    assert ratio("scan", large) == pytest.approx(math.sqrt(1 + 3 * 0.186**2), abs=0.01)
    assert ratio("copy", Traffic(1 << 20, 0)) == 1.0
