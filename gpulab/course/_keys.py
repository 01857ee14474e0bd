"""Judge answers against keys: the rules are here, the right answers are in the grader's folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite

from gpulab.core.foreign_text import visible
from gpulab.course._question import LabQuestion, Variant

_LARGE = 1e15  # no quantity of a lab comes near it, and floats up to it hold whole numbers exactly


@dataclass(frozen=True, slots=True)
class Share:
    """The result for one part of a question: the share of its marks, 0 to 1, and the finding."""

    share: float
    text: str


@dataclass(frozen=True, slots=True)
class LettersKey:
    """A key for a question with lettered choices; ``right`` returns the right ones of a variant.

    The marks fall in proportion to the number of mistakes and are 0 if half of the letters are
    wrong, so a random guess earns little.
    """

    right: Callable[[Variant], str]

    def solution(self, variant: Variant) -> str:
        """Return the right letters as Python source."""
        return repr(self.right(variant))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge letters: no mistake gives 1, mistakes in half of the letters or more give 0."""
        if not isinstance(answer, str) or set(answer) - set(variant.choices):
            return [Share(0.0, f"It is not a text of the letters {''.join(variant.choices)}.")]
        n_wrong = len(set(answer) ^ set(self.right(variant)))
        # Mistakes count twice: all letters or none of them, which is half right, earn nothing.
        share = max(0.0, 1 - 2 * n_wrong / len(variant.choices))
        return [Share(share, f"{n_wrong} of {len(variant.choices)} letters are wrong.")]


@dataclass(frozen=True, slots=True)
class NumbersKey:
    """A key for a dictionary of numbers; each number earns its own share of the marks.

    ``right`` returns the right numbers of a variant, by name, and ``tolerance`` is the largest
    relative error that still counts as right.
    """

    right: Callable[[Variant], Mapping[str, float]]
    tolerance: float = 0.02

    def solution(self, variant: Variant) -> str:
        """Return the right numbers as Python source."""
        return repr(dict(self.right(variant)))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge each number separately."""
        numbers = answer if isinstance(answer, dict) else {}
        return [
            _compared(name, self._agrees(numbers.get(name), value))
            for name, value in self.right(variant).items()
        ]

    def _agrees(self, number: object, value: float) -> bool:
        if isinstance(number, bool) or not isinstance(number, int | float):
            return False
        if abs(number) > _LARGE:  # an int may be too large for a float, and isclose would raise
            return False
        return isclose(number, value, rel_tol=self.tolerance)


@dataclass(frozen=True, slots=True)
class SetsKey:
    """A key for a dictionary of letter sets; a set earns its marks only if it is wholly right.

    ``right`` returns the right letters of a variant, by the name of the set.
    """

    right: Callable[[Variant], Mapping[str, str]]

    def solution(self, variant: Variant) -> str:
        """Return the right sets as Python source."""
        return repr(dict(self.right(variant)))

    def judge(self, answer: object, variant: Variant) -> list[Share]:
        """Judge each set separately; the order of the letters does not matter."""
        sets = answer if isinstance(answer, dict) else {}
        return [
            _compared(name, isinstance(sets.get(name), str) and set(sets[name]) == set(letters))
            for name, letters in self.right(variant).items()
        ]


def _compared(name: str, agrees: bool) -> Share:  # noqa: FBT001  # the two outcomes of a part
    return Share(float(agrees), f"{name}: {'right' if agrees else 'wrong'}.")


@dataclass(frozen=True, slots=True)
class Part:
    """One number that a learner's function must get right, compared with the reference function.

    A trial runs both functions and records numbers under names: its facts. ``fact`` is such a
    name, by default ``name``, and ``index`` the place of the number in the list of that name; None
    means all of them. The number may be ``low`` below and ``high`` above that of the reference, as
    a share of it. If it is wrong, the learner reads ``text``. ``after`` names a part that must be
    right first.
    """

    name: str
    text: str
    index: int | None = 0
    low: float = 0.05
    high: float = 0.05
    fact: str = ""
    after: str = ""

    def agrees(self, answered: Mapping[str, object], right: Mapping[str, object]) -> bool:
        """Return whether a number agrees, given the facts of the answer and of the reference."""
        numbers, references = (self._numbers(facts) for facts in (answered, right))
        return (
            bool(references)
            and len(numbers) == len(references)
            and all(
                reference * (1 - self.low) <= number <= reference * (1 + self.high)
                for number, reference in zip(numbers, references, strict=True)
            )
        )

    def _numbers(self, facts: Mapping[str, object]) -> list[float]:
        """Return the numbers to compare; none if the trial recorded something else."""
        fact = facts.get(self.fact or self.name)
        if not isinstance(fact, list):
            return []
        chosen = fact if self.index is None else fact[self.index : self.index + 1]
        is_right = all(isinstance(number, float) and isfinite(number) for number in chosen)
        return chosen if is_right else []


@dataclass(frozen=True, slots=True)
class FunctionKey:
    """A key for a function: a reference function, and the numbers in which an answer must agree.

    ``reference`` is its source; the trial runs it in the same way as the learner's. Each part has
    the same weight.
    """

    reference: str
    parts: tuple[Part, ...]

    def judge(self, answered: Mapping[str, object], right: Mapping[str, object]) -> list[Share]:
        """Return the results of comparing the facts of an answer with those of the reference."""
        shares: dict[str, Share] = {}
        for part in self.parts:
            # Such a part is easy to get right by a function that does nothing; so the part
            # named by `after` must be right before it can earn marks.
            first = shares.get(part.after)
            agrees = part.agrees(answered, right) and (first is None or first.share > 0)
            fact = answered.get(part.fact or part.name)
            raised = f" ({visible(fact)[:200]})" if isinstance(fact, str) else ""
            text = f"{part.name}: right." if agrees else f"{part.name}: {part.text}{raised}"
            shares[part.name] = Share(float(agrees), text)
        return list(shares.values())


Key = LettersKey | NumbersKey | SetsKey | FunctionKey


def solution_of(question: LabQuestion, key: Key, variant: Variant | None) -> str:
    """Return the cell that answers a question for a learner's variant.

    Without a variant, the cell of a value says that each learner has a different key.
    """
    if isinstance(key, FunctionKey):
        return key.reference.strip("\n")
    if variant is None:
        return f"{question.name} = ...  # each learner has a key: gpulab course key"
    return f"{question.name} = {key.solution(variant)}"
