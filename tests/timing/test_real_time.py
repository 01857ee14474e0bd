"""The real time of measurements on a virtual GPU: its limit, its finding, its bar, and Ctrl-C."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

import gpulab
from gpulab.core import progress
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.gpus import gpu
from gpulab.timing import METHODS, _real_time, compare
from gpulab.timing._samplers import EventSampler

CYCLES_PER_US = gpu("H200").boost_clock_mhz
# A warm-up call, one that looks for waits, and a sample; the default method repeats the first
# sample, because its first sleep is a guess.
N_LEAST = 4


@dataclass
class RealClock:
    """A real clock that goes on only while slow work is called."""

    now_s: float = 5_000.0  # computers run for hours

    def work(self, call_s: float, length_us: Callable[[], float] = lambda: 20.0) -> Work:
        """Return work that takes so long on this clock, and so long on the GPU."""

        def slow() -> None:
            torch.cuda._sleep(round(length_us() * CYCLES_PER_US))
            self.now_s += call_s

        return slow


@pytest.fixture
def real_clock(monkeypatch: pytest.MonkeyPatch) -> RealClock:
    """Return the clock that measurements and bars read as the real one, with the usual limit."""
    clock = RealClock()
    shown = SimpleNamespace(monotonic=lambda: clock.now_s)
    monkeypatch.setattr(_real_time, "time", shown)
    monkeypatch.setattr(progress, "time", shown)
    monkeypatch.setattr(_real_time, "_LEAST_S", 2.0)
    return clock


def measured(work: Work, **options: object) -> Measurement:
    """Return a measurement on a virtual H200 of its own, whose context exists already."""
    with gpulab.virtual_gpu("H200", first_use=False):
        try:
            return gpulab.measure(work, **options)  # type: ignore[arg-type]  # checked there
        except KeyboardInterrupt:  # otherwise it would end the whole run of pytest
            pytest.fail("the interrupt reached the caller")


def notes(measurement: Measurement) -> list[str]:
    """Return the findings about real time."""
    return [str(seen) for seen in measurement.findings if seen.code == "slow-simulation"]


def test_no_measurement_takes_longer_than_its_limit(real_clock: RealClock) -> None:
    """Over random works and limits: no longer than the limit, or the few calls it needs."""
    chosen = random.Random(5)
    for _ in range(25):
        call_s, max_time_s = 10 ** chosen.uniform(-2.5, 1), 10 ** chosen.uniform(-2, 1)
        method = chosen.choice(["naive", "synchronized", "events", "calibrated", "profiler"])
        lengths = itertools.cycle([20.0, 30.0])  # never precise
        work = real_clock.work(call_s, lambda lengths=lengths: next(lengths))
        start_s = real_clock.now_s
        found = measured(work, method=method, max_time_s=max_time_s, precision=1e-9)
        taken_s = real_clock.now_s - start_s
        limit_s = max(2.0, max_time_s)
        # One more than fits, and the samples that the default method repeats.
        assert taken_s <= max(limit_s + 2 * call_s, N_LEAST * call_s) * 1.001, (method, call_s)
        was_cut = found.stopped_by == "real_time" or found.n_warmup < 11
        assert notes(found) or not was_cut


@pytest.mark.parametrize("method", METHODS)
def test_samples_are_the_same_where_the_limit_is_not_reached(
    method: str, real_clock: RealClock
) -> None:
    """Work that takes longer to simulate, but stays within the limit, has the same samples."""
    samples_s = []
    for call_s in (0.0, 0.02):
        lengths = itertools.cycle([20.0, 21.0, 20.0])
        work = real_clock.work(call_s, lambda lengths=lengths: next(lengths))
        found = measured(work, method=method, precision=0.1)
        assert notes(found) == []
        samples_s.append(found.samples_s)
    assert samples_s[0] == samples_s[1]


def test_a_comparison_has_the_limit_too(real_clock: RealClock) -> None:
    """Both warm-ups and all pairs share the real time, and both records say so."""
    with gpulab.virtual_gpu("H200", first_use=False):
        found = compare(real_clock.work(0.1), real_clock.work(0.1), max_time_s=4.0, precision=1e-9)
    assert found.first.stopped_by == found.second.stopped_by == "real_time"
    assert 4.0 <= real_clock.now_s - RealClock.now_s <= 4.5
    assert notes(found.first) == notes(found.second) != []


def interrupted_in(call: int, work: Callable[[], object]) -> Work:
    """Return work that raises KeyboardInterrupt in its call of this number."""
    numbers = itertools.count(1)

    def interrupted() -> None:
        if next(numbers) == call:
            raise KeyboardInterrupt
        work()

    return interrupted


@pytest.mark.parametrize("method", [name for name in METHODS if name != "graph"])
def test_an_interrupt_keeps_the_samples_of_a_batch_that_is_not_over(method: str) -> None:
    """All 50 samples are one batch here; Ctrl-C in the 40th keeps those that were read."""
    work = interrupted_in(40, lambda: torch.cuda._sleep(20 * CYCLES_PER_US))
    found = measured(work, method=method, n_samples=50, n_warmup=1)
    assert found.stopped_by == "interrupt"
    # What is lost: a group of six that is enqueued together, and one sample that was repeated. For
    # events it is what the GPU has not done yet: it is slower than the host.
    assert (5 if method == "events" else 30) <= found.n_samples <= 38
    assert notes(found) == []


def test_an_interrupt_while_it_waits_keeps_the_events_that_are_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C in the wait for twenty samples of 100 µs, after 1 ms, keeps those before it."""
    taken_s: list[float] = []
    with gpulab.virtual_gpu("H200", first_use=False) as virtual:
        sampler = EventSampler(lambda: torch.cuda._sleep(100 * CYCLES_PER_US))
        sampler.take(20, taken_s.extend)
        whole_s = [*taken_s]
        wait = torch.cuda.synchronize
        waits = itertools.count(1)

        def interrupted() -> None:
            if next(waits) == 1:  # after the events were made
                return wait()
            virtual.machine.host.spend(1_000_000)
            raise KeyboardInterrupt

        monkeypatch.setattr(torch.cuda, "synchronize", interrupted)
        taken_s.clear()
        with pytest.raises(KeyboardInterrupt):
            sampler.take(20, taken_s.extend)
        monkeypatch.undo()
    assert 8 <= len(taken_s) <= 12
    assert taken_s == pytest.approx(whole_s[: len(taken_s)], rel=0.01)


def test_the_bar_counts_from_the_warm_up_by_the_real_clock(
    real_clock: RealClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second after the first call the bar shows the calls, and then the samples."""
    measured(real_clock.work(0.4), n_samples=4, n_warmup=4, method="synchronized")
    shown = [line.strip() for line in capsys.readouterr().err.split("\r") if line.strip()]
    assert [line.partition("[")[0].partition("|")[0].strip() for line in shown] == [
        "warming up: 3 calls",
        *[f"measuring:  {percent}%" for percent in (25, 50, 75)],
    ]
    assert all("00:01" in line or "00:02" in line for line in shown)
