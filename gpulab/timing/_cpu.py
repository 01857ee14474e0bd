"""Time work on the CPU with the host's clock: warm up, take samples, stop in time."""

import math
import time
from collections.abc import Iterator
from statistics import median

import torch

from gpulab import stats
from gpulab.core.interrupts import contextmanager
from gpulab.device.work import Work, collector_paused
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._stopping import StoppingRule, take_in_turns

# Shortest timed interval. Reading the clock takes a few hundredths of a microsecond, which is
# little beside it.
_LEAST_S = 20e-6
_N_LEAST = 10  # the precision is not checked before this many samples
_N_WARMUP = 100
# The samples between two checks of the stopping rule take about this long, so that slow work stops
# soon after its time limit.
_BATCH_S = 0.02


@contextmanager
def cpu_threads(n_threads: int | None) -> Iterator[None]:
    """Let PyTorch use ``n_threads`` CPU threads inside the block; None changes nothing."""
    before = torch.get_num_threads()
    try:
        if n_threads is not None:
            torch.set_num_threads(n_threads)
        yield
    finally:
        torch.set_num_threads(before)


def take_cpu_samples(work: Work, *, precision: float, max_time_s: float) -> tuple[float, ...]:
    """Return samples of work on the CPU in seconds per call, timed with the host's clock.

    The warm-up ends when its times are steady, after 100 calls, or after ``max_time_s``. The
    samples end when their median is known within ``precision``, or after another ``max_time_s``.
    Work whose first call takes longer than ``max_time_s`` is not called again: that call, with the
    costs of first use, is its only sample. Call this outside a virtual GPU, which replaces the
    host's clock.
    """
    with collector_paused():
        first_s = _timed(work, 1)
        if first_s >= max_time_s:
            return (first_s,)
        call_s = _warmed_up(work, first_s, max_time_s)
        inner_loops = max(1, math.ceil(_LEAST_S / call_s)) if call_s > 0 else 1
        options = MeasurementOptions(precision=precision, max_time_s=max_time_s)
        rule = StoppingRule(options=options, n_least=_N_LEAST)
        return _samples(work, inner_loops, call_s, rule)


def _warmed_up(work: Work, first_s: float, max_time_s: float) -> float:
    """Call the work until its times are steady, and return the seconds of a call then."""
    calls_s = [first_s]
    end_s = time.perf_counter() + max_time_s
    while stats.steady_from(calls_s) == len(calls_s):
        if len(calls_s) >= _N_WARMUP or time.perf_counter() >= end_s:
            break
        calls_s.append(_timed(work, 1))
    # Only the second half: if the times never got steady, the first calls still do not count.
    return median(calls_s[len(calls_s) // 2 :])


def _samples(work: Work, inner_loops: int, call_s: float, rule: StoppingRule) -> tuple[float, ...]:
    samples_s: list[float] = []

    def take(n_samples: int) -> None:
        samples_s.extend(_timed(work, inner_loops) for _ in range(n_samples))

    def n_next(n_taken: int, _elapsed_s: float) -> int:
        # Each check sorts all samples. Batches grow with the samples, so that it stays cheap.
        return max(n_batch, n_taken // 4 if call_s * n_taken < _BATCH_S else 1)

    n_batch = max(1, min(_N_LEAST, int(_BATCH_S / max(call_s * inner_loops, 1e-9))))
    _, reason = take_in_turns(
        [take], rule, count=lambda: len(samples_s), judged=lambda: samples_s, n_next=n_next
    )
    if reason == "interrupt":  # the caller keeps its earlier points and does not need this one
        raise KeyboardInterrupt
    return tuple(samples_s)


def _timed(work: Work, inner_loops: int) -> float:
    start_s = time.perf_counter()
    for _ in range(inner_loops):
        work()
    # The clock may be set back in between; a time is never negative.
    return max(0.0, time.perf_counter() - start_s) / inner_loops
