"""The judge for functions that time work: it runs them and judges their readings."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from math import isclose
from numbers import Real

import torch

from gpulab import device, virtual
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises._gpu_work import stopwatch_s
from gpulab.exercises.answers._forms import (
    Diagnosis,
    KnownErrors,
    no_function,
    raised,
    unanswered,
)
from gpulab.exercises.answers._watching import elapsed_calls, other_clock, ready_made_timer
from gpulab.torch_private import spin
from gpulab.units import counted

# A million cycles take about half a millisecond at 2 GHz. Only ratios of times are judged, so the
# clock of the GPU does not matter.
_WORK_CYCLES = 4_000_000
# Five times the work, so that no reading with the backlog in it is taken for the work alone.
_BACKLOG_CYCLES = 20_000_000
# A reading may contain the launch and the wake-up of the host: microseconds, and the work takes
# milliseconds.
_TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class FunctionTrial:
    """The result of one call of a learner's timing function, and what the function did.

    Attributes
    ----------
    value
        The returned value.
    error
        The exception that it raised, or None.
    n_calls
        How often it called the work.
    n_elapsed
        How often it called ``elapsed_time``.
    ready_made
        Name of a finished timer, such as ``timeit``, that called the work; empty if there was
        none.
    work_s, backlog_s
        Seconds that the work and the backlog in front of it took by our own stopwatch.
    clocks
        The clocks that it read on a virtual GPU; None on a CUDA GPU, whose time is real.

    Examples
    --------
    >>> from gpulab.exercises.answers import FunctionTrial
    >>> FunctionTrial(2e-3, None, 1, 0, "", work_s=4e-3, backlog_s=0.0).ratio
    0.5
    """

    value: object
    error: Exception | None
    n_calls: int
    n_elapsed: int
    ready_made: str
    work_s: float
    backlog_s: float
    clocks: virtual.ClocksRead | None = None

    @property
    def ratio(self) -> float | None:
        """Returned seconds divided by the true seconds; None if it did not return a number."""
        if isinstance(self.value, bool) or not isinstance(self.value, Real):
            return None
        return float(self.value) / self.work_s


@dataclass(frozen=True, slots=True)
class TimerFunction:
    """A judge for a function ``f(work)`` that returns the seconds that the work took.

    Attributes
    ----------
    name
        Name of the function in the question.
    why
        The message for a right answer.
    explain
        Returns the diagnosis of the mistakes of one method of timing, or None if nothing is
        wrong. It gets two trials: on an idle GPU, and with a backlog in the queue.
    errors
        Exceptions that are expected, with the diagnosis of each; see :func:`raised`.

    Examples
    --------
    >>> from gpulab.exercises.answers import TimerFunction
    >>> judge = TimerFunction("timed", "Right.", lambda idle, busy: None)
    >>> judge(3).message.partition(".")[0]
    "3 isn't a valid answer"
    """

    name: str
    why: str
    explain: Callable[[FunctionTrial, FunctionTrial], Diagnosis | None]
    errors: KnownErrors = ()

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
        diagnosis = self._without_reading(idle) or _real_clock(idle)
        diagnosis = diagnosis or _wrong_scale(idle)
        diagnosis = diagnosis or self.explain(idle, _try(answer, backlog=True))
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)

    def _without_reading(self, trial: FunctionTrial) -> Diagnosis | None:
        """Return the diagnosis of a function that did not return a time of its own, or None."""
        if trial.error is not None:
            return raised(trial.error, self.errors)
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


_NOT_CALLED = Diagnosis(
    "work-not-called", "Your function never called work(), so there was nothing to time."
)
_NOTHING_RETURNED = Diagnosis(
    "nothing-returned", "Your function called the work but returned nothing; end it with return."
)


def near(value: float | None, expected: float) -> bool:
    """Return whether two ratios agree within 25 %, the error of a stopwatch on such work.

    Examples
    --------
    >>> from gpulab.exercises.answers import near
    >>> near(1.1, 1), near(2.0, 1), near(None, 1)
    (True, False, False)
    """
    return value is not None and isclose(value, expected, rel_tol=_TOLERANCE)


def unexplained(idle: FunctionTrial, busy: FunctionTrial) -> Diagnosis:
    """Return the diagnosis of readings that no known mistake explains.

    Examples
    --------
    >>> from gpulab.exercises.answers import FunctionTrial, unexplained
    >>> trial = FunctionTrial(2e-3, None, 1, 0, "", work_s=4e-3, backlog_s=0.0)
    >>> unexplained(trial, trial).message.partition(";")[0]
    'On an idle GPU your reading is 0.5 times what the work takes'
    """
    on_idle, on_busy = (
        f"{trial.ratio or 0.0:.3g} times what the work takes" for trial in (idle, busy)
    )
    return Diagnosis(
        "unexplained",
        f"On an idle GPU your reading is {on_idle}; with other work in the queue it is {on_busy}. "
        "Both should be close to 1.",
    )


def _try(function: Callable[..., object], *, backlog: bool = False) -> FunctionTrial:
    """Call a learner's function on an idle GPU, or with a backlog of five times the work."""
    calls: list[str] = []

    def work() -> None:
        calls.append(ready_made_timer(_call.__code__))
        spin(_WORK_CYCLES)

    with device.active():
        spin(1)  # so that the first timed call does not pay for loading the kernel
        work_s = stopwatch_s(partial(spin, _WORK_CYCLES))
        # Timed by itself, because waiting for the backlog below would leave the queue empty.
        backlog_s = stopwatch_s(partial(spin, _BACKLOG_CYCLES)) if backlog else 0.0
        if backlog:
            spin(_BACKLOG_CYCLES)
        watched = nullcontext() if virtual.entered() is None else virtual.watch_clocks()
        with elapsed_calls() as elapsed, watched as clocks:
            value, error = _call(function, work)
        torch.cuda.synchronize()
    ready_made = next(filter(None, calls), "")
    return FunctionTrial(
        value, error, len(calls), len(elapsed), ready_made, work_s, backlog_s, clocks
    )


# A function of its own, because its code marks where the search for finished timers ends.
def _call(
    function: Callable[..., object], work: Callable[[], None]
) -> tuple[object, Exception | None]:
    try:
        return function(work), None
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return None, error


def _is_stub(trial: FunctionTrial) -> bool:
    return trial.error is None and trial.n_calls == 0 and is_open(trial.value)


def _real_clock(trial: FunctionTrial) -> Diagnosis | None:
    return None if trial.clocks is None or trial.n_elapsed else other_clock(trial.clocks)


def _wrong_scale(trial: FunctionTrial) -> Diagnosis | None:
    """Return the diagnosis of a wrong unit, sign or number of calls, or None."""
    if near(trial.ratio, 1e3):
        return Diagnosis(
            "milliseconds",
            "Your function returns milliseconds: the number is 1,000 times too large. Return "
            "seconds (elapsed_time returns milliseconds: divide by 1,000).",
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
            f"Your interval contains work() {counted(trial.n_calls, 'time')}, but the question "
            "asks for the time of one call. Warm up outside the interval, or divide.",
        )
    return None
