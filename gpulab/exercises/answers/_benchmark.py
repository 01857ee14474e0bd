"""The judge for a learner's benchmark: it has to time works whose true time is known.

The course builds the benchmark in steps, called rungs, one in each lesson from 01 to 07.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from numbers import Real

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import Diagnosis, no_function, raised, unanswered
from gpulab.exercises.answers._fresh_gpu import fresh_h200
from gpulab.exercises.answers._watching import elapsed_calls, other_clock, ready_made_timer
from gpulab.units import counted, format_time

Work = Callable[[], object]

RUNGS = ("stopwatch", "wait", "events", "warm-up", "clock", "flush", "sleep", "measure")
# Lesson 08b names this limit to the learner: 15 %, and the floor of a pair of events.
_TOLERANCE = 0.15
_FLOOR_S = 6e-6  # a pair of events reads at most so much more than the work between them takes
_MIB = 2**18  # number of elements of 4 bytes in one MiB
_N_SLOW = 30  # slow first calls: more than half of 50 samples, so that they move a median


@dataclass(frozen=True, slots=True)
class BenchmarkTrial:
    """The result of one call of a learner's benchmark, and what the benchmark did.

    Attributes
    ----------
    value
        The returned value.
    error
        The exception that it raised, or None.
    n_calls, n_elapsed
        How often it called the work, and how often it called ``elapsed_time``.
    timer
        Name of a finished timer, such as ``timeit``, that called the work; empty if there was
        none.
    """

    value: object
    error: Exception | None
    n_calls: int
    n_elapsed: int
    timer: str

    @property
    def seconds(self) -> float | None:
        """The returned time, alone or as the first of a pair; None if there is none."""
        first = self.value[0] if isinstance(self.value, tuple) and self.value else self.value
        return _number(first)

    @property
    def clock_mhz(self) -> float | None:
        """The returned clock, as the second of a pair; None if there is none."""
        pair = self.value
        is_pair = isinstance(pair, tuple) and len(pair) == 2  # noqa: PLR2004  # time and clock
        return _number(pair[1]) if is_pair else None  # type: ignore[index]  # is_pair


@dataclass(frozen=True, slots=True)
class BenchmarkJudge:
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

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the benchmark on each rung, and explain the first one that it fails."""
        if not callable(answer):
            return no_function(answer, self.how)
        from gpulab.virtual import watch_clocks

        # The cell of the notebook contains a stub that returns nothing: that is no answer yet.
        with fresh_h200(), watch_clocks() as clocks:
            first = _try(answer, _spin(0.02))
        if first.error is None and first.n_calls == 0 and is_open(first.value):
            return unanswered(self.how)
        # Before the rungs: with a real clock the verdict would depend on this machine's speed.
        if _unreadable(first) is None and not first.n_elapsed:
            real = other_clock(clocks)
            if real is not None:
                return real.verdict()
        for rung in RUNGS[: self._n_rungs]:
            found = _missing(rung, answer)
            if found is not None:
                return found.verdict()
        return Verdict(ok=True, message=self._praise(answer))

    def _praise(self, answer: Work) -> str:
        done = f"Your benchmark has the rung {self.rung!r}."
        for rung in RUNGS[self._n_rungs :]:
            found = _missing(rung, answer)
            if found is not None:
                return f"{done} It still misses one thing ({rung}): {found.message}"
        return f"{done} It agrees with gpulab.measure on every work that was tried."


def _missing(rung: str, answer: Work) -> Diagnosis | None:
    """Return what a benchmark does wrong on one rung, tried on a new virtual GPU, or None."""
    with fresh_h200():
        return _PROBES[rung](answer)


# One function for each rung. It returns the diagnosis of what is wrong, or None.


def _stopwatch(answer: Work) -> Diagnosis | None:
    """Expect a positive number of seconds for one call, of the launch or of the work."""
    launch_s, true_s = _launch_s(_spin(2.0)), _true_s(_spin(2.0))
    reading = _try(answer, _spin(2.0))
    problem = _unreadable(reading)
    if problem is not None:
        return problem
    value_s, n_calls = reading.seconds or 0.0, reading.n_calls
    if value_s <= 0:
        return Diagnosis("negative", f"It returned {value_s:g}. Subtract the start from the end.")
    for code, unit, scale in (("milliseconds", "ms", 1e3), ("microseconds", "µs", 1e6)):
        if any(_near(value_s, scale * each_s) for each_s in (launch_s, true_s)):
            return Diagnosis(code, f"It returns {unit}: {value_s:.3g}. Return seconds.")
    if n_calls > 1 and any(_near(value_s, n_calls * each_s) for each_s in (launch_s, true_s)):
        message = (
            f"It returned the time of all {counted(n_calls, 'call')}. Divide by their number."
        )
        return Diagnosis("not-divided", message)
    # Launch and work are both right here: whether it waits is the question of the next rung.
    if value_s > 2 * true_s:
        return Diagnosis("unexplained", _said("work", value_s, true_s))
    return None


