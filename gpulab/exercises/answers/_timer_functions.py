"""The judge for functions that time work: it runs them and judges their readings."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isclose

from gpulab.core.torch_private import spin
from gpulab.core.units import counted
from gpulab.exercises._gpu_work import stopwatch_s
from gpulab.exercises.answers._fresh_gpu import fresh_gpu
from gpulab.exercises.answers._judging import (
    Diagnosis,
    FunctionJudge,
    KnownErrors,
    idle_again,
    without_reading,
    wrong_units,
)
from gpulab.tracing.trials import Rule, Trial, WatchedWork, first_fitting, tried

_WORK_CYCLES = 4_000_000  # 2 ms
# Five times the work, so that no reading with the backlog in it is taken for the work alone. Then
# 20 s: a function that sleeps in place of a wait does not sleep as long.
_BACKLOGS_CYCLES = (20_000_000, 40_000_000_000)
# A reading may contain the launch and the wake-up of the host: microseconds, and the work takes
# milliseconds.
_TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class TimerReading:
    """One call of a learner's timing function, and the seconds that its work takes.

    ``queued`` is the backlog in front of the work, in multiples of the work; 0 on an idle GPU.
    """

    trial: Trial
    work_s: float
    queued: float = 0.0

    @property
    def ratio(self) -> float:
        """Returned seconds divided by the true seconds; nan if it did not return a number."""
        number = self.trial.number
        return float("nan") if number is None else number / self.work_s

    def is_near(self, multiple: float) -> bool:
        """Return whether the reading is a multiple of the work, as accurately as a stopwatch."""
        return isclose(self.ratio, multiple, rel_tol=_TOLERANCE)


TimerMistake = Rule[tuple[TimerReading, TimerReading], Diagnosis]

_WRONG_SCALE: tuple[Rule[TimerReading, Diagnosis], ...] = (
    *wrong_units(TimerReading.is_near),
    (
        lambda reading: reading.ratio < 0,
        Diagnosis("negative", "The reading is negative: subtract the start from the end."),
    ),
    (
        lambda reading: reading.trial.n_calls > 1 and reading.is_near(reading.trial.n_calls),
        lambda reading: Diagnosis(
            "called-several-times",
            f"Your interval contains work() {counted(reading.trial.n_calls, 'time')}, but the "
            "question asks for the time of one call. Warm up outside the interval, or divide.",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class TimerFunction(FunctionJudge):
    """A judge for a function ``f(work)`` that returns the seconds that a work took on an H200.

    Its rules for the mistakes of one method of timing each get two readings: on an idle GPU, and
    with a backlog in the queue. ``errors`` are expected, with the diagnosis of each; see
    :func:`raised`.
    """

    name: str
    why: str
    mistakes: tuple[TimerMistake, ...]
    errors: KnownErrors = ()

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            f"Answer with the function: write def {self.name}(work), where work is a function "
            "without arguments that puts work into the queue, and return seconds."
        )

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Run the function on an idle GPU and behind a backlog, and judge the readings."""
        with fresh_gpu():
            idle = _read(function)
            no_reading = without_reading("work()", _has_number, self.errors)
            mistake = first_fitting(no_reading, idle.trial) or first_fitting(_WRONG_SCALE, idle)
            for backlog_cycles in _BACKLOGS_CYCLES:
                if mistake is not None:
                    break
                busy = _read(function, backlog_cycles)
                # It has timed the work once, so if it does nothing now it is no stub.
                mistake = first_fitting((idle_again("work()"), *no_reading), busy.trial) or (
                    first_fitting((*self.mistakes, _UNEXPLAINED), (idle, busy))
                )
                if busy.trial.asked["Event.query"] + busy.trial.asked["Stream.query"]:
                    break  # to ask an event again and again for 20 s would take minutes
        return mistake or self.why


def _has_number(trial: Trial) -> bool:
    return trial.number is not None


def _read(function: Callable[..., object], backlog_cycles: int = 0) -> TimerReading:
    """Call a learner's function on an idle GPU, or with a backlog in the queue."""
    work = partial(spin, _WORK_CYCLES)
    work_s = stopwatch_s(work)
    # Timed by itself, because waiting for the backlog below would leave the queue empty.
    backlog_s = stopwatch_s(partial(spin, backlog_cycles)) if backlog_cycles else 0.0
    if backlog_cycles:
        spin(backlog_cycles)
    trial = tried(function, WatchedWork(work), clocks=not backlog_cycles)
    return TimerReading(trial, work_s, backlog_s / work_s)


def _describe(readings: tuple[TimerReading, TimerReading]) -> Diagnosis:
    on_idle, on_busy = (f"{reading.ratio:.3g} times what the work takes" for reading in readings)
    return Diagnosis(
        "unexplained",
        f"On an idle GPU your reading is {on_idle}; with other work in the queue it is {on_busy}. "
        "Both should be close to 1.",
    )


_UNEXPLAINED: TimerMistake = (
    lambda readings: not all(reading.is_near(1) for reading in readings),
    _describe,
)
