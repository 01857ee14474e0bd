"""The judge for a learner's benchmark: it has to time works whose true time is known.

The course builds the benchmark in steps, called rungs, one in each lesson from 01 to 07.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, isfinite

from gpulab.core.units import counted, format_time
from gpulab.device.work import Work
from gpulab.exercises.answers._fresh_gpu import fresh_h200
from gpulab.exercises.answers._judging import (
    Diagnosis,
    FunctionJudge,
    without_reading,
    wrong_units,
)
from gpulab.tracing.trials import Rule, Trial, WatchedWork, first_fitting, number_in, tried

Benchmark = Callable[[Work], object]

RUNGS = ("stopwatch", "wait", "events", "warm-up", "clock", "flush", "sleep", "measure")
# Lesson 08b names this limit to the learner: 15 %, and the floor of a pair of events.
_TOLERANCE = 0.15
_FLOOR_S = 6e-6  # a pair of events reads at most so much more than the work between them takes
_MIB = 2**18  # number of elements of 4 bytes in one MiB
_N_SLOW = 30  # slow first calls: more than half of 50 samples, so that they move a median


@dataclass(frozen=True, slots=True)
class BenchmarkReading:
    """One call of a learner's benchmark, beside what it should have read.

    Attributes
    ----------
    trial
        What the benchmark returned and did.
    work
        The timed work, in words for the learner.
    true_s
        Seconds that the work takes.
    launch_s, hot_s
        Seconds that its launch takes, and the work with a hot cache; 0 if no rule needs them.
    excess_s
        Seconds that the benchmark reads too much for a kernel without data; 0 if unknown.
    clocks_mhz
        The SM clock before and after the call, if it could be read.
    """

    trial: Trial
    work: str
    true_s: float
    launch_s: float = 0.0
    hot_s: float = 0.0
    excess_s: float = 0.0
    clocks_mhz: tuple[float, ...] = ()

    @property
    def seconds(self) -> float:
        """The returned time; infinity if there is none."""
        seconds = self.trial.seconds
        return seconds if seconds is not None and isfinite(seconds) else inf

    @property
    def clock_mhz(self) -> float | None:
        """The returned clock, as the second of a pair; None if there is none."""
        match self.trial.value:
            case (_, clock):
                return number_in(clock)
        return None

    def is_near(self, multiple: float = 1.0, of_s: float | None = None) -> bool:
        """Return whether the reading is a multiple of a time, by default of the true one."""
        expected_s = multiple * (self.true_s if of_s is None else of_s)
        return abs(self.seconds - expected_s) <= _TOLERANCE * expected_s

    def is_scaled(self, factor: float) -> bool:
        """Return whether it reads a multiple of the launch or of the work."""
        return self.is_near(factor) or self.is_near(factor, of_s=self.launch_s)

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


BenchmarkRule = Rule[BenchmarkReading, Diagnosis]
# A reading to take, and the rules for it.
Probe = tuple[Callable[[Benchmark], BenchmarkReading], tuple[BenchmarkRule, ...]]


@dataclass(frozen=True, slots=True)
class BenchmarkJudge(FunctionJudge):
    """A judge for ``benchmark(fn)``, on the virtual H200 and works whose true time is known.

    Each lesson asks for one more rung, and the judge tries all rungs up to it. The message for a
    right answer names the next thing that the benchmark cannot do yet.

    Attributes
    ----------
    rung
        The highest rung that the lesson asks for, one of ``RUNGS``.

    Examples
    --------
    >>> from gpulab.exercises.answers import RUNGS, BenchmarkJudge
    >>> RUNGS[:3]
    ('stopwatch', 'wait', 'events')
    >>> BenchmarkJudge("wait")(...).ok is None
    True
    """

    rung: str

    @property
    def how(self) -> str:
        """How to write the answer."""
        returned = (
            "seconds for one call"
            if self._n_rungs <= RUNGS.index("clock")
            else "a pair: seconds for one call, and the SM clock in MHz"
        )
        return (
            "Answer with the function: benchmark(fn) calls fn, a function without arguments that "
            f"puts work into the queue, and returns {returned}. Create what it needs inside it."
        )

    @property
    def _n_rungs(self) -> int:
        return RUNGS.index(self.rung) + 1

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the benchmark on each rung, and explain the first one that it fails."""
        with fresh_h200():
            first = tried(function, WatchedWork(_spin(2.0)), clocks=True)
        missing = (_missing(rung, function) for rung in RUNGS[: self._n_rungs])
        return (
            first_fitting(without_reading("fn()", _has_seconds), first)
            or next(filter(None, missing), None)
            or self._praise(function)
        )

    def _praise(self, function: Benchmark) -> str:
        done = f"Your benchmark has the rung {self.rung!r}."
        for rung in RUNGS[self._n_rungs :]:
            diagnosis = _missing(rung, function)
            if diagnosis is not None:
                return f"{done} It still misses one thing ({rung}): {diagnosis.message}"
        return f"{done} It agrees with gpulab.measure on every work that was tried."


