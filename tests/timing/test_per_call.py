"""The profiler's records of several calls, split by call, without what gpulab adds."""

import pytest
import torch

from gpulab.gpus import gpu
from gpulab.timing._profiler import per_call
from gpulab.virtual import Gaps
from tests.support import fake_profiler
from tests.support.fake_profiler import FakeGpu

GAPS = Gaps()
KERNEL_NS = 10_000
N_CYCLES = KERNEL_NS * gpu("H200").boost_clock_mhz // 1000


def kernel() -> None:
    """Enqueue a kernel of exactly 10 µs."""
    torch.cuda._sleep(N_CYCLES)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """Replace torch's GPU and profiler by fakes."""
    return fake_profiler.install(monkeypatch)


@pytest.mark.usefixtures("gpu")
def test_a_call_that_outlasted_its_sleep_is_dropped() -> None:
    """A call whose launches outlast the sleep is dropped, as its span would contain pauses."""

    def work() -> None:
        for _ in range(300):  # each shorter than its launch
            torch.cuda._sleep(N_CYCLES // 10)

    span_ns = 300 * 1_000 + 299 * GAPS.work_to_work_ns
    spans_s = [call.span_s for call in per_call(work, n_samples=3)]
    assert spans_s == pytest.approx([span_ns * 1e-9] * 3, abs=1e-15)


def test_the_profilers_records_are_split_by_call(fake: FakeGpu) -> None:
    """Launches of `before`, sleeps and events are removed from each call."""
    calls = per_call(lambda: fake.launch("work"), n_samples=4, before=lambda: fake.launch("flush"))
    assert [[item.name for item in call.records] for call in calls] == [["work"]] * 4
    assert [[item.name for item in call.calls] for call in calls] == [["cudaLaunchKernel"]] * 4
    assert [call.busy_s for call in calls] == pytest.approx([5e-6] * 4, abs=1e-15)


def test_a_lost_record_is_counted(fake: FakeGpu) -> None:
    """A launch without a record counts as missing in its own call only."""
    # `lose` counts launches. Eight are warm-up; the first call has 15 with its sleeps; each later
    # call has its own sleep, after one long sleep for all of them.
    fake.lose = {8 + 15 + 5}
    calls = per_call(lambda: fake.launch("work"), n_samples=4)
    assert [call.n_missing for call in calls] == [0, 0, 1, 0]
    assert [call.dropped for call in calls] == [False, False, True, False]


def test_a_lost_node_of_a_graph_is_counted(fake: FakeGpu) -> None:
    """A replay with fewer records than others of the same graph lacks the difference."""
    sizes = iter([3, 1, 3])
    calls = per_call(lambda: fake.replay(next(sizes)), n_samples=3)
    assert [call.n_records for call in calls] == [3, 1, 3]
    assert [call.n_missing for call in calls] == [0, 2, 0]


def test_a_record_whose_launch_was_not_seen_goes_to_the_call_before(fake: FakeGpu) -> None:
    """A record without a known launch belongs to the last call with a lower number."""

    def work() -> None:
        fake.launch("first")
        fake.launch("second")

    fake.hide = {8 + 16 + 4}  # the last launch of the second call, sleeps counted
    calls = per_call(work, n_samples=3)
    assert [[item.name for item in call.records] for call in calls] == [["first", "second"]] * 3
    assert [len(call.calls) for call in calls] == [2, 1, 2]
    assert calls[1].records[1].launch_start_ns is None
    assert calls[1].records[1].launch_end_ns is None


def test_the_host_is_kept_ahead_by_a_sleep(fake: FakeGpu) -> None:
    """One long sleep per batch is used, until single calls have failed three times."""

    def n_long(n_thrown_away: int = 8) -> int:
        return sum(n_cycles >= 100_000 for n_cycles in fake.sleeps[n_thrown_away:])

    per_call(fake.launch, n_samples=5)
    assert n_long() == 2  # the first call alone tells how long the host takes
    fake.sleeps.clear()
    fake.is_done = True
    per_call(fake.launch, n_samples=5)
    assert n_long() == 1 + 2 + 2  # a call, five and two of them, and twice a call again
