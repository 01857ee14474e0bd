"""Answers to the exercises of lessons 01 to 06 that are functions, with the verdict they deserve.

The right ones differ from the model solution; each wrong one makes the mistake of its lesson.
"""

# ruff: noqa: D103  # each answer is named for what it does

import operator
import statistics
import time
import timeit
from collections import deque
from collections.abc import Callable, Iterator
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch
from torch.cuda import Event

import gpulab
from gpulab import clocks, exercises, stats
from gpulab.exercises.lesson_04.traces import SAMPLES_S
from tests.support.answers import Answer, Answers, assert_verdict, changed

Work = Callable[[], object]
ANSWERS = Answers()
right, wrong = ANSWERS.right, ANSWERS.wrong


# Stopwatches: 01.benchmark asks for no wait, and a wait is right, too.


@right("01.benchmark")
def by_nanoseconds(fn: Work) -> float:
    start_ns = time.perf_counter_ns()
    for _ in range(7):
        fn()
    return (time.perf_counter_ns() - start_ns) / 7 / 1e9


@right("01.benchmark")
def sum_of_readings(fn: Work) -> float:
    total_s = 0.0
    for _ in range(30):
        start_s = timeit.default_timer()
        fn()
        total_s += timeit.default_timer() - start_s
    return total_s / 30


@right("01.benchmark", "02.benchmark")
def with_both_waits(fn: Work) -> np.floating[Any]:
    samples_s = np.empty(9)
    for index in range(9):
        torch.cuda.synchronize()
        samples_s[index] = -time.perf_counter()
        fn()
        torch.cuda.synchronize()
        samples_s[index] += time.perf_counter()
    return np.median(samples_s)


@right("01.benchmark", "02.benchmark")
def by_another_clock(fn: Work) -> torch.Tensor:
    samples_s = []
    for _ in range(5):
        torch.cuda.current_stream().synchronize()
        start_s = time.monotonic()
        fn()
        torch.cuda.current_stream().synchronize()
        samples_s.append(time.monotonic() - start_s)
    return torch.tensor(samples_s).median()


@right("01.benchmark")
def while_loop(fn: Work) -> float:
    n_calls, start_s = 0, time.time()
    while time.time() - start_s < 1e-3:
        fn()
        n_calls += 1
    return (time.time() - start_s) / n_calls


@wrong("unexplained", "01.benchmark")
def divided_by_half(fn: Work) -> float:
    start_s = time.perf_counter()
    for _ in range(10):
        fn()
    return (time.perf_counter() - start_s) / 5


_remembered_s: list[float] = []


@wrong("not-again", "01.benchmark", "05.benchmark")
def remembering(fn: Work) -> float:
    if _remembered_s:
        return _remembered_s.pop()
    start_s = time.perf_counter()
    for _ in range(10):
        fn()
    _remembered_s.append((time.perf_counter() - start_s) / 10)
    return _remembered_s[0]


@right("02.benchmark")
def polling(fn: Work) -> float:
    def wait() -> None:
        event = Event()
        event.record()
        while not event.query():
            pass

    samples_s = []
    for _ in range(11):
        wait()
        start_s = time.perf_counter()
        fn()
        wait()
        samples_s.append(time.perf_counter() - start_s)
    return sorted(samples_s)[5]


@right("02.benchmark")
def hidden_waits(fn: Work) -> float:
    flag = torch.zeros(1, device="cuda")
    samples_s = []
    for _ in range(20):
        flag.item()
        start_s = time.perf_counter()
        fn()
        flag.item()
        samples_s.append(time.perf_counter() - start_s)
    return statistics.median_low(samples_s)


@right("02.benchmark")
def end_is_the_next_start(fn: Work) -> float:
    torch.cuda.synchronize()
    times_s = [time.perf_counter()]
    for _ in range(15):
        fn()
        torch.cuda.synchronize()
        times_s.append(time.perf_counter())
    return float(np.median(np.diff(times_s)))


