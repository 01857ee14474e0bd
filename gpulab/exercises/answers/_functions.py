"""The form of answers that are a function of numbers: it is called for a few cases and judged."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import (
    Diagnosis,
    no_function,
    raised,
    read_number,
    unanswered,
)

__all__ = ["CaseFunction", "run_on_cases"]

_TOLERANCE = 1e-3

CaseArguments = tuple[Any, ...]  # the arguments of one call
Formula = Callable[..., object]


@dataclass(frozen=True, slots=True)
class CaseFunction:
    """A function that is judged by what it returns for some cases.

    A wrong formula is recognised by all of its results together, since it may be right for one
    case. What is reported otherwise is the first case for which the result is wrong.

    Attributes
    ----------
    signature
        How the function is written, e.g. ``"least_time(m, k, n)"``.
    returns
        What it must return, as the end of "and return ...".
    why
        What to say when it is right.
    cases
        The arguments of each call.
    right
        The function that is asked for.
    mistakes
        Wrong functions with their diagnoses, in the order in which they are tried.
    otherwise
        Describes a case and what is expected of it, for a result that no mistake explains.
    special
        Cases that are tried last, each with its own diagnosis; ``{did}`` in its message becomes
        what the function did.
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

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Call the function for each case, and recognise what it computes."""
        results, verdict = run_on_cases(answer, self.cases, self.how)
        if verdict is not None:
            return verdict
        found = self._wrong(results)
        if found is None and callable(answer):
            found = self._wrong_special(answer)
        return found.verdict() if found else Verdict(ok=True, message=self.why)

    def _wrong(self, results: Sequence[object]) -> Diagnosis | None:
        if self._are(results, self.right):
            return None
        for mistake, diagnosis in self.mistakes:
            if self._are(results, mistake):
                return diagnosis
        pairs = zip(self.cases, results, strict=True)
        case, result = next(pair for pair in pairs if not _same(pair[1], self.right(*pair[0])))
        message = f"Your function returned {result!r}. {self.otherwise(case)}"
        return Diagnosis("unexplained", message)

    def _wrong_special(self, answer: Callable[..., object]) -> Diagnosis | None:
        for case, diagnosis in self.special:
            try:
                result = answer(*case)
            except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
                did = f"raised {type(error).__name__}"
            else:
                if _same(result, self.right(*case)):
                    continue
                did = f"returned {result!r}"
            return Diagnosis(diagnosis.code, diagnosis.message.format(did=did))
        return None

    def _are(self, results: Sequence[object], formula: Formula) -> bool:
        pairs = zip(results, self.cases, strict=True)
        return all(_same(result, formula(*case)) for result, case in pairs)


def _same(result: object, expected: object) -> bool:
    """Compare two results: numbers to a thousandth, words whatever their case."""
    if isinstance(expected, str):
        return isinstance(result, str) and result.strip().lower() == expected
    number, wanted = read_number(result), read_number(expected)
    if number is None or wanted is None:
        return result is expected
    return isclose(number, wanted, rel_tol=_TOLERANCE)


def run_on_cases(
    answer: object, cases: Iterable[tuple[object, ...]], how: str
) -> tuple[list[object], Verdict | None]:
    """Return the results of a function for some cases, or the verdict that there are none.

    Parameters
    ----------
    answer
        What the learner gave; anything.
    cases
        The arguments of each call.
    how
        How the answer is to be written.

    Returns
    -------
    tuple
        The results; and a verdict if the answer is open, is no function, or raises.
    """
    if not callable(answer):
        return [], no_function(answer, how)
    try:
        found = [answer(*case) for case in cases]
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return [], raised(error).verdict()
    return found, unanswered(how) if all(map(is_open, found)) else None
