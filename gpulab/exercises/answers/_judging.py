"""What all judges share: diagnoses, the forms of a verdict, and rules for functions tried once."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from gpulab.core.errors import CutOffError, shown
from gpulab.core.foreign_text import shortened
from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises._fields import Fields
from gpulab.tracing.trials import Rule, Trial, text_of


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A typical mistake: a short name, and the message for a learner who made it."""

    code: str
    message: str

    def verdict(self) -> Verdict:
        """Return the verdict "wrong" with this message."""
        return Verdict(ok=False, message=self.message, diagnosis_code=self.code)


# Errors of a learner's function with their diagnoses; see raised().
KnownErrors = tuple[tuple[str | type[Exception], Diagnosis], ...]
_Reading = TypeVar("_Reading")
TrialRule = Rule[Trial, Diagnosis]
LONGEST = 500  # characters of an error's message, or of a result


# Outcomes that depend on the judge's `how`, which completes their messages.
UNANSWERED = Diagnosis("unanswered", "")
MALFORMED = Diagnosis("not-a-choice", "{answer} isn't a valid answer. ")
FORGOT_UNITS = Diagnosis(
    "forgot-units",
    "The digits are right, but the unit is not: a plain number counts as seconds. Write 12.5e-6 "
    'for 12.5 µs, or the text "12.5 µs".',
)


class ReadingsJudge(ABC):
    """A judge that turns the outcome of judging an answer into a verdict."""

    __slots__ = ()

    @property
    @abstractmethod
    def how(self) -> str:
        """How to write the answer, as one sentence."""

    @property
    def fields(self) -> Fields | None:
        """The fields of a form for the answer; None if it is a function."""
        return None

    @abstractmethod
    def judge_by(self, answer: object, readings: object) -> Diagnosis | str:
        """Return the diagnosis of a mistake, or the message for a right answer."""

    def __call__(self, answer: object, readings: object = None) -> Verdict:
        """Return the verdict on an answer; a placeholder is no answer yet."""
        outcome = UNANSWERED if is_open(answer) else self.judge_by(answer, readings)
        if isinstance(outcome, str):
            return Verdict(ok=True, message=outcome)
        if outcome is UNANSWERED:
            return Verdict(ok=None, message=self.how)
        if outcome is MALFORMED:
            message = MALFORMED.message.format(answer=_one_line(answer)) + self.how
            return Diagnosis(MALFORMED.code, message).verdict()
        return outcome.verdict()


class AnswerJudge(ReadingsJudge):
    """A judge that needs only the answer, and no readings of the learner."""

    __slots__ = ()

    @abstractmethod
    def judge(self, answer: object) -> Diagnosis | str:
        """Return the diagnosis of a mistake, or the message for a right answer."""

    def judge_by(self, answer: object, readings: object) -> Diagnosis | str:  # noqa: ARG002  # needs none
        """Judge the answer alone."""
        return self.judge(answer)