@wrong("one-call", "01.benchmark", "02.benchmark")
def a_single_call(fn: Work) -> float:
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    fn()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


@wrong("not-divided", "01.benchmark")
def all_calls(fn: Work) -> float:
    start_s = time.perf_counter()
    for _ in range(7):
        fn()
    return time.perf_counter() - start_s


@wrong("unexplained", "01.benchmark")
def a_constant(fn: Work) -> float:
    for _ in range(3):
        fn()
    return 7e-7


wrong("no-wait", "02.benchmark")(by_nanoseconds)


@wrong("no-wait", "02.benchmark")
def waits_after_the_reading(fn: Work) -> float:
    samples_s = []
    for _ in range(11):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        fn()
        samples_s.append(time.perf_counter() - start_s)
        torch.cuda.synchronize()
    return statistics.median(samples_s)


wrong("no-wait", "02.benchmark")(
    changed(
        waits_after_the_reading,
        "waits_first",
        "start_s)\n        torch.cuda.synchronize() -> start_s)",
    )
)


@wrong("backlog", "02.benchmark")
def sleeps_in_place_of_a_wait(fn: Work) -> float:
    time.sleep(1)
    samples_s = []
    for _ in range(1):
        start_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        samples_s.append(time.perf_counter() - start_s)
    fn()
    return statistics.median(samples_s)


@wrong("mean", "02.benchmark")
def mean_of_a_loop(fn: Work) -> float:
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    for _ in range(50):
        fn()
    torch.cuda.synchronize()
    return (time.perf_counter() - start_s) / 50


# One work: 02.time-it-right on the host, 03.event-time on the GPU.


@right("02.time-it-right")
def timed_by_stream(work: Work) -> float:
    torch.cuda.current_stream().synchronize()
    start_ns = time.perf_counter_ns()
    work()
    torch.cuda.current_stream().synchronize()
    return (time.perf_counter_ns() - start_ns) * 1e-9


@right("02.time-it-right")
def timed_by_events(work: Work) -> float:
    before, after = Event(), Event(blocking=True)
    before.record()
    before.synchronize()
    start_s = time.time()
    work()
    after.record()
    after.synchronize()
    return time.time() - start_s


@right("02.time-it-right")
def timed_by_values(work: Work) -> np.ndarray[Any, Any]:
    torch.ones(1, device="cuda").tolist()
    start_s = time.perf_counter()
    work()
    torch.ones(1, device="cuda").cpu()
    return np.array(time.perf_counter() - start_s)


@right("02.time-it-right")
def timed_warm(work: Work) -> float:
    work()
    torch.cuda.synchronize()
    start_s = time.monotonic()
    work()
    torch.cuda.synchronize()
    return time.monotonic() - start_s


@right("02.time-it-right")
def timed_several(work: Work) -> float:
    samples_s = []
    for _ in range(3):
        torch.cuda.synchronize("cuda:0")
        start_s = time.perf_counter()
        work()
        torch.cuda.synchronize("cuda:0")
        samples_s.append(time.perf_counter() - start_s)
    return statistics.median(samples_s)


wrong("launch-only", "02.time-it-right")(
    changed(
        timed_warm,
        "timed_launch",
        "work()\n    torch.cuda.synchronize() -> pass",
        "work()\n    torch.cuda.synchronize() -> work()",
    )
)
wrong("backlog-charged", "02.time-it-right")(
    changed(
        timed_warm,
        "timed_after_a_sleep",
        "work()\n    torch.cuda.synchronize() -> time.sleep(0.5)",
    )
)
wrong("waited-before-work", "02.time-it-right")(
    changed(
        timed_warm,
        "timed_the_backlog",
        "work()\n    torch.cuda.synchronize() -> pass",
        "work()\n    torch.cuda.synchronize() -> torch.cuda.synchronize(), work()",
    )
)


@right("03.event-time")
def event_wait_for_all(work: Work) -> float:
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3