def _missing(rung: str, benchmark: Benchmark) -> Diagnosis | None:
    """Return what a benchmark does wrong on one rung, tried on a new virtual GPU, or None."""
    with fresh_h200():
        outcomes = (first_fitting(rules, read(benchmark)) for read, rules in _PROBES[rung])
        return next(filter(None, outcomes), None)


def _has_seconds(trial: Trial) -> bool:
    return trial.seconds is not None and isfinite(trial.seconds)


# The readings, each with the rules that judge it.


def _read(name: str, work: Work, benchmark: Benchmark, cache: str = "hot") -> BenchmarkReading:
    true_s = _true_s(work, cache=cache)
    return BenchmarkReading(tried(benchmark, WatchedWork(work)), name, true_s)


def _read_millisecond_kernel(benchmark: Benchmark) -> BenchmarkReading:
    from gpulab.timing import measure

    work = _spin(2.0)
    launch_s = measure(work, method="naive", n_samples=10).median_s
    reading = _read("work", work, benchmark)
    return replace(reading, launch_s=launch_s)


# Launch and work are both right here: whether it waits is the question of the next rung.
_STOPWATCH: tuple[BenchmarkRule, ...] = (
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
        lambda reading: reading.seconds > 2 * reading.true_s,
        lambda reading: reading.diagnosis("unexplained"),
    ),
)


def _read_on_busy_gpu(benchmark: Benchmark) -> BenchmarkReading:
    work = _spin(2.0)
    true_s = _true_s(work)
    # A backlog of a hundred times the work: if it is timed, nothing else explains the reading.
    _spin(200.0)()
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
        lambda reading: reading.is_short or reading.is_long,
        lambda reading: reading.diagnosis(
            "not-between", "Put the events around the call alone, and wait after all calls."
        ),
    ),
)


def _read_slow_at_first(benchmark: Benchmark) -> BenchmarkReading:
    true_s = _true_s(_spin(0.2))
    trial = tried(benchmark, WatchedWork(_slow_at_first(0.2)))
    return BenchmarkReading(trial, f"work whose first {_N_SLOW} calls are slow", true_s)


_WARM_UP: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.is_long,
        lambda reading: reading.diagnosis(
            "no-warm-up", "Call it until its time is steady before you take the samples."
        ),
    ),
)


def _read_settled(benchmark: Benchmark) -> BenchmarkReading:
    import torch

    from gpulab.device import clocks

    work = _hot_matmul()
    for _ in range(200):  # about 0.3 s, after which the clock has fallen to the power limit
        work()
    before = clocks.read().sm_mhz
    torch.cuda.synchronize()
    trial = tried(benchmark, WatchedWork(work))
    known = (before, clocks.read().sm_mhz)
    clocks_mhz = tuple(float(clock) for clock in known if clock is not None)
    return BenchmarkReading(trial, "a matmul", true_s=0.0, clocks_mhz=clocks_mhz)


def _is_other_clock(reading: BenchmarkReading) -> bool:
    # A settled clock moves by 1 or 2 % by itself, so 3 % is the same clock, as for gpulab.clocks.
    low_mhz, high_mhz = 0.97 * min(reading.clocks_mhz), 1.03 * max(reading.clocks_mhz)
    return not low_mhz <= (reading.clock_mhz or 0.0) <= high_mhz


