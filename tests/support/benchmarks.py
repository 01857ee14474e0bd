"""The benchmark function that a learner improves from lesson to lesson, at each stage."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

Work = Callable[[], object]


def _stopwatch(fn: Work) -> float:
    start_s = time.perf_counter()
    for _ in range(100):
        fn()
    return (time.perf_counter() - start_s) / 100


def _wait(fn: Work) -> float:
    samples_s = []
    for _ in range(11):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        samples_s.append(time.perf_counter() - start_s)
    return statistics.median(samples_s)


def _events(fn: Work) -> float:
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(50)]
    for start, end in pairs:
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / 1e3


def _warm_up(fn: Work) -> float:
    for _ in range(60):
        fn()
    return _events(fn)


def _clock(fn: Work) -> tuple[float, float]:
    return _warm_up(fn), torch.cuda.clock_rate()


def _flush(fn: Work) -> tuple[float, float]:
    for _ in range(60):
        fn()
    buffer = torch.empty(2**25, device="cuda")
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(50)]
    for start, end in pairs:
        buffer.max()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    times_ms = [start.elapsed_time(end) for start, end in pairs]
    return statistics.median(times_ms) / 1e3, torch.cuda.clock_rate()


def _sleep(fn: Work) -> tuple[float, float]:
    """Time fn with all that the lessons teach: seconds for one call, and the clock in MHz."""
    for _ in range(60):
        fn()
    buffer = torch.empty(2**25, device="cuda")
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    fn()
    host_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    times_ms = []
    for _ in range(50):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        buffer.max()
        torch.cuda._sleep(int(2e9 * (host_s + 1e-4)))
        start.record()
        fn()
        end.record()
        end.synchronize()
        times_ms.append(start.elapsed_time(end))
    return statistics.median(times_ms) / 1e3, torch.cuda.clock_rate()


BENCHMARKS: dict[str, Callable[[Work], Any]] = {
    "stopwatch": _stopwatch,
    "wait": _wait,
    "events": _events,
    "warm-up": _warm_up,
    "clock": _clock,
    "flush": _flush,
    "sleep": _sleep,
    "measure": _sleep,
}
