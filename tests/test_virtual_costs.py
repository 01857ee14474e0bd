"""The cost model, beside the driver's kernel records of an H200 that it was fitted to."""

import pytest

from gpulab.gpus import gpu
from gpulab.virtual.cache import L2, Access, Traffic
from gpulab.virtual.costs import FAMILIES, Work, duration_ns, n_sms, sleep_ns

H200 = gpu("H200")

# Kernel records of an NVIDIA H200 (driver 580.159, torch 2.11, 2026-11-20), in µs.
RECORDED_GEMM_US = {
    ("float16", 128): 2.13,
    ("float16", 1024): 5.34,
    ("float16", 2048): 24.13,
    ("float16", 4096): 186.2,
    ("float32", 256): 7.5,  # from an event reading, less the floor
    ("float32", 2048): 343.4,
    ("float32", 4096): 2684.0,
}
RECORDED_ADD_US = {10: 0.90, 14: 0.93, 18: 1.34, 20: 2.30, 22: 11.28, 24: 48.2, 26: 184.1}


@pytest.mark.parametrize(("arithmetic", "n"), RECORDED_GEMM_US)
def test_matmuls_are_within_12_percent_of_the_record(arithmetic: str, n: int) -> None:
    """Square products, in half and single precision."""
    size_bytes = (2 if arithmetic == "float16" else 4) * 3 * n * n
    work = Work("gemm", arithmetic, 2 * n**3, n * n)
    computed_us = duration_ns(work, Traffic(size_bytes, 0), H200) / 1e3
    assert computed_us == pytest.approx(RECORDED_GEMM_US[arithmetic, n], rel=0.12)


@pytest.mark.parametrize("exponent", RECORDED_ADD_US)
def test_additions_are_within_12_percent_of_the_record(exponent: int) -> None:
    """Single-precision additions that find in the cache what the previous one left."""
    size_bytes = 4 << exponent
    accesses = tuple(Access(i, size_bytes, is_write=i == 3) for i in (1, 2, 3))
    cache = L2(H200.l2_bytes)
    cache.serve(accesses)
    work = Work("elementwise", "float32", 0, 1 << exponent)
    computed_us = duration_ns(work, cache.serve(accesses), H200) / 1e3
    assert computed_us == pytest.approx(RECORDED_ADD_US[exponent], rel=0.12)


def test_a_million_cycles_last_half_a_millisecond() -> None:
    """1,000,000 cycles at 1980 MHz; the record of an H200 is 0.508 ms with the events' floor."""
    assert sleep_ns(1_000_000, H200) == 505_051


def test_a_slower_gpu_takes_longer() -> None:
    """The data sheet scales the model."""
    work = Work("gemm", "float16", 2 * 4096**3, 4096**2)
    traffic = Traffic(0, 6 * 4096**2)
    assert duration_ns(work, traffic, gpu("A100")) > 2 * duration_ns(work, traffic, H200)


def test_small_work_uses_few_multiprocessors() -> None:
    """A thousand elements fit on one, a large product takes all."""
    assert n_sms(Work("elementwise", "float32", 0, 1_000), H200) == 1
    assert n_sms(Work("gemm", "float16", 2 * 4096**3, 4096**2), H200) == 132


def test_every_family_has_a_floor_and_a_launch() -> None:
    """No kernel is free on the device or on the host."""
    assert all(family.floor_ns > 0 and family.launch_ns > 0 for family in FAMILIES.values())
