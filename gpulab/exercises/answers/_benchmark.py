"""The judge for a learner's benchmark: it has to time works whose true time is known.

The course builds the benchmark in steps, called rungs, one in each lesson from 01 to 07.

One file, because the readings of a rung and the rules for them are of no use without each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import inf, isfinite
from statistics import fmean, median
from typing import Any

from gpulab.core.errors import CutOffError
from gpulab.core.units import counted, format_time
from gpulab.device.work import Work
from gpulab.exercises._gpu_work import spinning
from gpulab.exercises.answers._benchmark_works import (
    N_SLOW,
    OUTLIER_BY,
    OUTLIER_EACH,
    hot_matmul,
    long_sum,
    matmul,
    never_steady,
    reduction,
    slow_at_first,
    small_kernels,
    sometimes_slow,
)
from gpulab.exercises.answers._fresh_gpu import fresh_gpu
from gpulab.exercises.answers._judging import (
    Diagnosis,
    FunctionJudge,
    KnownErrors,
    idle_again,
    raising,
    returning_no_number,
    returning_nothing,
    without_reading,
    wrong_units,
)
from gpulab.tracing.trials import (
    Rule,
    Trial,
    WatchedWork,
    first_fitting,
    number_in,
    pair_in,
    tried,
)

Benchmark = Callable[[Work], object]

RUNGS = ("stopwatch", "wait", "events", "warm-up", "clock", "flush", "sleep", "measure")
# Lesson 08b names this limit to the learner: 15 %, and the floor of a pair of events.
_TOLERANCE = 0.15
_HOST = 0.1  # two readings of the virtual host's clock take this share of a launch
_FLOOR_S = 6e-6  # a pair of events reads at most so much more than the work between them takes
# With a wait in each round a pair reads 4.4 µs more than a short kernel takes, otherwise 2.6 µs.
_WITHOUT_WAITS_S = 3.5e-6
_SLOW_CALLS = 1.5  # a reading with slow calls in it is longer by so much
_MIB = 2**18  # number of elements of 4 bytes in one MiB
_MOST_WARM_UPS = 40_000  # a warm-up that has not ended after so many calls has no limit
_SAME_CLOCK = 0.03  # a settled clock moves by 1 or 2 % by itself
_LONG_SLEEP_NS = 1_000_000  # of the GPU; its clock begins to rise
_SLOW_MHZ = 100  # no GPU works at less, and no benchmark of seconds is so long
_PAIR = ("seconds", "clock_mhz")
# What the judge has checked when a benchmark passes a rung, for the message.
_CHECKED = {
    "stopwatch": "It returns seconds for one call",
    "wait": "It waits where it must: other work is not in its number, and one slow call does not "
    "change it",
    "events": "The GPU times the calls, and no launch is in the number",
    "warm-up": "Slow first calls are not in the number, and it ends on work that never is steady",
    "clock": "It returns the clock at which the calls ran",
    "flush": "Its number is that of a cold and clean cache",
    "sleep": "The gaps between small kernels are not in the number",
    "measure": "It agrees with gpulab.measure on every work that was tried",
}


@dataclass(frozen=True, slots=True)
class BenchmarkReading:
    """One call of a learner's benchmark of a work, beside the seconds that it should have read.

    With a hot cache and after a flush that writes, the work takes ``hot_s`` and ``dirty_s``; they
    are 0 if no rule needs them. For a kernel without data the benchmark reads ``excess_s`` too
    much.
    """

    trial: Trial
    work: str
    true_s: float
    hot_s: float = 0.0
    dirty_s: float = 0.0
    excess_s: float = 0.0

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trial of the work."""
        return (self.trial,)

    @property
    def seconds(self) -> float:
        """The returned time; infinity if there is none."""
        return inf if self.trial.seconds is None else self.trial.seconds

    @property
    def launches_s(self) -> tuple[float, ...]:
        """Seconds that each call of the work took the host; more for the first after a wait."""
        return tuple((call.end_ns - call.start_ns) / 1e9 for call in self.trial.calls)

    @property
    def clock_mhz(self) -> float | None:
        """The returned clock, as the second of a pair; None if there is none."""
        pair = pair_in(self.trial.value, _PAIR)
        return None if pair is None else number_in(pair[1])

    def is_near(self, multiple: float = 1.0, of_s: float | None = None) -> bool:
        """Return whether the reading is a multiple of a time, by default of the true one."""
        expected_s = multiple * (self.true_s if of_s is None else of_s)
        return abs(self.seconds - expected_s) <= _TOLERANCE * expected_s

    def is_scaled(self, factor: float) -> bool:
        """Return whether it reads a multiple of the launch or of the work, and not the work."""
        if self.is_near():  # which may by chance be so many launches
            return False
        return self.is_near(factor) or self.is_near(factor, of_s=fmean(self.launches_s))

    @property
    def is_short(self) -> bool:
        """Whether it reads less than the work takes."""
        return self.seconds < (1 - _TOLERANCE) * self.true_s

    @property
    def is_long(self) -> bool:
        """Whether it reads more than the work and the floor of events take."""
        return self.seconds > (1 + _TOLERANCE) * self.true_s + _FLOOR_S

    def diagnosis(self, code: str, advice: str = "") -> Diagnosis:
        """Return a diagnosis that begins with both times."""
        message = (
            f"Your benchmark reads {format_time(self.seconds - self.excess_s)} for {self.work}, "
            f"which takes {format_time(self.true_s)}. {advice}"
        )
        return Diagnosis(code, message.rstrip())


