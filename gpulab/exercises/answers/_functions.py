"""The judge for answers that are functions of numbers: it calls them for some cases."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from gpulab.core.errors import shown
from gpulab.exercises._exercise import is_open
from gpulab.exercises.answers._forms import read_number
from gpulab.exercises.answers._judging import UNANSWERED, Diagnosis, FunctionJudge, raised
from gpulab.tracing.trials import called

__all__ = ["CaseFunction", "run_on_cases"]

# Results are computed and not measured, so this only has to allow for another order of operations.
_TOLERANCE = 1e-3

CaseArguments = tuple[Any, ...]  # the arguments of one call
Formula = Callable[..., object]


@dataclass(frozen=True, slots=True)
class CaseFunction(FunctionJudge):
    """A judge for a function of numbers, by the results that it returns for some cases.

    A wrong formula may be right for one case, so a mistake is recognised by all results together.
    If no known mistake fits, the verdict shows the first case with a wrong result.

    Attributes
    ----------
    signature
        The function's name and arguments, for example ``"least_time(m, k, n)"``.
    returns
        What it must return; this completes the sentence "and return ...".
    why
        The message for a right answer.
    cases
        The arguments of each call.
    right
        A right function.
    mistakes
        Wrong functions with their diagnoses, in the order in which they are tried.
    otherwise
        Returns a sentence about a case and its right result, for a result that no mistake
        explains.
    special
        Cases that are tried last, each with its own diagnosis. ``{did}`` in its message is
        replaced by what the function did.
    """

    signature: str
    returns: str
    why: str
    cases: tuple[CaseArguments, ...]
    right: Formula
    mistakes: tuple[tuple[Formula, Diagnosis], ...]
    otherwise: Callable[[Any], str]
    special: tuple[tuple[CaseArguments, Diagnosis], ...] = ()

    @property
    def how(self) -> str:
        """How to write the answer."""
        return f"Answer with the function: def {self.signature}, and return {self.returns}."

    def judge_function(self, function: Callable[..., object]) -> Diagnosis | str:
        """Call the function for each case, and recognise a mistake by the results."""
        results, fault = run_on_cases(function, self.cases)
        return fault or self._wrong(results) or self._wrong_special(function) or self.why

    def _wrong(self, results: Sequence[object]) -> Diagnosis | None:
        if self._are(results, self.right):
            return None
        for mistake, diagnosis in self.mistakes:
            if self._are(results, mistake):
                return diagnosis
        pairs = zip(self.cases, results, strict=True)
        case, result = next(pair for pair in pairs if not _same(pair[1], self.right(*pair[0])))
        message = f"Your function returned {shown(result)}. {self.otherwise(case)}"
        return Diagnosis("unexplained", message)

    def _wrong_special(self, answer: Callable[..., object]) -> Diagnosis | None:
        for case, diagnosis in self.special:
            trial = called(answer, *case)
            if trial.error is None and _same(trial.value, self.right(*case)):
                continue
            did = (
                f"returned {shown(trial.value)}"
                if trial.error is None
                else f"raised {type(trial.error).__name__}"
            )
            return Diagnosis(diagnosis.code, diagnosis.message.format(did=did))
        return None

    def _are(self, results: Sequence[object], formula: Formula) -> bool:
        pairs = zip(results, self.cases, strict=True)
        return all(_same(result, formula(*case)) for result, case in pairs)


def _same(result: object, expected: object) -> bool:
    """Return whether two results agree: numbers within 0.1 %, words without regard to case."""
    if isinstance(expected, str):
        return isinstance(result, str) and result.strip().lower() == expected
    number, wanted = read_number(result), read_number(expected)
    if number is None or wanted is None:
        # Neither is a number: None agrees with None, and with nothing else.
        return result is expected
    return isclose(number, wanted, rel_tol=_TOLERANCE)


def run_on_cases(
    function: Callable[..., object], cases: Iterable[tuple[object, ...]]
) -> tuple[list[object], Diagnosis | None]:
    """Return the results of a learner's function for some cases, or why it has none.

    Parameters
    ----------
    function
        The learner's function.
    cases
        The arguments of each call.

    Returns
    -------
    tuple
        The results, and None; or the diagnosis of an error, or that there is no answer yet.
    """
    trials = [called(function, *case) for case in cases]
    error = next((trial.error for trial in trials if trial.error is not None), None)
    if error is not None:
        return [], raised(error)
    results = [trial.value for trial in trials]
    return results, UNANSWERED if all(map(is_open, results)) else None