class FunctionJudge(AnswerJudge):
    """A judge for an answer that is a function, which it tries."""

    __slots__ = ()

    @abstractmethod
    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Return the diagnosis of a mistake, or the message for a right function."""

    def judge(self, answer: object) -> Diagnosis | str:
        """Try a function; refuse anything else."""
        return self.judge_function(answer) if callable(answer) else MALFORMED


def _one_line(answer: object) -> str:
    """Return an answer as one line of text, or its type if its ``repr`` raises an error."""
    return " ".join(shown(answer).split())


def raised(error: BaseException, known: KnownErrors = ()) -> Diagnosis:
    """Return the diagnosis of a function that raised an error when it was tried.

    Parameters
    ----------
    error
        What it raised.
    known
        Classes of errors with their diagnoses. PyTorch and CUDA have no classes for most of their
        errors; for one of those, a part of its message.
    """
    for which, diagnosis in known:
        if isinstance(error, which) if isinstance(which, type) else which in text_of(error):
            return diagnosis
    if isinstance(error, CutOffError):
        return Diagnosis("endless", f"Your function was stopped: {error}.")
    name, text = type(error).__name__, shortened(text_of(error), LONGEST)
    return Diagnosis(
        "raised",
        f"Your function raised {name}{': ' if text else ''}{text}\n\n"
        "Call it yourself in a cell to see the line.",
    )


# A function that did nothing, like the one in the notebook's cell, is no answer yet.
STUB: TrialRule = (
    lambda trial: trial.error is None and not trial.calls and is_open(trial.value),
    UNANSWERED,
)


def idle_again(work: str) -> TrialRule:
    """Return the rule for a function that has called a work before, and not this time."""
    return (
        lambda trial: trial.error is None and not trial.calls,
        Diagnosis(
            "not-again",
            f"It called {work} when it was tried first, and not for the next work. Time the work "
            "that it gets each time, and keep nothing from an earlier call.",
        ),
    )


def raising(known: KnownErrors = ()) -> TrialRule:
    """Return the rule for a function that raised an error; see :func:`raised`."""
    return (
        lambda trial: trial.error is not None,
        lambda trial: raised(trial.error or Exception(), known),
    )


def returning_nothing(work: str) -> TrialRule:
    """Return the rule for a function that called a work, named in words, but returned nothing."""
    message = f"Your function called {work} but returned nothing; end it with return."
    return (lambda trial: is_open(trial.value), Diagnosis("nothing-returned", message))


def returning_no_number(wanted: str, is_number: Callable[[Trial], bool]) -> TrialRule:
    """Return the rule for a function that did not return what is wanted, such as ``"seconds"``."""
    return (
        lambda trial: not is_number(trial),
        lambda trial: Diagnosis(
            "no-number", f"Your function returned {shown(trial.value)}; it must return {wanted}."
        ),
    )


# Before the reading is judged: with a real clock the verdict would depend on this machine's speed.
_OTHER_CLOCK: TrialRule = (
    lambda trial: bool(trial.real_clock),
    lambda trial: Diagnosis(
        "other-clock",
        f"It reads {trial.real_clock}, which shows the real time of this machine. On the "
        "virtual GPU your program runs on a virtual clock: read time.perf_counter(), or record "
        "events.",
    ),
)


def without_reading(
    work: str,
    is_number: Callable[[Trial], bool],
    known: KnownErrors = (),
    wanted: str = "seconds, a number",
) -> tuple[TrialRule, ...]:
    """Return the rules for a function that did not return a time of its own for a work."""
    return (
        STUB,
        raising(known),
        (
            lambda trial: not trial.calls,
            Diagnosis(
                "work-not-called",
                f"Your function never called {work}, so there was nothing to time.",
            ),
        ),
        (
            lambda trial: bool(trial.timer),
            lambda trial: Diagnosis(
                "ready-made-timer",
                f"Your function lets {trial.timer} time the work. Write the timer yourself: "
                "read the clock or record the events in your own lines.",
            ),
        ),
        returning_nothing(work),
        returning_no_number(wanted, is_number),
        _OTHER_CLOCK,
    )


# Factors by which a time in another unit is too large.
_UNITS = ((1e3, "milliseconds"), (1e6, "microseconds"))
_HINTS = {
    "milliseconds": "elapsed_time returns milliseconds: divide by 1,000",
    "microseconds": "printing can choose the unit later",
}


def wrong_units(
    is_too_large: Callable[[_Reading, float], bool],
) -> tuple[Rule[_Reading, Diagnosis], ...]:
    """Return the rules for times in milliseconds or microseconds.

    Parameters
    ----------
    is_too_large
        Returns whether a reading is the right one multiplied by a factor.
    """
    return tuple(
        (
            lambda reading, factor=factor: is_too_large(reading, factor),
            Diagnosis(
                unit,
                f"Your function returns {unit}: the number is {factor:,.0f} times too large. "
                f"Return seconds ({_HINTS[unit]}).",
            ),
        )
        for factor, unit in _UNITS
    )