@dataclass(frozen=True, slots=True)
class ClockReadings:
    """A benchmark's clock for heavy work and then for light work, and the clocks that are right.

    Before both, the GPU has settled at ``settled_mhz``. The last call of the heavy work ended at
    ``last_mhz``, because a benchmark with pauses lets the clock rise, and the light work ended at
    ``recovered_mhz``.
    """

    heavy: BenchmarkReading
    light: BenchmarkReading
    settled_mhz: float
    last_mhz: float
    recovered_mhz: float

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials of both works."""
        return (self.heavy.trial, self.light.trial)

    @property
    def clocks_mhz(self) -> tuple[float, float]:
        """The two returned clocks; 0 if there is none."""
        return (self.heavy.clock_mhz or 0.0, self.light.clock_mhz or 0.0)

    def are_right(self, unit: float = 1.0) -> bool:
        """Return whether the clocks are those at the end of the calls, within 3 %."""
        heavy, light = (clock / unit for clock in self.clocks_mhz)
        low_mhz, high_mhz = sorted((self.settled_mhz, self.last_mhz))
        return _is_clock(heavy, low_mhz, high_mhz) and _is_clock(light, *[self.recovered_mhz] * 2)

    @property
    def clocks_text(self) -> str:
        """The four clocks, as the beginning of a message."""
        heavy, light = self.clocks_mhz
        return (
            f"For heavy work at {self.last_mhz:g} MHz it returned {heavy:g} MHz, and for light "
            f"work right after it, which ended at {self.recovered_mhz:g} MHz, {light:g} MHz."
        )


def _is_clock(clock_mhz: float, low_mhz: float, high_mhz: float) -> bool:
    return (1 - _SAME_CLOCK) * low_mhz <= clock_mhz <= (1 + _SAME_CLOCK) * high_mhz


BenchmarkRule = Rule[BenchmarkReading, Diagnosis]
# What to try, and the rules for it.
Probe = tuple[Callable[[Benchmark], Any], tuple[Rule[Any, Diagnosis], ...]]


@dataclass(frozen=True, slots=True)
class BenchmarkJudge(FunctionJudge):
    """A judge for ``benchmark(fn)``, on the virtual H200 and works whose true time is known.

    Each lesson asks for one more of ``RUNGS``, and the judge tries all up to ``rung``. The message
    for a right answer names the next thing that the benchmark cannot do yet.
    """

    rung: str

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            "Answer with the function: benchmark(fn) calls fn, a function without arguments that "
            f"puts work into the queue, and returns {self._returned}. Create what it needs inside "
            "it."
        )

    @property
    def _returned(self) -> str:
        is_one = self._n_rungs <= RUNGS.index("clock")
        return (
            "seconds for one call, a number"
            if is_one
            else "a pair: seconds for one call, and the SM clock in MHz"
        )

    @property
    def _n_rungs(self) -> int:
        return RUNGS.index(self.rung) + 1

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the benchmark on each rung, and explain the first one that it fails."""
        with fresh_gpu():
            # Short, because a function that asks an event again and again is slow to watch.
            first = tried(function, WatchedWork(spinning(0.1)), clocks=True)
        missing = (_missing(rung, function) for rung in RUNGS[: self._n_rungs])
        rules = (*without_reading("fn()", _has_seconds, wanted=self._returned), _SWAPPED)
        return (
            first_fitting(rules, first)
            or next(filter(None, missing), None)
            or self._praise(function)
        )

    def _praise(self, function: Benchmark) -> str:
        done = f"{_CHECKED[self.rung]}."
        for rung in RUNGS[self._n_rungs :]:
            diagnosis = _missing(rung, function)
            if diagnosis is not None:
                return f"{done} It still misses one thing ({rung}): {diagnosis.message}"
        return done if self.rung == RUNGS[-1] else f"{done} {_CHECKED[RUNGS[-1]]}."