_CLOCK: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.clock_mhz is None,
        Diagnosis(
            "no-clock",
            "It does not return the clock: return a pair, seconds and the SM clock in MHz that "
            "torch.cuda.clock_rate() gives right after the last call.",
        ),
    ),
    (
        _is_other_clock,
        lambda reading: Diagnosis(
            "wrong-clock",
            f"It returned {reading.clock_mhz:g} MHz, while the work ran at about "
            f"{reading.clocks_mhz[-1]:g} MHz. Read the clock after the timed calls, not before "
            "all work.",
        ),
    ),
)


def _read_cold(benchmark: Benchmark) -> BenchmarkReading:
    work = _matmul(1024)
    hot_s = _true_s(work)
    name = "a matmul of 1,024 x 1,024 with a cold cache"
    reading = _read(name, work, benchmark, cache="cold")
    # The benchmark's own floor may be as large as the difference of hot and cold.
    empty = _read("a kernel without data", _spin(0.02), benchmark)
    return replace(reading, hot_s=hot_s, excess_s=max(empty.seconds - empty.true_s, 0.0))


_FLUSH: tuple[BenchmarkRule, ...] = (
    (
        lambda reading: reading.seconds - reading.excess_s < (reading.hot_s + reading.true_s) / 2,
        lambda reading: reading.diagnosis(
            "hot-cache", "Its input was in the L2 cache: flush the cache before each call."
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
    "stopwatch": ((_read_millisecond_kernel, _STOPWATCH),),
    "wait": (
        (lambda benchmark: _read("one kernel", _spin(2.0), benchmark), _WAIT_AFTER),
        (_read_on_busy_gpu, _WAIT_BEFORE),
    ),
    "events": ((lambda benchmark: _read("a short kernel", _spin(0.02), benchmark), _EVENTS),),
    "warm-up": ((_read_slow_at_first, _WARM_UP),),
    "clock": ((_read_settled, _CLOCK),),
    "flush": ((_read_cold, _FLUSH),),
    # Many kernels: the gaps add up, and the floor of the events is added only once.
    "sleep": ((_cold("thirty small kernels", lambda: _small_kernels(30)), _SLEEP),),
    # One work each that is limited by arithmetic, by memory and by its launches.
    "measure": (
        (_cold("a matmul of 2,048 x 2,048", lambda: _matmul(2048)), _MEASURE),
        (_cold("a sum of 64 MiB", lambda: _sum(64 * _MIB)), _MEASURE),
        (_cold("ten small kernels", lambda: _small_kernels(10)), _MEASURE),
    ),
}


def _true_s(work: Work, *, cache: str = "hot") -> float:
    from gpulab.timing import measure

    return measure(work, cache=cache, n_samples=10).median_s


# The works; lengths of spinning kernels are in milliseconds.


def _spin(length_ms: float) -> Work:
    from gpulab.core.torch_private import spin

    n_cycles = round(length_ms * 1_980_000)  # the boost clock of the virtual H200: 1,980 MHz
    return lambda: spin(n_cycles)


def _slow_at_first(length_ms: float) -> Work:
    """Return work whose first call takes forty times as long, the next ones less and less."""
    usual = _spin(length_ms)
    slow = [_spin(length_ms * (1 + 39 * n_left / _N_SLOW)) for n_left in range(1, _N_SLOW + 1)]

    def work() -> None:
        (slow.pop() if slow else usual)()

    return work


def _hot_matmul() -> Work:
    import torch

    # It reaches the power limit. With lighter work the clock would be the same at any moment, and
    # reading it too early would not show.
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    return lambda: a @ a


def _matmul(n: int) -> Work:
    import torch

    a = torch.randn(n, n, device="cuda")
    return lambda: a @ a


def _sum(n: int) -> Work:
    import torch

    a = torch.zeros(n, device="cuda")
    return a.sum


def _small_kernels(n_kernels: int) -> Work:
    import torch

    a = torch.zeros(1 << 14, device="cuda")

    def work() -> None:
        b = a
        for _ in range(n_kernels):
            b = torch.relu(b)

    return work