def _wait(answer: Work) -> Diagnosis | None:
    """Expect the time of the whole work, on an idle GPU and on a busy one."""
    work = _spin(2.0)
    true_s, idle_s = _true_s(work), _seconds(_try(answer, work))
    if idle_s < (1 - _TOLERANCE) * true_s:
        text = _said("one kernel", idle_s, true_s)
        message = f"{text} It stops before the GPU has finished: wait, then read the clock."
        return Diagnosis("no-wait", message)
    if not _near(idle_s, true_s):
        return Diagnosis("unexplained", _said("one kernel", idle_s, true_s))
    # A backlog of a hundred times the work: if it is timed, nothing else explains the reading.
    busy_s = _seconds(_try(answer, work, backlog=_spin(200.0)))
    if busy_s > (1 + _TOLERANCE) * true_s:
        text = _said("the same kernel, launched while the GPU is still busy", busy_s, true_s)
        return Diagnosis("backlog", f"{text} Wait for earlier work before you start the clock.")
    return None


def _events(answer: Work) -> Diagnosis | None:
    """Expect the time of a short kernel, by events."""
    work = _spin(0.02)
    true_s, reading = _true_s(work), _try(answer, work)
    if reading.n_elapsed == 0:
        message = (
            "It never asks a pair of events for its time. Record one event before each call and "
            "one after it, wait once at the end, and use elapsed_time."
        )
        return Diagnosis("no-events", message)
    value_s = _seconds(reading)
    if not true_s * (1 - _TOLERANCE) < value_s < true_s * (1 + _TOLERANCE) + _FLOOR_S:
        text = _said("a short kernel", value_s, true_s)
        message = f"{text} Put the events around the call alone, and wait after all calls."
        return Diagnosis("not-between", message)
    return None


def _warm_up(answer: Work) -> Diagnosis | None:
    """Expect the time of the later calls if the first calls are slow."""
    true_s = _true_s(_spin(0.2))
    value_s = _seconds(_try(answer, _slow_at_first(0.2)))
    if value_s > (1 + _TOLERANCE) * true_s + _FLOOR_S:
        text = _said(f"work whose first {_N_SLOW} calls are slow", value_s, true_s)
        message = f"{text} Call it until its time is steady before you take the samples."
        return Diagnosis("no-warm-up", message)
    return None


def _clock(answer: Work) -> Diagnosis | None:
    """Expect a pair: the time, and the clock at which the work ran."""
    from gpulab import clocks

    work = _hot_matmul()
    for _ in range(200):  # about 0.3 s, after which the clock has fallen to the power limit
        work()
    before = clocks.read().sm_mhz
    reading = _try(answer, work)
    after = clocks.read().sm_mhz
    if reading.clock_mhz is None:
        message = (
            "It does not return the clock: return a pair, seconds and the SM clock in MHz that "
            "torch.cuda.clock_rate() gives right after the last call."
        )
        return Diagnosis("no-clock", message)
    known = [float(each) for each in (before, after) if each is not None]
    # A settled clock moves by 1 or 2 % by itself, so 3 % is the same clock, as for gpulab.clocks.
    if not 0.97 * min(known) <= reading.clock_mhz <= 1.03 * max(known):
        message = (
            f"It returned {reading.clock_mhz:g} MHz, while the work ran at about "
            f"{known[-1]:g} MHz. Read the clock after the timed calls, not before all work."
        )
        return Diagnosis("wrong-clock", message)
    return None


def _flush(answer: Work) -> Diagnosis | None:
    """Expect the time with a cold cache: the inputs come from memory."""
    work = _matmul(1024)
    hot_s, cold_s = _true_s(work), _true_s(work, cache="cold")
    # Without the benchmark's floor, which may be as large as the difference of hot and cold.
    value_s = _seconds(_try(answer, work)) - _own_floor_s(answer)
    text = _said("a matmul of 1,024 x 1,024 with a cold cache", value_s, cold_s)
    if value_s < (hot_s + cold_s) / 2:
        message = f"{text} Its input was in the L2 cache: flush the cache before each call."
        return Diagnosis("hot-cache", message)
    return None