def _missing(rung: str, benchmark: Benchmark) -> Diagnosis | None:
    """Return what a benchmark does wrong on one rung, tried on a new virtual GPU, or None."""
    with fresh_gpu():
        outcomes = (_judged(read(benchmark), rules) for read, rules in _PROBES[rung])
        return next(filter(None, outcomes), None)


def _judged(reading: Any, rules: tuple[Rule[Any, Diagnosis], ...]) -> Diagnosis | None:  # noqa: ANN401  # of any probe
    """Return what is wrong with one reading: that it is none, or what the rules say."""
    without = (first_fitting(_WITHOUT_SECONDS, trial) for trial in reading.trials)
    return next(filter(None, without), None) or first_fitting(rules, reading)


_NO_LIMIT: KnownErrors = (
    (
        CutOffError,
        Diagnosis(
            "no-limit",
            f"It had called fn() {_MOST_WARM_UPS:,} times and had not returned, for work whose "
            "time grows and falls again and again. Give its loop a limit.",
        ),
    ),
)


def _is_swapped(trial: Trial) -> bool:
    """Return whether it returns a clock, which is hundreds of MHz, before the seconds."""
    first, second = map(number_in, pair_in(trial.value, _PAIR) or (None, None))
    return first is not None and second is not None and second < 1 and first > _SLOW_MHZ


_SWAPPED: Rule[Trial, Diagnosis] = (
    _is_swapped,
    Diagnosis("swapped", "It returns the clock first: return seconds, clock_mhz."),
)


def _has_seconds(trial: Trial) -> bool:
    return trial.seconds is not None and isfinite(trial.seconds)


# The first trial has returned seconds, which does not mean that each one does.
_WITHOUT_SECONDS = (
    idle_again("fn()"),
    raising(_NO_LIMIT),
    returning_nothing("fn()"),
    returning_no_number("seconds for one call", _has_seconds),
)


# The readings, each with the rules that judge it.


def _read(name: str, work: Work, benchmark: Benchmark, cache: str = "hot") -> BenchmarkReading:
    true_s = _true_s(work, cache=cache)
    return BenchmarkReading(tried(benchmark, WatchedWork(work)), name, true_s)


# Launch and work are both right here: whether it waits is the question of the next rung.
_STOPWATCH: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.trial.n_calls == 1,
        Diagnosis("one-call", "It called fn() once. One reading is no measurement: use a loop."),
    ),
    (
        lambda reading: reading.seconds <= 0,
        lambda reading: Diagnosis(
            "negative", f"It returned {reading.seconds:g}. Subtract the start from the end."
        ),
    ),
    *wrong_units(BenchmarkReading.is_scaled),
    (
        lambda reading: reading.trial.n_calls > 1 and reading.is_scaled(reading.trial.n_calls),
        lambda reading: Diagnosis(
            "not-divided",
            f"It returned the time of all {counted(reading.trial.n_calls, 'call')}. Divide by "
            "their number.",
        ),
    ),
    (
        lambda reading: not (reading.is_near() or _is_of_its_calls(reading)),
        lambda reading: reading.diagnosis("unexplained"),
    ),
)