right("03.event-time")(
    changed(
        event_wait_for_all,
        "event_poll",
        "torch.cuda.synchronize() -> while not end.query(): time.sleep(1e-4)",
    )
)


@right("03.event-time")
def event_on_a_stream(work: Work) -> float:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        start = side.record_event(Event(enable_timing=True))
        work()
        end = side.record_event(Event(enable_timing=True))
    side.synchronize()
    return float(start.elapsed_time(end)) / 1e3


@right("03.event-time")
def event_median(work: Work) -> float:
    pairs = []
    for _ in range(5):
        pairs.append((Event(enable_timing=True), Event(enable_timing=True)))
        pairs[-1][0].record()
        work()
        pairs[-1][1].record()
    pairs[-1][1].synchronize()
    return statistics.median(start.elapsed_time(end) for start, end in pairs) / 1e3


right("03.event-time")(
    changed(
        event_wait_for_all,
        "event_of_any_device",
        "start, end = Event( -> from torch import Event; start, end = Event(",
    )
)
right("03.event-time")(
    changed(
        event_wait_for_all,
        "event_tensor",
        "return start.elapsed_time(end) -> return torch.tensor(start.elapsed_time(end)).cuda()",
    )
)


wrong("host-clock", "03.event-time")(timed_by_stream)
wrong("no-synchronize", "03.event-time")(
    changed(event_wait_for_all, "event_too_early", "torch.cuda.synchronize() -> pass")
)
wrong("no-timing", "03.event-time")(
    changed(
        event_wait_for_all,
        "event_without_timing",
        "enable_timing=True -> ",
        "enable_timing=True -> ",
    )
)
wrong("nothing-between", "03.event-time")(
    changed(
        event_wait_for_all,
        "event_elsewhere",
        "start, end = -> side = torch.cuda.Stream(); start, end =",
        "start.record() -> start.record(side)",
        "end.record() -> end.record(side)",
    )
)


@wrong("milliseconds", "03.event-time")
def event_milliseconds(work: Work) -> float:
    return 1e3 * event_wait_for_all(work)


# Many pairs. The last ones of each lesson are right in the lessons before, too.


def pairs_ms(fn: Work, n_pairs: int, before: Work = lambda: None) -> list[float]:
    """Return what pairs of events read, with one wait at the end."""
    pairs = [(Event(enable_timing=True), Event(enable_timing=True)) for _ in range(n_pairs)]
    for start, end in pairs:
        before()
        start.record()
        fn()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in pairs]


@right("03.benchmark")
def one_chain_of_events(fn: Work) -> float:
    events = [Event(enable_timing=True) for _ in range(31)]
    events[0].record()
    for event in events[1:]:
        fn()
        event.record()
    events[-1].synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in pairwise(events)) / 1e3


@right("03.benchmark")
def with_a_head_start(fn: Work) -> float:
    torch.cuda._sleep(2_000_000)
    return float(np.median(pairs_ms(fn, 25))) / 1e3


@right("03.benchmark")
def waits_behind_a_head_start(fn: Work) -> float:
    samples_ms = []
    for _ in range(9):
        samples_ms += pairs_ms(fn, 1, lambda: torch.cuda._sleep(200_000))
    return statistics.median(samples_ms) / 1e3


@right("03.benchmark")
def in_a_stream_of_its_own(fn: Work) -> float:
    with torch.cuda.stream(torch.cuda.Stream()):
        return statistics.median(pairs_ms(fn, 15)) / 1e3


@right("03.benchmark")
def queried(fn: Work) -> np.floating[Any]:
    pairs: deque[tuple[Event, Event]] = deque()
    for _ in range(7):
        start, end = Event(enable_timing=True), Event(enable_timing=True)
        start.record()
        fn()
        end.record()
        pairs.append((start, end))
    while not pairs[-1][1].query():
        pass
    return np.median([start.elapsed_time(end) for start, end in pairs]) / 1e3


wrong("no-events", "03.benchmark")(with_both_waits)


