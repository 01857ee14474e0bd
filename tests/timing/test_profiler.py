"""Profiler records as timing methods: busy time and span, exact on the virtual GPU."""

import pytest
import torch

from gpulab.gpus import gpu
from gpulab.timing import take_samples
from gpulab.virtual import Gaps

pytestmark = pytest.mark.usefixtures("gpu")


CYCLES_PER_US = gpu("H200").boost_clock_mhz
GAP_NS = Gaps().work_to_work_ns


def two_kernels() -> None:
    """Enqueue kernels of 10 and 20 µs."""
    torch.cuda._sleep(10 * CYCLES_PER_US)
    torch.cuda._sleep(20 * CYCLES_PER_US)


def ns(samples_s: list[float]) -> list[int]:
    """Return the samples in whole nanoseconds."""
    return [round(sample_s * 1e9) for sample_s in samples_s]


def test_calls_of_a_sample_share_its_time() -> None:
    """Two calls in a sample share its time; the span contains three pauses."""
    assert ns(take_samples("profiler", two_kernels, n_samples=2, inner_loops=2)) == [30_000] * 2
    shared_ns = 30_000 + 3 * GAP_NS // 2
    assert (
        ns(take_samples("profiler-span", two_kernels, n_samples=2, inner_loops=2))
        == [shared_ns] * 2
    )