def _is_of_its_calls(reading: BenchmarkReading) -> bool:
    """Return whether its own calls took the host so long, which may wait for the GPU or not."""
    calls = reading.trial.calls
    # A benchmark may time each call, or from one to the next; the first one of a cold host takes
    # several times as long as the others, so least, median and mean differ.
    gaps_s = [(after.start_ns - before.start_ns) / 1e9 for before, after in pairwise(calls)]
    if reading.is_long:
        return False  # a pause, and no call
    is_typical = any(
        abs(reading.seconds - typical(times_s)) <= _HOST * typical(times_s)
        for times_s in (reading.launches_s, gaps_s)
        for typical in (min, median, fmean)
    )
    # If it waits, that takes about as long as a launch when the GPU is idle.
    is_with_wait = min(reading.launches_s) <= reading.seconds <= 3 * max(reading.launches_s)
    return is_typical or (bool(reading.trial.waits) and is_with_wait)


def _read_on_busy_gpu(benchmark: Benchmark) -> BenchmarkReading:
    work = spinning(2.0)
    true_s = _true_s(work)
    # A backlog of eight times the work: if it is timed, nothing else explains the reading.
    spinning(16.0)()
    trial = tried(benchmark, WatchedWork(work))
    is_again = first_fitting(_WITHOUT_SECONDS, trial) is None  # else it has failed already
    if is_again and not trial.asked["Event.query"] + trial.asked["Stream.query"]:
        # Nobody lets the host sleep for as long as this, so only a wait can be right. Longer would
        # tell more, but a CUDA GPU takes the time in full. To ask an event again and again until
        # then would take minutes on the virtual one.
        spinning(2_000.0)()
        trial = tried(benchmark, WatchedWork(work))
    return BenchmarkReading(trial, "the same kernel, launched while the GPU is still busy", true_s)


_WAIT_AFTER: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.is_short,
        lambda reading: reading.diagnosis(
            "no-wait", "It stops before the GPU has finished: wait, then read the clock."
        ),
    ),
    (lambda reading: not reading.is_near(), lambda reading: reading.diagnosis("unexplained")),
)
_WAIT_BEFORE: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.seconds > (1 + _TOLERANCE) * reading.true_s,
        lambda reading: reading.diagnosis(
            "backlog", "Wait for earlier work before you start the clock."
        ),
    ),
)


def _read_outliers(benchmark: Benchmark) -> BenchmarkReading:
    true_s = _true_s(spinning(0.5))
    work = WatchedWork(sometimes_slow(0.5), most_calls=_MOST_WARM_UPS)
    trial = tried(benchmark, work)
    return BenchmarkReading(trial, f"work of which one call in {OUTLIER_EACH} is slow", true_s)


_MEDIAN: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.seconds > _SLOW_CALLS * reading.true_s,
        lambda reading: reading.diagnosis(
            "mean",
            f"Its slow calls take {OUTLIER_BY} times as long, and they are in your number. "
            "Return the median of the calls.",
        ),
    ),
    (lambda reading: not reading.is_near(), lambda reading: reading.diagnosis("unexplained")),
)


def _read_short_kernel(benchmark: Benchmark) -> BenchmarkReading:
    # Longer than a round of Python, so that the queue fills without a head start; with a wait in
    # each round it never does. Without data, so that a flush changes nothing.
    return _read("a short kernel", spinning(0.015), benchmark)


def _waits_in_rounds(reading: BenchmarkReading) -> bool:
    """Return whether the host waits between the last calls of the work, after any warm-up."""
    waits = reading.trial.waits or ()
    return all(
        any(before.end_ns <= wait.start_ns < after.start_ns for wait in waits)
        for before, after in pairwise(reading.trial.calls[-4:])
    )


_EVENTS: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: not reading.trial.asked["Event.elapsed_time"],
        Diagnosis(
            "no-events",
            "It never asks a pair of events for its time. Record one event before each call and "
            "one after it, wait once at the end, and use elapsed_time.",
        ),
    ),
    (
        lambda reading: (
            0 < reading.seconds - reading.true_s - _WITHOUT_WAITS_S < 2 * _FLOOR_S
            and _waits_in_rounds(reading)
        ),
        lambda reading: reading.diagnosis(
            "wait-in-rounds",
            "You wait in each round, so the queue is empty and each pair contains a launch. Wait "
            "once, after all calls.",
        ),
    ),
    (
        lambda reading: reading.is_short or reading.seconds > reading.true_s + _WITHOUT_WAITS_S,
        lambda reading: reading.diagnosis(
            "not-between", "Put the events around the call alone, in the same stream."
        ),
    ),
)


