"""Events after a sleep are exact if the host is ahead, and counted as starved if it cannot be."""

import pytest
import torch

from gpulab.gpus import gpu
from gpulab.timing._saturated import SaturatedSampler
from gpulab.virtual import Gaps, VirtualGpu

pytestmark = pytest.mark.usefixtures("gpu")


GAPS = Gaps()
TICK_NS = 32
FLOOR_NS = GAPS.mark_to_work_ns + GAPS.work_to_mark_ns
CYCLES_PER_US = gpu("H200").boost_clock_mhz


def kernel(duration_us: int = 10) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(duration_us * CYCLES_PER_US)


def ns(samples_s: list[float]) -> list[int]:
    """Return the samples in whole nanoseconds."""
    return [round(sample_s * 1e9) for sample_s in samples_s]


def test_more_samples_than_the_queue_holds_are_taken_in_smaller_batches() -> None:
    """With 200 launches in a sample, batches get smaller until every sample is valid."""

    def many() -> None:
        for _ in range(200):
            kernel(1)

    take = SaturatedSampler(many)
    duration_ns = 200 * 1_000 + 199 * GAPS.work_to_work_ns + FLOOR_NS
    assert ns(take(12)) == pytest.approx([duration_ns] * 12, abs=TICK_NS)
    assert take.n_starved == 0


def test_work_that_waits_is_starved() -> None:
    """No sleep helps work that waits: after three tries the samples count as starved."""
    x = torch.ones(4, device="cuda")
    take = SaturatedSampler(lambda: x.sum().item())
    assert len(take(5)) == 5
    assert take.n_starved == 5
    *thrown_away, _, _, _, _, _ = take.counted
    assert not any(thrown_away)
    assert sum(take.counted) == 5


def test_work_that_overfills_the_queue_is_starved(gpu: VirtualGpu) -> None:
    """Giving up takes under 0.2 s: the sleep does not grow without limit."""

    def endless() -> None:
        for _ in range(1_500):
            kernel(1)

    take = SaturatedSampler(endless)
    start_s = gpu.now_s
    assert len(take(3)) == 3
    assert take.n_starved == 3
    assert gpu.now_s - start_s < 0.2