@wrong("wait-in-rounds", "03.benchmark")
def waits_in_each_round(fn: Work) -> float:
    return statistics.median(pairs_ms(fn, 1)[0] for _ in range(40)) / 1e3


@wrong("wait-in-rounds", "03.benchmark")
def waits_for_each_event(fn: Work) -> float:
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    samples_ms = []
    for _ in range(11):
        start.record()
        fn()
        end.record()
        end.synchronize()
        samples_ms.append(start.elapsed_time(end))
    return statistics.median(samples_ms) / 1e3


@wrong("mean", "03.benchmark")
def one_pair_around_all(fn: Work) -> float:
    for _ in range(1):
        torch.cuda.synchronize()
    return sum(pairs_ms(lambda: [fn() for _ in range(20)], 1)) / 20 / 1e3


@wrong("mean", "03.benchmark")
def mean_of_pairs(fn: Work) -> float:
    torch.cuda.synchronize()
    return statistics.fmean(pairs_ms(fn, 30)) / 1e3


def warmed_for(fn: Work, duration_s: float) -> None:
    """Call a work for some time."""
    end_s = time.perf_counter() + duration_s
    while time.perf_counter() < end_s:
        fn()
        torch.cuda.synchronize()


@right("04.benchmark")
def warm_by_time(fn: Work) -> float:
    warmed_for(fn, 25e-3)
    return statistics.median(pairs_ms(fn, 15)) / 1e3


@right("04.benchmark")
def warm_by_groups(fn: Work) -> float:
    last_ms = np.inf
    for _ in range(50):
        now_ms = float(np.median(pairs_ms(fn, 15)))
        if abs(now_ms - last_ms) < 0.02 * last_ms:
            break
        last_ms = now_ms
    return now_ms / 1e3


@right("04.benchmark")
def warm_by_deque(fn: Work) -> float:
    last_s: deque[float] = deque(maxlen=5)
    for _ in range(500):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s.append(time.perf_counter() - start_s)
        if len(last_s) == 5 and max(last_s) / min(last_s) < 1.1:
            break
    return float(np.median(pairs_ms(fn, 9))) / 1e3


@right("04.benchmark")
def warm_with_much(fn: Work) -> float:
    for _ in range(200):
        fn()
    return statistics.median(pairs_ms(fn, 50)) / 1e3


@right("04.benchmark")
def steady_part_of_many(fn: Work) -> float:
    torch.cuda.synchronize()
    return statistics.median(pairs_ms(fn, 300)[200:]) / 1e3


wrong("no-warm-up", "04.benchmark")(with_a_head_start)


@wrong("no-warm-up", "04.benchmark")
def warm_three_times(fn: Work) -> float:
    for _ in range(3):
        fn()
    return statistics.median(pairs_ms(fn, 11)) / 1e3


@wrong("wait-in-rounds", "04.benchmark")
def wait_in_rounds_after_a_warm_up(fn: Work) -> float:
    pairs_ms(fn, 90)
    return statistics.median(pairs_ms(fn, 1)[0] for _ in range(15)) / 1e3


@wrong("no-limit", "04.benchmark")
def warm_for_ever(fn: Work) -> float:
    last_s: deque[float] = deque(maxlen=3)
    while len(last_s) < 3 or max(last_s) > 1.05 * min(last_s):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        fn()
        torch.cuda.synchronize()
        last_s.append(time.perf_counter() - start_s)
    return statistics.median(pairs_ms(fn, 11)) / 1e3


class Reading(NamedTuple):
    """Seconds and MHz, as a named tuple."""

    seconds: float
    clock_mhz: float


@right("05.benchmark")
def clock_in_a_list(fn: Work) -> list[float]:
    return [warm_by_deque(fn), torch.cuda.clock_rate()]


@right("05.benchmark")
def clock_in_an_array(fn: Work) -> np.ndarray[Any, Any]:
    return np.array([warm_by_groups(fn), torch.cuda.clock_rate()])