def _read_slow_at_first(length_ms: float, benchmark: Benchmark) -> BenchmarkReading:
    # So short that a warm-up of 25 ms, which many tools have, goes beyond the slow calls.
    true_s = _true_s(spinning(length_ms))
    trial = tried(benchmark, WatchedWork(slow_at_first(length_ms)))
    return BenchmarkReading(trial, f"work whose first {N_SLOW} calls are slow", true_s)


_WARM_UP: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.is_long,
        lambda reading: reading.diagnosis(
            "no-warm-up", "Call it until its time is steady before you take the samples."
        ),
    ),
)


def _read_never_steady(benchmark: Benchmark) -> BenchmarkReading:
    work = WatchedWork(never_steady(0.02), most_calls=_MOST_WARM_UPS)
    return BenchmarkReading(tried(benchmark, work), "work that never is steady", true_s=0.0)


def _read_clocks(benchmark: Benchmark) -> ClockReadings:
    import torch

    def clock_mhz() -> float:
        return float(torch.cuda.clock_rate())

    heavy, light = hot_matmul(), spinning(4.0)

    def watched() -> None:
        call_mhz.append(clock_mhz())
        heavy()

    _run(heavy, 300)  # about 0.4 s, after which the clock has fallen to the power limit
    settled_mhz = clock_mhz()
    call_mhz = [settled_mhz]  # and before each call; there is none if the benchmark raises at once
    first = BenchmarkReading(tried(benchmark, WatchedWork(watched)), "a matmul", true_s=0.0)
    # A head start lets the clock rise after the launch of the last call.
    last_mhz = clock_mhz() if _has_slept(first.trial) else call_mhz[-1]
    _run(heavy, 300)
    second = BenchmarkReading(tried(benchmark, WatchedWork(light)), "light work", true_s=0.0)
    return ClockReadings(first, second, settled_mhz, last_mhz, clock_mhz())


def _has_slept(trial: Trial) -> bool:
    """Return whether the GPU slept for longer than a matmul, for a head start."""
    sleeps_ns = (record.duration_ns for record in trial.launched or () if record.name == "sleep")
    return sum(sleeps_ns) > _LONG_SLEEP_NS


def _run(work: Work, n_calls: int) -> None:
    import torch

    for _ in range(n_calls):
        work()
    torch.cuda.synchronize()


_CLOCK: tuple[Rule[ClockReadings, Diagnosis], ...] = (
    (
        lambda readings: 0.0 in readings.clocks_mhz,
        Diagnosis(
            "no-clock",
            "It does not return the clock: return a pair, seconds and the SM clock in MHz that "
            "torch.cuda.clock_rate() gives right after the last call.",
        ),
    ),
    *(
        (
            lambda readings, factor=factor: readings.are_right(factor),
            Diagnosis(
                "clock-unit",
                f"Its clock is in {unit}: return MHz, as torch.cuda.clock_rate() gives it.",
            ),
        )
        for factor, unit in ((1e6, "Hz"), (1e3, "kHz"))
    ),
    (
        lambda readings: (
            not readings.are_right()
            and all(
                _is_clock(clock, readings.settled_mhz, readings.settled_mhz)
                for clock in readings.clocks_mhz
            )
        ),
        lambda readings: Diagnosis(
            "early-clock",
            f"{readings.clocks_text} That is the clock from before the calls. Wait for the last "
            "call, and then read the clock.",
        ),
    ),
    (
        lambda readings: not readings.are_right() and len(set(readings.clocks_mhz)) == 1,
        lambda readings: Diagnosis(
            "constant-clock",
            f"{readings.clocks_text} It must be the clock at the end of the calls: read it with "
            "torch.cuda.clock_rate().",
        ),
    ),
    (
        lambda readings: readings.clocks_mhz[0] > (1 + _SAME_CLOCK) * readings.last_mhz,
        lambda readings: Diagnosis(
            "late-clock",
            f"{readings.clocks_text} The clock rises as soon as the heavy work has ended: read it "
            "right after the last call.",
        ),
    ),
    (
        lambda readings: not readings.are_right(),
        lambda readings: Diagnosis(
            "wrong-clock",
            f"{readings.clocks_text} Read the clock right after the last call has ended.",
        ),
    ),
)


