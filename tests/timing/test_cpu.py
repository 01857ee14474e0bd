"""CPU work is timed once it is steady, in loops if it is short, and within the time limit."""

import random
import time
from itertools import accumulate

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
    """Work that gets slower, or scatters, takes twice the limit and at most one batch more."""
    draw = random.Random(seed)
    base_s, growth, max_time_s = draw.uniform(2e-3, 1e-2), 1.0 + 0.1 * (seed % 2), 0.3
    scatter = [1.0, 1.0] if growth > 1 else [1.0, 1.5]
    durations_s = [base_s * growth ** ((n + 2) // 4) * draw.choice(scatter) for n in range(400)]
    work = Ticking(monkeypatch, *durations_s)
    samples_s = _cpu.take_cpu_samples(work, precision=1e-9, max_time_s=max_time_s)
    n_batch = min(10, int(_cpu._BATCH_S / base_s))
    assert sum(samples_s[:-n_batch]) < max_time_s
    n_in_time = sum(end_s < 2 * max_time_s for end_s in accumulate(durations_s))
    assert work.n_calls <= n_in_time + n_batch + 2


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
