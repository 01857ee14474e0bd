"""Judges without keys: a key gives each of them what is right, and lies with the grader alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Protocol

from gpulab.course._question import LabQuestion, Variant
from gpulab.foreign_text import visible

_LARGE = 1e15


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a question's marks, and what to say about it.

    Attributes
    ----------
    share
        From 0 to 1, of the marks of this part.
    text
        What was found.
    """

    share: float
    text: str


class ValueKey(Protocol):
    """A key for answers that are values."""

    def solution(self, variant: Variant) -> str:
        """Return the value that is right, as Python text."""
        ...

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge an answer in parts that weigh the same."""
        ...


@dataclass(frozen=True, slots=True)
class LettersKey:
    """Which of the choices are right; each wrong one more costs half of what half of them cost.

    Attributes
    ----------
    right
        Returns the letters for a variant.
    """

    right: Callable[[Variant], str]

    def solution(self, variant: Variant) -> str:
        """Return the value that is right, as Python text."""
        return repr(self.right(variant))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge letters: all right is 1; as many mistakes as half of the choices is 0."""
        if not isinstance(answer, str) or set(answer) - set(variant.choices):
            return [Share(0.0, f"It is no text of the letters {''.join(variant.choices)}.")]
        n_wrong = len(set(answer) ^ set(self.right(variant)))
        share = max(0.0, 1 - 2 * n_wrong / len(variant.choices))
        return [Share(share, f"{n_wrong} of {len(variant.choices)} letters are wrong.")]


@dataclass(frozen=True, slots=True)
class NumbersKey:
    """Numbers by name; each is a part of its own.

    Attributes
    ----------
    right
        Returns the numbers for a variant.
    tolerance
        Relative error that is still right.
    """

    right: Callable[[Variant], Mapping[str, float]]
    tolerance: float = 0.02

    def solution(self, variant: Variant) -> str:
        """Return the value that is right, as Python text."""
        return repr(dict(self.right(variant)))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge each number by itself."""
        given = answer if isinstance(answer, dict) else {}
        return [
            _compared(name, self._agrees(given.get(name), value))
            for name, value in self.right(variant).items()
        ]

    def _agrees(self, given: object, value: float) -> bool:
        if isinstance(given, bool) or not isinstance(given, int | float):
            return False
        if abs(given) > _LARGE:  # a whole number may be larger than any float
            return False
        return isclose(given, value, rel_tol=self.tolerance)


@dataclass(frozen=True, slots=True)
class SetsKey:
    """Sets of letters by name; each is a part of its own, and must be right as a whole.

    Attributes
    ----------
    right
        Returns the letters for a variant.
    """

    right: Callable[[Variant], Mapping[str, str]]

    def solution(self, variant: Variant) -> str:
        """Return the value that is right, as Python text."""
        return repr(dict(self.right(variant)))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge each set by itself."""
        given = answer if isinstance(answer, dict) else {}
        return [
            _compared(name, isinstance(given.get(name), str) and set(given[name]) == set(letters))
            for name, letters in self.right(variant).items()
        ]


def _compared(name: str, agrees: bool) -> Share:  # noqa: FBT001  # the two outcomes of a part
    return Share(float(agrees), f"{name}: {'right' if agrees else 'wrong'}.")


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that a function must get right.

    Attributes
    ----------
    name
        Of the part, and of the fact that the trial notes unless another is given.
    text
        What to say if it is wrong.
    index
        Which of the numbers of the fact.
    low, high
        How far the number may lie below and above that of the reference, as shares of it.
    fact
        Name of the fact.
    after
        Name of a part that must be right first; empty if there is none.
    """

    name: str
    text: str
    index: int = 0
    low: float = 0.05
    high: float = 0.05
    fact: str = ""
    after: str = ""

    def agrees(self, found: Mapping[str, object], right: Mapping[str, object]) -> bool:
        """Tell whether the fact of an answer is that of the reference."""
        number, reference = (self._number(facts) for facts in (found, right))
        if number is None or reference is None:
            return False
        return reference * (1 - self.low) <= number <= reference * (1 + self.high)

    def _number(self, facts: Mapping[str, object]) -> float | None:
        noted = facts.get(self.fact or self.name)
        if not isinstance(noted, list) or self.index >= len(noted):
            return None
        number = noted[self.index]
        return number if isinstance(number, float) and isfinite(number) else None


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """A function that is right, and what another one must share with it.

    Attributes
    ----------
    reference
        The text of the function; the trial runs it as it runs the learner's.
    parts
        What is compared, each worth the same.
    """

    reference: str
    parts: tuple[Part, ...]

    def judge(self, found: Mapping[str, object], right: Mapping[str, object]) -> list[Share]:
        """Compare what the trial noted of an answer with what it noted of the reference."""
        shares: dict[str, Share] = {}
        for part in self.parts:
            first = shares.get(part.after)
            agrees = part.agrees(found, right) and (first is None or first.share > 0)
            noted = found.get(part.fact or part.name)
            raised = f" ({visible(noted)[:200]})" if isinstance(noted, str) else ""
            text = f"{part.name}: right." if agrees else f"{part.name}: {part.text}{raised}"
            shares[part.name] = Share(float(agrees), text)
        return list(shares.values())


Key = LettersKey | NumbersKey | SetsKey | FunctionKey


def solution_of(question: LabQuestion, key: Key, variant: Variant | None) -> str:
    """Return the cell that answers a question.

    Parameters
    ----------
    question, key
        The question and its key.
    variant
        Whose numbers to use; without one, a value is left open.
    """
    if isinstance(key, FunctionKey):
        return key.reference.strip("\n")
    if variant is None:
        return f"{question.name} = ...  # each learner has a key: gpulab course key"
    return f"{question.name} = {key.solution(variant)}"