def _read_cold(benchmark: Benchmark) -> BenchmarkReading:
    work = reduction()
    true_s, hot_s = _true_s(work, cache="cold"), _true_s(work)
    dirty_s = _true_s(work, cache="cold", flush="write")
    trial = tried(benchmark, WatchedWork(work))
    # The benchmark's own floor may be as large as the difference of hot and cold.
    empty = _read("a kernel without data", spinning(0.02), benchmark)
    if _has_seconds(trial) and not _has_seconds(empty.trial):
        return empty  # it has no floor to subtract, and what went wrong is said of this call
    excess_s = max(empty.seconds - empty.true_s, 0.0)
    name = "a logsumexp of 14 MiB with a cold and clean cache"
    return BenchmarkReading(trial, name, true_s, hot_s=hot_s, dirty_s=dirty_s, excess_s=excess_s)


_FLUSH: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.seconds - reading.excess_s < (reading.hot_s + reading.true_s) / 2,
        lambda reading: reading.diagnosis(
            "hot-cache", "Its input was in the L2 cache: flush the cache before each call."
        ),
    ),
    (
        lambda reading: (
            reading.seconds - reading.excess_s > (reading.dirty_s + reading.true_s) / 2
            and abs(reading.seconds - reading.excess_s - reading.dirty_s)
            < (reading.dirty_s - reading.true_s) / 2
        ),
        lambda reading: reading.diagnosis(
            "dirty",
            "That is its time after a flush that writes: what the flush wrote goes to memory "
            "while the work runs. Read a buffer instead, so that the cache is clean, too.",
        ),
    ),
    (
        lambda reading: (
            reading.seconds - reading.excess_s > (reading.dirty_s + reading.true_s) / 2
        ),
        lambda reading: reading.diagnosis(
            "flush-in-sample", "Something besides the call is in the sample, such as the flush."
        ),
    ),
)
_SLEEP: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.is_long,
        lambda reading: reading.diagnosis(
            "gaps",
            "The GPU waited for Python between the kernels: let it sleep while the host launches, "
            "or capture the work in a graph.",
        ),
    ),
)
_MEASURE: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.is_short or reading.is_long,
        lambda reading: reading.diagnosis("differs"),
    ),
)


def _cold(name: str, make: Callable[[], Work]) -> Callable[[Benchmark], BenchmarkReading]:
    return lambda benchmark: _read(name, make(), benchmark, cache="cold")


_PROBES: dict[str, tuple[Probe, ...]] = {
    "stopwatch": ((lambda benchmark: _read("work", spinning(2.0), benchmark), _STOPWATCH),),
    "wait": (
        (lambda benchmark: _read("one kernel", spinning(2.0), benchmark), _WAIT_AFTER),
        (_read_on_busy_gpu, _WAIT_BEFORE),
        (_read_outliers, _MEDIAN),
    ),
    "events": ((_read_short_kernel, _EVENTS),),
    "warm-up": (
        # Of two lengths, because the limit of a rule may fit one of them by luck.
        *((partial(_read_slow_at_first, length_ms), _WARM_UP) for length_ms in (0.02, 0.005)),
        (_read_never_steady, ()),
    ),
    "clock": ((_read_clocks, _CLOCK),),
    "flush": ((_read_cold, _FLUSH),),
    # Many kernels: the gaps add up, and the floor of the events is added only once.
    "sleep": ((_cold("thirty small kernels", lambda: small_kernels(30)), _SLEEP),),
    # One work each that is limited by arithmetic, by memory and by its launches.
    "measure": (
        (_cold("a matmul of 2,048 x 2,048", lambda: matmul(2048)), _MEASURE),
        (_cold("a sum of 64 MiB", lambda: long_sum(64 * _MIB)), _MEASURE),
        (_cold("ten small kernels", lambda: small_kernels(10)), _MEASURE),
    ),
}


def _true_s(work: Work, *, cache: str = "hot", flush: str = "read") -> float:
    from gpulab.timing import measure

    return measure(work, cache=cache, flush=flush, n_samples=10).median_s
