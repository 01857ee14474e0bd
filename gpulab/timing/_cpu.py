"""Time work of the CPU by its own clock: warm up, take samples, stop in time."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import torch

from gpulab import stats
from gpulab.interrupts import contextmanager
from gpulab.timing._stopping import StoppingRule
from gpulab.work import Work, collector_paused

_LEAST_S = 20e-6  # a timed interval; the clock itself takes a few hundredths of a microsecond
_N_LEAST = 10  # samples, before any precision is claimed
_N_WARMUP = 100
_BATCH_S = 0.02


@dataclass(frozen=True, slots=True)
class CpuSamples:
    """Samples of the wall clock.

    Attributes
    ----------
    samples_s
        Seconds per call, in the order taken.
    inner_loops
        Calls in each timed interval.
    """

    samples_s: tuple[float, ...]
    inner_loops: int


@contextmanager
def cpu_threads(n_threads: int | None) -> Iterator[None]:
    """Have torch use so many threads within the block; None: as it is set."""
    before = torch.get_num_threads()
    try:
        if n_threads is not None:
            torch.set_num_threads(n_threads)
        yield
    finally:
        torch.set_num_threads(before)


def take_cpu_samples(work: Work, *, precision: float, max_time_s: float) -> CpuSamples:
    """Return samples of work on the CPU, by its own clock.

    They end when their median is known within ``precision``, or time is up. The warm-up ends
    when its calls are steady, after 100 of them, or after ``max_time_s``; the samples end after
    as long again. Work whose first call takes longer than that is called no second time: that
    call is its only sample, first use included. Must run where the clock is the real one.
    """
    with collector_paused():
        first_s = _timed(work, 1)
        if first_s >= max_time_s:
            return CpuSamples((first_s,), 1)
        call_s = _warmed_up(work, first_s, max_time_s)
        inner_loops = max(1, math.ceil(_LEAST_S / call_s)) if call_s > 0 else 1
        rule = StoppingRule(precision=precision, max_time_s=max_time_s, n_least=_N_LEAST)
        return CpuSamples(_samples(work, inner_loops, call_s, rule), inner_loops)


def _warmed_up(work: Work, first_s: float, max_time_s: float) -> float:
    """Return what a call takes when calls are steady."""
    calls_s = [first_s]
    end_s = time.perf_counter() + max_time_s
    while stats.steady_from(calls_s) == len(calls_s):
        if len(calls_s) >= _N_WARMUP or time.perf_counter() >= end_s:
            break
        calls_s.append(_timed(work, 1))
    return median(calls_s[len(calls_s) // 2 :])


def _samples(work: Work, inner_loops: int, call_s: float, rule: StoppingRule) -> tuple[float, ...]:
    samples_s: list[float] = []

    def judged() -> list[float]:
        return samples_s

    start_s, elapsed_s = time.perf_counter(), 0.0
    n_batch = max(1, min(_N_LEAST, int(_BATCH_S / max(call_s * inner_loops, 1e-9))))
    while not rule.reason(len(samples_s), elapsed_s, judged):
        # Batches grow with the samples, so that sorting them all again stays cheap beside them.
        n_next = max(n_batch, len(samples_s) // 4 if call_s * len(samples_s) < _BATCH_S else 1)
        samples_s.extend(_timed(work, inner_loops) for _ in range(n_next))
        elapsed_s = time.perf_counter() - start_s
    return tuple(samples_s)


def _timed(work: Work, inner_loops: int) -> float:
    start_s = time.perf_counter()
    for _ in range(inner_loops):
        work()
    # A clock that is set back in between gives no negative time.
    return max(0.0, time.perf_counter() - start_s) / inner_loops