@right("05.benchmark")
def clock_in_a_dict(fn: Work) -> dict[str, float]:
    seconds = warm_by_deque(fn)
    return {"clock_mhz": torch.cuda.clock_rate(), "seconds": seconds}


@right("05.benchmark")
def clock_in_a_named_tuple(fn: Work) -> Reading:
    seconds = warm_with_much(fn)
    reading = clocks.read()
    assert reading.sm_mhz is not None
    return Reading(seconds, reading.sm_mhz)


@right("05.benchmark")
def clock_in_a_tensor(fn: Work) -> torch.Tensor:
    return torch.tensor([steady_part_of_many(fn), torch.cuda.clock_rate()])


wrong("no-clock", "05.benchmark")(warm_by_deque)


@wrong("constant-clock", "05.benchmark")
def clock_of_the_data_sheet(fn: Work) -> tuple[float, float]:
    return warm_by_deque(fn), 1980


@wrong("early-clock", "05.benchmark")
def clock_before_all_calls(fn: Work) -> tuple[float, float]:
    clock_mhz = torch.cuda.clock_rate()
    return warm_by_deque(fn), clock_mhz


@wrong("wrong-clock", "05.benchmark")
def clock_before_the_wait(fn: Work) -> tuple[float, float]:
    for _ in range(60):
        fn()
    torch.cuda.synchronize()
    pairs = [(Event(enable_timing=True), Event(enable_timing=True)) for _ in range(60)]
    for start, end in pairs:
        start.record()
        fn()
        end.record()
    clock_mhz = torch.cuda.clock_rate()
    torch.cuda.synchronize()
    samples_ms = [start.elapsed_time(end) for start, end in pairs]
    return statistics.median(samples_ms) / 1e3, 0.9 * clock_mhz


@wrong("late-clock", "05.benchmark")
def clock_after_a_rest(fn: Work) -> tuple[float, float]:
    seconds = warm_by_deque(fn)
    time.sleep(0.1)
    return seconds, torch.cuda.clock_rate()


@wrong("clock-unit", "05.benchmark")
def clock_in_hertz(fn: Work) -> tuple[float, float]:
    return warm_by_deque(fn), 1e6 * torch.cuda.clock_rate()


@wrong("swapped", "05.benchmark")
def clock_first(fn: Work) -> tuple[float, float]:
    return torch.cuda.clock_rate(), warm_by_deque(fn)


@wrong("no-number", "05.benchmark", "06.benchmark")
def three_values(fn: Work) -> tuple[float, float, str]:
    return warm_by_deque(fn), torch.cuda.clock_rate(), "NVIDIA H200"


def flushed(fn: Work, flush: Work) -> tuple[float, float]:
    """Time a work with a flush before each sample."""
    warm_by_deque(fn)
    return statistics.median(pairs_ms(fn, 15, flush)) / 1e3, torch.cuda.clock_rate()


def buffer_of(mib: int) -> torch.Tensor:
    """Return a buffer."""
    return torch.zeros(mib << 18, device="cuda")


@right("06.benchmark")
def flush_by_sum(fn: Work) -> tuple[float, float]:
    return flushed(fn, buffer_of(120).sum)


@right("06.benchmark")
def flush_by_rows(fn: Work) -> list[float]:
    rows = buffer_of(256).view(-1, 4096)
    sums = torch.empty(len(rows), device="cuda")
    return list(flushed(fn, lambda: torch.sum(rows, dim=1, out=sums)))


@right("06.benchmark")
def flush_by_maximum(fn: Work) -> tuple[float, float]:
    return flushed(fn, torch.zeros(90 << 20, device="cuda", dtype=torch.half).amax)


@right("06.benchmark")
def flush_write_then_read(fn: Work) -> tuple[float, float]:
    written, read = buffer_of(128), buffer_of(128)

    def flush() -> None:
        written.zero_()
        read.sum()

    return flushed(fn, flush)


