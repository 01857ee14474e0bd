"""The form of answers that are a function which times work: it is run, and its reading judged."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isclose
from numbers import Real

import torch

from gpulab import device
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises._gpu_work import stopwatch_s
from gpulab.exercises.answers._forms import Diagnosis, no_function, raised, unanswered
from gpulab.exercises.answers._watching import elapsed_calls, ready_made_timer
from gpulab.torch_private import spin
from gpulab.units import counted

# Half a millisecond for each million cycles on the GPUs of today; only ratios are judged.
_WORK_CYCLES = 4_000_000
_BACKLOG_CYCLES = 20_000_000
# A reading may contain the launch and the wake-up; the work is long enough to make them small.
_TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class FunctionTrial:
    """What one call of a learner's timing function returned and did.

    Attributes
    ----------
    value
        What it returned.
    error
        What it raised, or None.
    n_calls
        How often it called the work it was given.
    n_elapsed
        How often it asked a pair of events for the time between them.
    ready_made
        The timer of somebody else that called the work for it; empty if there was none.
    work_s, backlog_s
        What the work, and what was queued in front of it, took by our own stopwatch.
    """

    value: object
    error: Exception | None
    n_calls: int
    n_elapsed: int
    ready_made: str
    work_s: float
    backlog_s: float

    @property
    def ratio(self) -> float | None:
        """Returned seconds divided by those of the work; None if no number was returned."""
        if isinstance(self.value, bool) or not isinstance(self.value, Real):
            return None
        return float(self.value) / self.work_s


@dataclass(frozen=True, slots=True)
class TimerFunction:
    """A function ``f(work)`` that returns the seconds which the work took.

    Attributes
    ----------
    name
        Its name in the question.
    why
        What to say when it is right.
    explain
        Diagnoses the readings that are particular to one method of timing. It gets the trial
        on the idle GPU and the one with a backlog; None means that nothing is wrong.
    errors
        Part of an exception's message, and the diagnosis of a function that raised it.
    """

    name: str
    why: str
    explain: Callable[[FunctionTrial, FunctionTrial], Diagnosis | None]
    errors: tuple[tuple[str, Diagnosis], ...] = ()

    @property
    def how(self) -> str:
        """How to write the answer."""
        return (
            f"Answer with the function: write def {self.name}(work), where work is a function "
            "without arguments that puts work into the queue, and return seconds."
        )

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Run the function on the GPU in use, idle and with a backlog, and judge the readings."""
        if not callable(answer):
            return no_function(answer, self.how)

        idle = _try(answer)
        if _is_stub(idle):
            return unanswered(self.how)
        diagnosis = self._without_reading(idle) or _wrong_scale(idle)
        diagnosis = diagnosis or self.explain(idle, _try(answer, backlog=True))
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)

    def _without_reading(self, trial: FunctionTrial) -> Diagnosis | None:
        """Diagnose a function that gave no reading at all."""
        if trial.error is not None:
            return self._raised(trial.error)
        if trial.n_calls == 0:
            return _NOT_CALLED
        if trial.ready_made:
            return Diagnosis(
                "ready-made-timer",
                f"Your function lets {trial.ready_made} time the work. Write the timer yourself: "
                "read the clock or record the events in your own lines.",
            )
        if trial.value is None:
            return _NOTHING_RETURNED
        if trial.ratio is None:
            message = f"Your function returned {trial.value!r}; it must return seconds, a number."
            return Diagnosis("no-number", message)
        return None

    def _raised(self, error: Exception) -> Diagnosis:
        for text, diagnosis in self.errors:
            if text in str(error):
                return diagnosis
        return raised(error)


_NOT_CALLED = Diagnosis(
    "work-not-called", "Your function never called work(), so there was nothing to time."
)
_NOTHING_RETURNED = Diagnosis(
    "nothing-returned", "Your function called the work but returned nothing; end it with return."
)


def near(value: float | None, expected: float) -> bool:
    """Tell whether two ratios agree as well as two honest stopwatches would."""
    return value is not None and isclose(value, expected, rel_tol=_TOLERANCE)


def unexplained(idle: FunctionTrial, busy: FunctionTrial) -> Diagnosis:
    """Make the diagnosis of readings that are wrong in a way that nobody foresaw."""
    on_idle, on_busy = (
        f"{trial.ratio or 0.0:.3g} times what the work takes" for trial in (idle, busy)
    )
    return Diagnosis(
        "unexplained",
        f"On an idle GPU your reading is {on_idle}; with other work in the queue it is {on_busy}. "
        "Both should be close to 1.",
    )


def _try(function: Callable[..., object], *, backlog: bool = False) -> FunctionTrial:
    """Call a learner's function with some work, on an idle GPU or after five times as much."""
    calls: list[str] = []

    def work() -> None:
        calls.append(ready_made_timer(_call.__code__))
        spin(_WORK_CYCLES)

    with device.active():
        spin(1)  # the first launch of all pays for loading the kernel
        work_s = stopwatch_s(partial(spin, _WORK_CYCLES))
        backlog_s = stopwatch_s(partial(spin, _BACKLOG_CYCLES)) if backlog else 0.0
        if backlog:
            spin(_BACKLOG_CYCLES)
        with elapsed_calls() as elapsed:
            value, error = _call(function, work)
        torch.cuda.synchronize()
    ready_made = next(filter(None, calls), "")
    return FunctionTrial(value, error, len(calls), len(elapsed), ready_made, work_s, backlog_s)


def _call(
    function: Callable[..., object], work: Callable[[], None]
) -> tuple[object, Exception | None]:
    try:
        return function(work), None
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return None, error


def _is_stub(trial: FunctionTrial) -> bool:
    return trial.error is None and trial.n_calls == 0 and is_open(trial.value)


def _wrong_scale(trial: FunctionTrial) -> Diagnosis | None:
    """Recognise readings that are wrong by their unit, their sign or the number of calls."""
    if near(trial.ratio, 1e3):
        return Diagnosis(
            "milliseconds",
            "Your function returns milliseconds: the number is 1,000 times too large. Return "
            "seconds (what elapsed_time gives are milliseconds: divide them by 1,000).",
        )
    if near(trial.ratio, 1e6):
        return Diagnosis(
            "microseconds",
            "Your function returns microseconds: the number is 1,000,000 times too large. Return "
            "seconds; printing can choose the unit later.",
        )
    if trial.ratio is not None and trial.ratio < 0:
        return Diagnosis("negative", "The reading is negative: subtract the start from the end.")
    if trial.n_calls > 1 and near(trial.ratio, trial.n_calls):
        return Diagnosis(
            "called-several-times",
            f"Your interval holds work() {counted(trial.n_calls, 'time')}, but the time of one "
            "call is asked for. Warm up outside the interval, or divide.",
        )
    return None
