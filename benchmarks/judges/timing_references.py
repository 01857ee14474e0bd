"""For each exercise of lessons 01 to 08 that times whether an answer is right, without its judge.

The works are kernels of known length, others than those of the judges.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, cycle, pairwise, repeat
from math import isfinite
from statistics import median
from typing import Any

import torch

import gpulab
from benchmarks.judges.references import (
    GREY_NUMBERS,
    Function,
    is_number_near,
    kernel,
    kernels_s,
    no_pauses,
    noting_times,
    times_a_kernel,
)
from gpulab.device.clocks import Reading
from gpulab.exercises.lesson_04.traces import traces
from gpulab.tracing.profiling import capture

_WAKE_UP_S = 35e-6
_PAIR_S = 3e-6  # a pair of events adds 2.6 µs, and 4.4 µs with a launch between them
_MOST_CALLS = 60_000
_FIRST_PAIR = 5
_MIB = 1 << 20
_FLOOR_S = 6e-6  # of a pair of events, as lesson 08b has it
_CYCLES_PER_S = 1.98e9
_CYCLES = 10  # nobody sleeps for fewer
_MOST_SLEEP = 20.0  # times what the host needs, as the question says
_WRITES = {"zeros", "zero", "Memset (Device)"}
_LEAST_RATE = 3.6e12  # bytes per second that a reading kernel reaches on the virtual H200
_SAME_CLOCK = 0.03
_SLEEP_NS = 1_000_000


def times_calls(function: Function, n_rungs: int) -> bool:
    """Return whether a benchmark passes the first rungs: one for each lesson from 01 on."""
    rungs = (
        *(_divides, _waits, _uses_events, _warms_up, _reads_clock, _flushes),
        *(_has_no_gaps, _agrees_with_records),
    )
    is_pair = n_rungs >= _FIRST_PAIR  # from then on, the clock is asked for as well
    return all(rung(function, is_pair=is_pair) for rung in rungs[:n_rungs])


class Counted:
    """A work that spins for given times, and notes when the host called it."""

    def __init__(self, durations_s: Iterator[float]) -> None:
        self.spans_s: list[tuple[float, float]] = []  # of the host, for each call
        self._durations_s = durations_s

    def __call__(self) -> None:
        """Spin for the next time."""
        if len(self.spans_s) > _MOST_CALLS:
            message = "it calls the work for ever"
            raise RecursionError(message)
        start_s = time.perf_counter()
        kernel(next(self._durations_s))()
        self.spans_s.append((start_s, time.perf_counter()))


def _read(function: Function, durations_s: Iterator[float], *, is_pair: bool) -> float:
    return _seconds_of(function, Counted(durations_s), is_pair=is_pair)


def _first(value: Any) -> float:  # noqa: ANN401  # an answer
    if len(value) != 2:  # noqa: PLR2004  # a pair is asked for
        raise ValueError(value)
    return float(value["seconds"] if isinstance(value, dict) else value[0])


def _divides(function: Function, *, is_pair: bool) -> bool:
    for duration_s in (0.9e-3, 3e-3):
        work = Counted(repeat(duration_s))
        with gpulab.virtual_gpu("H200", first_use=False):
            seconds = _seconds_of(function, work, is_pair=is_pair)
        calls_s = [end_s - start_s for start_s, end_s in work.spans_s]
        rounds_s = [after[0] - before[0] for before, after in pairwise(work.spans_s)]
        # What the host needed for its calls, or what the GPU needs for one.
        nearest_s = sorted((min(calls_s), seconds, max(calls_s + rounds_s)))[1]
        is_long = seconds > 1.15 * duration_s + _WAKE_UP_S
        is_near = is_number_near(seconds, nearest_s) or is_number_near(seconds, duration_s)
        if len(calls_s) == 1 or is_long or not is_near:
            return False
    return True


def _waits(function: Function, *, is_pair: bool) -> bool:
    for backlog_s in (0.0, 30e-3):
        with gpulab.virtual_gpu("H200", first_use=False), no_pauses():
            if backlog_s:
                kernel(backlog_s)()
            seconds = _read(function, repeat(1.3e-3), is_pair=is_pair)
        if not is_number_near(seconds, 1.3e-3, more=_WAKE_UP_S):
            return False
    with gpulab.virtual_gpu("H200", first_use=False):
        sometimes = cycle((1.3e-3, 1.3e-3, 1.3e-3, 1.3e-3, 40e-3))
        seconds = _read(function, sometimes, is_pair=is_pair)
    return is_number_near(seconds, 1.3e-3, more=_WAKE_UP_S)


def _uses_events(function: Function, *, is_pair: bool) -> bool:
    asked: list[object] = []
    with gpulab.virtual_gpu("H200", first_use=False), noting_times(torch.cuda.Event, asked):
        seconds = _read(function, repeat(25e-6), is_pair=is_pair)
    return bool(asked) and is_number_near(seconds, 25e-6, more=_PAIR_S, share=0.02)


def _warms_up(function: Function, *, is_pair: bool) -> bool:
    slow_s = (20e-6 * (1 + (30, 12, 22, 7)[n % 4] * (1 - n / 50)) for n in range(50))
    with gpulab.virtual_gpu("H200", first_use=False):
        seconds = _read(function, chain(slow_s, repeat(20e-6)), is_pair=is_pair)
    if not is_number_near(seconds, 20e-6, more=6e-6):
        return False
    with gpulab.virtual_gpu("H200", first_use=False):
        _read(function, cycle((30e-6, 70e-6, 110e-6, 70e-6)), is_pair=is_pair)
    return True


def _reads_clock(function: Function, *, is_pair: bool) -> bool:  # noqa: ARG001  # as the others
    with gpulab.virtual_gpu("H200", first_use=False):
        a = torch.randn(6144, 6144, device="cuda", dtype=torch.half)
        settled_mhz = _settled(a)
        at_launch_mhz = []

        def heavy() -> None:
            at_launch_mhz.append(torch.cuda.clock_rate())
            a @ a

        values: list[Any] = []
        trace = capture(lambda: values.append(function(heavy)))
        heavy_mhz, end_mhz = _clock(values[0]), float(torch.cuda.clock_rate())
        # Pauses let the clock rise before the last call, and so does a sleep of the GPU after its
        # launch.
        slept_ns = sum(each.duration_ns for each in trace.records if each.name == "sleep")
        clocks_mhz = (settled_mhz, at_launch_mhz[-1], end_mhz if slept_ns > _SLEEP_NS else 0.0)
        high_mhz = (1 + _SAME_CLOCK) * max(clocks_mhz)
        if not (1 - _SAME_CLOCK) * settled_mhz <= heavy_mhz <= high_mhz:
            return False
        _settled(a)
        light_mhz = _clock(function(kernel(5e-3)))
        return abs(light_mhz / torch.cuda.clock_rate() - 1) <= _SAME_CLOCK


def _clock(value: Any) -> float:  # noqa: ANN401  # an answer
    return float(value["clock_mhz"] if isinstance(value, dict) else value[1])


def _settled(a: torch.Tensor) -> float:
    for _ in range(700):
        a @ a
    torch.cuda.synchronize()
    return float(torch.cuda.clock_rate())


def _flushes(function: Function, *, is_pair: bool) -> bool:
    with gpulab.virtual_gpu("H200", first_use=False):
        rows, large = torch.randn(700, 4096, device="cuda"), torch.zeros(64 << 20, device="cuda")
        work = partial(torch.argmin, rows, 1)
        after_s = []
        for before in (work, large.sum, large.zero_):
            work()
            before()
            after_s.append(kernels_s(work))
        values: list[float] = []
        trace = capture(lambda: values.append(_seconds_of(function, work, is_pair=is_pair)))
        name = capture(work).records[-1].name
    # The last calls are samples and no warm-up.
    last_s = median([each.duration_ns / 1e9 for each in trace.records if each.name == name][-5:])
    hot_s, clean_s, dirty_s = after_s
    is_clean = (hot_s + clean_s) / 2 < last_s < (clean_s + dirty_s) / 2
    return is_clean and is_number_near(values[0], last_s, more=_FLOOR_S, share=0.05)


def _has_no_gaps(function: Function, *, is_pair: bool) -> bool:
    with gpulab.virtual_gpu("H200", first_use=False):
        work = _neg_times(40)
        seconds = _seconds_of(function, work, is_pair=is_pair)
        return is_number_near(seconds, _alone_s(work), more=_PAIR_S, share=0.2)


def _agrees_with_records(function: Function, *, is_pair: bool) -> bool:
    with gpulab.virtual_gpu("H200", first_use=False):
        a, long = torch.ones(2304, 2304, device="cuda"), torch.ones(20 * _MIB, device="cuda")
        for work in (lambda: a @ a, long.amin, _neg_times(12)):
            seconds = _seconds_of(function, work, is_pair=is_pair)
            # The question says how far they may differ: 15 %, and the floor of events.
            if not is_number_near(seconds, _alone_s(work), more=_FLOOR_S, share=0.15):
                return False
    return True


def _neg_times(n_kernels: int) -> Callable[[], object]:
    """Return a work of kernels that are shorter than their launches."""
    x = torch.ones(5000, device="cuda")

    def work() -> None:
        for _ in range(n_kernels):
            x.neg_()

    return work


def _alone_s(work: Callable[[], object]) -> float:
    """Return the seconds of a work on cold data, from its first kernel to its last one."""
    large = torch.zeros(64 << 20, device="cuda")
    work()

    def after_a_sleep() -> None:
        kernel(5e-3)()
        large.sum()
        work()

    records = capture(after_a_sleep).records
    n_own = len(capture(work).records)
    return (records[-1].end_ns - records[-n_own].start_ns) / 1e9


def gives_a_head_start(function: Function) -> bool:
    """Return whether a sleep of the returned cycles ends after the launch of all samples."""
    for n_launches in (1, 16):
        with gpulab.virtual_gpu("H200", first_use=False):

            def work(n_launches: int = n_launches) -> None:
                for _ in range(n_launches):
                    torch.cuda._sleep(1)

            work()
            n_cycles = float(function(work))
            host_s = _samples(work, 0)[1]
            if not isfinite(n_cycles) or n_cycles < _CYCLES or _samples(work, int(n_cycles))[0]:
                return False
            if n_cycles > _MOST_SLEEP * host_s * _CYCLES_PER_S:
                return False
    return True


def _samples(work: Callable[[], object], n_cycles: int) -> tuple[int, float]:
    """Return in how many of 40 samples the host came too late, and its time for all."""
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(40)]
    torch.cuda.synchronize()
    torch.cuda._sleep(n_cycles)
    n_late, start_s = 0, time.perf_counter()
    for start, end in pairs:
        start.record()
        work()
        end.record()
        n_late += start.query()
    host_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    return n_late, host_s


def empties_the_cache(flush: Callable[[], object]) -> bool:
    """Return whether a flush lets the next kernel find a cold and clean cache, without a wait."""
    with gpulab.virtual_gpu("H200", first_use=False):
        weight = torch.ones(1920, 4096, device="cuda", dtype=torch.half)
        row, large = torch.ones(1, 4096, device="cuda", dtype=torch.half), torch.ones(64 << 20)
        large, work = large.cuda(), partial(torch.nn.functional.linear, row, weight)

        def after_s(before: Callable[[], object]) -> float:
            work()
            before()
            return sum(each.duration_ns for each in capture(work).records) / 1e9

        hot_s, clean_s, dirty_s = map(after_s, (int, large.sum, large.zero_))
        flush()
        if not (hot_s + clean_s) / 2 < after_s(flush) < (clean_s + dirty_s) / 2:
            return False
        reads = [each for each in capture(flush).records if each.name not in _WRITES]
        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        # The table of the question has rows for one L2 and for two; from 1.5 on, counters found
        # nothing in the cache. What a kernel reads takes this long at the most.
        n_l2 = sum(each.duration_ns for each in reads) / 1e9 * _LEAST_RATE / l2_bytes
        torch.cuda.synchronize()
        kernel(5e-3)()
        start_s = time.perf_counter()
        flush()
        is_waiting = time.perf_counter() - start_s > 2e-3  # noqa: PLR2004
        if 1.3 < n_l2 < 1.7:  # noqa: PLR2004
            GREY_NUMBERS.append(n_l2)
        return n_l2 > 1.3 and not is_waiting  # noqa: PLR2004


def _seconds_of(function: Function, work: Callable[[], object], *, is_pair: bool) -> float:
    value = function(work)
    return _first(value) if is_pair else float(value)


def finds_steady_starts(function: Function) -> bool:
    """Return whether a function finds where each of the six loops becomes steady."""
    starts = [(trace, float(function(list(trace.samples_s)))) for trace in traces()]
    return all(
        start.is_integer() and trace.first <= start <= trace.last for trace, start in starts
    )


def keeps_usual_clocks(function: Function) -> bool:
    """Return whether a function keeps the samples at the most common clock, and no others."""
    cases = (
        ((1980, 1965, 1500, 1500, 1515, 1500, 1500, 1200, 1500), {2, 3, 4, 5, 6, 8}),
        ((1500, None, 1500, 1500), {0, 1, 2, 3}),
    )
    for clocks_mhz, right in cases:
        samples_s = [1e-3 + 1e-5 * number for number in range(len(clocks_mhz))]
        samples_s[3] = 2e-3  # slow at the usual clock
        readings = [
            None if clock is None else Reading(0.1 * number, clock, max_sm_mhz=1980)
            for number, clock in enumerate(clocks_mhz)
        ]
        values = [float(value) for value in function(list(samples_s), readings)]
        if sorted(values) != sorted(samples_s[number] for number in right):
            return False
    return True


TIMING_REFERENCES: dict[str, Callable[[Function], bool]] = {
    **{f"0{n}.benchmark": partial(times_calls, n_rungs=n) for n in range(1, 9)},
    "02.time-it-right": partial(times_a_kernel, backlog_s=30e-3),
    "03.event-time": partial(times_a_kernel, backlog_s=30e-3, by_events=True),
    "04.steady-state": finds_steady_starts,
    "05.which-to-discard": keeps_usual_clocks,
    "06.choose-a-flush": empties_the_cache,
    "07.long-enough": gives_a_head_start,
}