def _sleep(answer: Work) -> Diagnosis | None:
    """Expect a time without gaps between small kernels, although Python launches more slowly."""
    # Many kernels: the gaps add up, and the floor of the events is added only once.
    work = _small_kernels(30)
    true_s = _true_s(work, cache="cold")
    value_s = _seconds(_try(answer, work))
    if value_s > (1 + _TOLERANCE) * true_s + _FLOOR_S:
        text = _said("thirty small kernels", value_s, true_s)
        message = (
            f"{text} The GPU waited for Python between the kernels: let it sleep while the host "
            "launches, or capture the work in a graph."
        )
        return Diagnosis("gaps", message)
    return None


def _measure(answer: Work) -> Diagnosis | None:
    """Expect the times that gpulab.measure finds, for several works."""
    # One work each that is limited by arithmetic, by memory and by its launches.
    works = {
        "a matmul of 2,048 x 2,048": _matmul(2048),
        "a sum of 64 MiB": _sum(64 * _MIB),
        "ten small kernels": _small_kernels(10),
    }
    for name, work in works.items():
        true_s, value_s = _true_s(work, cache="cold"), _seconds(_try(answer, work))
        if not true_s * (1 - _TOLERANCE) < value_s < true_s * (1 + _TOLERANCE) + _FLOOR_S:
            return Diagnosis("differs", _said(name, value_s, true_s))
    return None


_PROBES: dict[str, Callable[[Work], Diagnosis | None]] = {
    "stopwatch": _stopwatch,
    "wait": _wait,
    "events": _events,
    "warm-up": _warm_up,
    "clock": _clock,
    "flush": _flush,
    "sleep": _sleep,
    "measure": _measure,
}


def _said(name: str, value_s: float, true_s: float) -> str:
    return (
        f"Your benchmark reads {format_time(value_s)} for {name}, which takes "
        f"{format_time(true_s)}."
    )


def _unreadable(reading: BenchmarkTrial) -> Diagnosis | None:
    """Return the diagnosis of a benchmark that did not return a time of its own, or None."""
    if reading.error is not None:
        return raised(reading.error)
    if reading.n_calls == 0:
        return Diagnosis("work-not-called", "It never called fn(), so there was nothing to time.")
    if reading.timer:
        message = f"The work was timed by {reading.timer}. Build your own timer here."
        return Diagnosis("finished-timer", message)
    if is_open(reading.value):
        message = "It called fn but returned nothing; end it with return."
        return Diagnosis("nothing-returned", message)
    if reading.seconds is None:
        message = f"It returned {reading.value!r}; it must return seconds, a number."
        return Diagnosis("no-number", message)
    return None


def _seconds(reading: BenchmarkTrial) -> float:
    """Return the seconds of a trial; infinity if the benchmark returned none."""
    if reading.error is not None or reading.seconds is None:
        return float("inf")
    return reading.seconds


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value) if isfinite(value) else None


def _near(value: float, expected: float) -> bool:
    return abs(value - expected) <= _TOLERANCE * expected


def _own_floor_s(answer: Work) -> float:
    """Return by how many seconds the benchmark reads too much for a kernel without data."""
    work = _spin(0.02)
    return max(_seconds(_try(answer, work)) - _true_s(work), 0.0)


def _true_s(work: Work, *, cache: str = "hot") -> float:
    from gpulab.timing import measure

    return measure(work, cache=cache, n_samples=10).median_s


def _launch_s(work: Work) -> float:
    from gpulab.timing import measure

    return measure(work, method="naive", n_samples=10).median_s


def _try(answer: Work, work: Work, *, backlog: Work | None = None) -> BenchmarkTrial:
    """Run the benchmark on some work, on an idle GPU or with a backlog in the queue."""
    import torch

    calls: list[str] = []  # for each call of the work, the finished timer that made it, or ""

    def fn() -> object:
        calls.append(ready_made_timer(_call.__code__))
        return work()

    torch.cuda.synchronize()
    if backlog is not None:
        backlog()
    with elapsed_calls() as elapsed:
        value, error = _call(answer, fn)
    torch.cuda.synchronize()
    timers = sorted(set(calls) - {""})
    return BenchmarkTrial(value, error, len(calls), len(elapsed), timers[0] if timers else "")


# A function of its own, because its code marks where the search for finished timers ends.
def _call(answer: Callable[..., object], fn: Work) -> tuple[object, Exception | None]:
    try:
        return answer(fn), None
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return None, error


# The works; lengths of spinning kernels are in milliseconds.


def _spin(length_ms: float) -> Work:
    from gpulab.torch_private import spin

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
