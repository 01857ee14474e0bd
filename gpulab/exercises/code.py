"""The form of answers that are functions: they are run, and what they read is explained."""

from dataclasses import dataclass
from math import isclose
from typing import TYPE_CHECKING

from gpulab.exercises.forms import Diagnosis, no_function, unanswered
from gpulab.exercises.records import Verdict, is_open

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpulab.exercises.running import Trial

# A reading may hold the launch and the wake-up; the work is long enough to make them small.
_TOLERANCE = 0.25


@dataclass(frozen=True, slots=True)
class Timer:
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
        Part of an exception's message to the diagnosis of who raised it.
    """

    name: str
    why: str
    explain: "Callable[[Trial, Trial], Diagnosis | None]"
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
        from gpulab.exercises.running import run

        idle = run(answer)
        if _is_stub(idle):
            return unanswered(self.how)
        diagnosis = self._broken(idle) or _wrong_scale(idle)
        diagnosis = diagnosis or self.explain(idle, run(answer, backlog=True))
        return diagnosis.verdict() if diagnosis else Verdict(ok=True, message=self.why)

    def _broken(self, trial: "Trial") -> Diagnosis | None:
        """Diagnose a function that gave no reading at all."""
        if trial.error is not None:
            return self._raised(trial.error)
        if trial.n_calls == 0:
            return _NOT_CALLED
        if trial.value is None:
            return _NOTHING
        if trial.ratio is None:
            message = f"Your function returned {trial.value!r}; it must return seconds, a number."
            return Diagnosis("no-number", message)
        return None

    def _raised(self, error: Exception) -> Diagnosis:
        for text, diagnosis in self.errors:
            if text in str(error):
                return diagnosis
        message = f"Your function raised {type(error).__name__}: {error}"
        return Diagnosis("raised", f"{message}\n\nCall it yourself in a cell to see the line.")


_NOT_CALLED = Diagnosis(
    "work-not-called", "Your function never called work(), so there was nothing to time."
)
_NOTHING = Diagnosis(
    "nothing-returned", "Your function called the work but returned nothing; end it with return."
)


def near(value: float | None, expected: float) -> bool:
    """Tell whether two ratios agree as well as two honest stopwatches would."""
    return value is not None and isclose(value, expected, rel_tol=_TOLERANCE)


def times(trial: "Trial") -> str:
    """Write how the reading relates to the work, for a message."""
    ratio = trial.ratio or 0.0
    return f"{ratio:.3g} times what the work takes"


def _is_stub(trial: "Trial") -> bool:
    return trial.error is None and trial.n_calls == 0 and is_open(trial.value)


def _wrong_scale(trial: "Trial") -> Diagnosis | None:
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
            f"Your interval holds work() {trial.n_calls} times, but the time of one call is "
            "asked for. Warm up outside the interval, or divide.",
        )
    return None
