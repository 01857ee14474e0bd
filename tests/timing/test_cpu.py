"""CPU work is timed once it is steady, in loops if it is short, and within the time limit."""

import random
import time

import pytest

from gpulab.timing import _cpu


class Ticking:
    """Work that advances its own clock by the given durations."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *durations_s: float) -> None:
        self.now_s, self.n_calls, self.durations_s = 0.0, 0, durations_s
        monkeypatch.setattr(time, "perf_counter", lambda: self.now_s)

    def __call__(self) -> None:
        """Advance the clock by the next duration."""
        self.now_s += self.durations_s[min(self.n_calls, len(self.durations_s) - 1)]
        self.n_calls += 1


def test_cpu_times_short_work_in_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short CPU work is looped until an interval takes 20 µs, and a sample is one call's share."""
    work = Ticking(monkeypatch, 1.5e-6)
    samples_s = _cpu.take_cpu_samples(work, precision=0.01, max_time_s=1.0)
    assert samples_s == pytest.approx([1.5e-6] * 10)
    assert work.n_calls == 8 + 10 * 14  # of the warm-up and of ten samples


def test_cpu_calls_slow_work_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU work longer than the time limit has one sample."""
    work = Ticking(monkeypatch, 20.0)
    samples_s = _cpu.take_cpu_samples(work, precision=0.01, max_time_s=0.3)
    assert (samples_s, work.n_calls) == ((20.0,), 1)


@pytest.mark.parametrize("seed", range(10))
def test_cpu_stops_in_time(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Work that gets slower and slower is called for twice the limit, and a little longer."""
    draw = random.Random(seed)
    first_s, growth, max_time_s = 10 ** draw.uniform(-5, -2), draw.uniform(1.0, 1.03), 0.3
    durations_s = [first_s * growth**n * draw.choice([1, 2]) for n in range(500)]
    work = Ticking(monkeypatch, *durations_s)
    samples_s = _cpu.take_cpu_samples(work, precision=1e-9, max_time_s=max_time_s)
    longest_s = durations_s[min(work.n_calls, 500) - 1]
    assert work.now_s <= 2 * max_time_s + 2 * _cpu._BATCH_S + 10 * longest_s
    assert len(samples_s) >= 1


def test_an_interrupt_between_cpu_samples_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C ends CPU samples with an error: an imprecise time would count as a finished one."""
    work = Ticking(monkeypatch, *[0.01, 0.02] * 500)

    def interrupted() -> None:
        work()
        if work.n_calls == 150:  # after at most 100 calls of the warm-up, so among the samples
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _cpu.take_cpu_samples(interrupted, precision=1e-9, max_time_s=3600.0)
    assert work.n_calls == 150