@right("06.benchmark")
def flush_with_a_wait(fn: Work) -> tuple[float, float]:
    buffer = buffer_of(128)

    def flush() -> None:
        buffer.sum()
        torch.cuda.synchronize()
        torch.cuda._sleep(100_000)

    return flushed(fn, flush)


wrong("hot-cache", "06.benchmark")(clock_in_a_list)


@wrong("dirty", "06.benchmark")
def flush_by_zeros(fn: Work) -> tuple[float, float]:
    return flushed(fn, buffer_of(256).zero_)


@wrong("hot-cache", "06.benchmark")
def flush_the_allocator(fn: Work) -> tuple[float, float]:
    return flushed(fn, torch.cuda.empty_cache)


@wrong("not-between", "06.benchmark")
def flush_in_the_sample(fn: Work) -> tuple[float, float]:
    buffer = buffer_of(128)
    return flushed(lambda: (buffer.sum(), fn()), lambda: None)


# Rules on samples.


def runs_of_three(samples_s: list[float], level_s: float) -> int:
    """Return where three samples in a row are within 5 % of a level."""
    near = np.abs(np.array(samples_s) / level_s - 1) < 0.05
    starts = (i for i in range(len(near) - 2) if near[i : i + 3].all())
    return next(starts, len(samples_s))


@right("04.steady-state")
def steady_by_level(samples_s: list[float]) -> int:
    third = samples_s[-20:]
    first_s, last_s = np.median(third[:10]), np.median(third[10:])
    if abs(last_s / first_s - 1) > 0.02:
        return len(samples_s)
    return runs_of_three(samples_s, float(last_s))


@right("04.steady-state")
def steady_by_windows(samples_s: list[float]) -> np.int64:
    windows = np.lib.stride_tricks.sliding_window_view(np.array(samples_s), 4).max(axis=1)
    if np.median(windows[-5:]) / np.median(windows[-25:-20]) > 1.05:
        return np.int64(len(samples_s))
    return np.argmax(windows < 1.05 * np.median(samples_s[40:]))


@right("04.steady-state")
def steady_from_the_end(samples_s: list[float]) -> float:
    level_s = statistics.median(samples_s[-15:])
    if abs(statistics.median(samples_s[-30:-15]) / level_s - 1) > 0.03:
        return float(len(samples_s))
    near = [abs(sample_s / level_s - 1) < 0.05 for sample_s in samples_s]
    start = len(samples_s) - 1
    while start >= 1 and (near[start - 1] or sum(near[max(0, start - 3) : start]) == 2):
        start -= 1
    return float(start)


@right("04.steady-state")
def steady_by_sorting(samples_s: list[float]) -> torch.Tensor:
    end = samples_s[30:]
    end.sort()
    slope = np.polyfit(range(30), np.array(samples_s[30:]) / end[15], 1)[0]
    is_rising = slope > 0.002
    return torch.tensor(len(samples_s) if is_rising else runs_of_three(samples_s, end[15]))


@right("04.steady-state")
def steady_by_gpulab(samples_s: list[float]) -> int:
    start = stats.steady_from(samples_s)
    return len(samples_s) if start is None else start


@wrong("guessed-count", "04.steady-state")
def steady_after_three(samples_s: list[float]) -> int:
    return min(3, len(samples_s))


@wrong("mean-as-level", "04.steady-state")
def steady_below_the_mean(samples_s: list[float]) -> int:
    if samples_s[-1] > 1.2 * samples_s[0]:
        return len(samples_s)
    return next(
        i for i, sample_s in enumerate(samples_s) if sample_s < statistics.fmean(samples_s)
    )


Samples = list[float]
Readings = list[clocks.Reading | None]


@right("05.which-to-discard")
def keep_near_the_median(samples_s: Samples, readings: Readings) -> list[float]:
    known = [reading.sm_mhz for reading in readings if reading and reading.sm_mhz]
    usual_mhz = statistics.median(known)
    pairs = zip(samples_s, readings, strict=True)
    return [s for s, r in pairs if not (r and r.sm_mhz) or abs(r.sm_mhz / usual_mhz - 1) <= 0.03]


