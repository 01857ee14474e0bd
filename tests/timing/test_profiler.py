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


def test_pauses_are_no_busy_time() -> None:
    """Busy time is the sum of the kernels, without the pause between them."""
    assert ns(take_samples("profiler", two_kernels, n_samples=3)) == [30_000] * 3


def test_span_contains_the_pauses() -> None:
    """The span goes from the first start to the last end, pause included."""
    assert ns(take_samples("profiler-span", two_kernels, n_samples=3)) == [30_000 + GAP_NS] * 3


def test_calls_of_a_sample_share_its_time() -> None:
    """Two calls in a sample share its time; the span contains three pauses."""
    assert ns(take_samples("profiler", two_kernels, n_samples=2, inner_loops=2)) == [30_000] * 2
    shared_ns = 30_000 + 3 * GAP_NS // 2
    assert (
        ns(take_samples("profiler-span", two_kernels, n_samples=2, inner_loops=2))
        == [shared_ns] * 2
    )


def test_kernels_side_by_side_count_once() -> None:
    """Two kernels of 10 µs at the same time keep the device busy for about 10 µs."""
    side = torch.cuda.Stream()

    def work() -> None:
        side.wait_stream(torch.cuda.current_stream())
        torch.cuda._sleep(10 * CYCLES_PER_US)
        with torch.cuda.stream(side):
            torch.cuda._sleep(10 * CYCLES_PER_US)

    (busy_s,) = take_samples("profiler", work, n_samples=1)
    assert 10e-6 <= busy_s < 15e-6


def test_what_goes_before_is_not_counted() -> None:
    """A kernel launched before the sample, such as a flush, is not counted."""

    def before() -> None:
        torch.cuda._sleep(50 * CYCLES_PER_US)

    assert ns(take_samples("profiler", two_kernels, n_samples=2, before=before)) == [30_000] * 2