@right("05.which-to-discard")
def keep_as_array(samples_s: Samples, readings: Readings) -> np.ndarray[Any, Any]:
    return np.array(samples_s)[~np.array(clocks.flag(readings))]


@right("05.which-to-discard")
def keep_by_generator(samples_s: Samples, readings: Readings) -> Iterator[float]:
    yield from compress(samples_s, map(operator.not_, clocks.flag(readings)))


@right("05.which-to-discard")
def keep_by_removing(samples_s: Samples, readings: Readings) -> tuple[float, ...]:
    for index in reversed(np.flatnonzero(clocks.flag(readings)).tolist()):
        del samples_s[index]
    return tuple(samples_s)


@right("05.which-to-discard")
def keep_as_series(samples_s: Samples, readings: Readings) -> "pd.Series[float]":
    return pd.Series(samples_s)[[not flag for flag in clocks.flag(readings)]]


@wrong("kept-all", "05.which-to-discard")
def keep_all(samples_s: Samples, _readings: Readings) -> Samples:
    return samples_s


@wrong("by-duration", "05.which-to-discard")
def keep_the_fast(samples_s: Samples, readings: Readings) -> Samples:
    middle_s = statistics.median(samples_s)
    return [s for s in keep_near_the_median(samples_s, readings) if s < 1.1 * middle_s]


# Flushes before a layer, each with its reason.


@right("06.choose-a-flush")
def sum_of_twice_the_l2() -> None:
    buffer_of(120).sum()


@right("06.choose-a-flush")
def maximum_of_more() -> None:
    buffer_of(300).max()


@right("06.choose-a-flush")
def sums_of_rows() -> None:
    torch.sum(buffer_of(128).view(-1, 64), dim=1)


@right("06.choose-a-flush")
def minimum_of_half_numbers() -> None:
    torch.empty(70 << 20, device="cuda", dtype=torch.half).amin()


@right("06.choose-a-flush")
def several_buffers() -> None:
    for buffer in [buffer_of(20) for _ in range(8)]:
        buffer.amax()


@wrong("dirty", "06.choose-a-flush")
def write_zeros() -> None:
    buffer_of(256).zero_()


@wrong("still-hot", "06.choose-a-flush")
def read_too_little() -> None:
    torch.empty(2 << 20, device="cuda").sum()


@wrong("waits", "06.choose-a-flush")
def read_a_value() -> None:
    buffer_of(120).sum().item()


DATA = [
    *(
        ("03.floor", value, "")
        for value in (3.08e-6, "3.1 µs", np.float32(3.07e-6), "3100 ns", 3e-6)
    ),
    ("03.floor", 2.59e-6, "too-small"),
    ("03.floor", 1.28e-6, "empty-pair"),
    *(
        ("04.one-number", value, "")
        for value in (41.2e-6, "41.2 µs", np.median(SAMPLES_S), torch.tensor(41.2e-6), "0.0412 ms")
    ),
    ("04.one-number", statistics.fmean(SAMPLES_S), "mean"),
    *(("01.queue-length", value, "") for value in (1022, 1023.0, np.int64(1010), "1,000", 1024)),
    ("01.queue-length", 1300, "too-many"),
    ("11.overlap", {"OVERLAP_US": "35", "saved_us": 35}, ""),
]


@pytest.mark.parametrize(("exercise_id", "answer", "code"), DATA)
def test_each_value_gets_its_verdict(exercise_id: str, answer: object, code: str) -> None:
    """A value is right in any form, and the mistake of its lesson gets its diagnosis."""
    with gpulab.virtual_gpu("H200", first_use=False):
        verdict = exercises.check(exercise_id, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (not code, code), str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS.judged(), ids=str)
def test_each_answer_gets_its_verdict(answer: Answer) -> None:
    """A right answer is right, and a mistake gets its diagnosis."""
    assert_verdict(answer)
