"""Judge answers against keys: the rules are here, the right answers are in the grader's folder."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isclose, isfinite

from gpulab.core.foreign_text import visible
from gpulab.course._question import LabQuestion, Variant

_LARGE = 1e15  # no quantity of a lab comes near it, and floats up to it hold whole numbers exactly


@dataclass(frozen=True, slots=True)
class Share:
    """The result for one part of a question.

    Attributes
    ----------
    share
        Share of this part's marks that the answer gets, from 0 to 1.
    text
        The finding, for the learner.
    """

    share: float
    text: str


@dataclass(frozen=True, slots=True)
class LettersKey:
    """A key for a question with lettered choices, of which several may be right.

    The marks fall in proportion to the number of mistakes and are 0 if half of the letters are
    wrong, so a random guess earns little.

    Attributes
    ----------
    right
        Returns the right letters of a variant.

    Examples
    --------
    >>> from gpulab import course
    >>> key = course.LettersKey(lambda variant: "a")
    >>> variant = course.Variant("Which lines wait?", {"a": "y.item()", "b": "y.sum()"})
    >>> key.judge("a", variant)[0].share
    1.0
    >>> key.judge("ab", variant)[0].text
    '1 of 2 letters are wrong.'
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

    Attributes
    ----------
    right
        Returns the right numbers of a variant, by name.
    tolerance
        Largest relative error that still counts as right.

    Examples
    --------
    >>> from gpulab import course
    >>> key = course.NumbersKey(lambda variant: {"cold": 2.0, "hot": 4.0})
    >>> [part.text for part in key.judge({"cold": 2.02, "hot": 5.0}, course.Variant("?"))]
    ['cold: right.', 'hot: wrong.']
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

    Attributes
    ----------
    right
        Returns the right letters of a variant, by the name of the set.

    Examples
    --------
    >>> from gpulab import course
    >>> key = course.SetsKey(lambda variant: {"left": "uv", "right": "w"})
    >>> [part.text for part in key.judge({"left": "vu", "right": ""}, course.Variant("?"))]
    ['left: right.', 'right: wrong.']
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

    A trial runs both functions and records numbers under names: its facts.

    Attributes
    ----------
    name
        Name of the part.
    text
        Sentence for the learner if the number is wrong.
    index
        Index of the number in the list that the trial recorded; None: all of its numbers.
    low, high
        How far the number may be below and above that of the reference, as a share of it.
    fact
        Name of the fact; by default ``name``.
    after
        Name of a part that must be right before this one can be; empty if there is none.

    Examples
    --------
    >>> from gpulab import course
    >>> part = course.Part("steady", "the median is wrong.", low=0.02, high=0.02)
    >>> part.agrees({"steady": [1.01]}, {"steady": [1.0]})
    True
    >>> part.agrees({"steady": [1.5]}, {"steady": [1.0]})
    False
    """

    name: str
    text: str
    index: int | None = 0
    low: float = 0.05
    high: float = 0.05
    fact: str = ""
    after: str = ""

    def agrees(self, found: Mapping[str, object], right: Mapping[str, object]) -> bool:
        """Return whether the number of an answer agrees with that of the reference.

        Parameters
        ----------
        found
            Facts that the trial recorded for the answer.
        right
            Facts that it recorded for the reference.
        """
        numbers, references = (self._numbers(facts) for facts in (found, right))
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

    Attributes
    ----------
    reference
        Source of the reference function; the trial runs it in the same way as the learner's.
    parts
        The numbers to compare; each has the same weight.

    Examples
    --------
    >>> from gpulab import course
    >>> part = course.Part("steady", "the median is wrong.")
    >>> key = course.FunctionKey("def tail(work, n_calls): ...", (part,))
    >>> key.judge({"steady": [2.0]}, {"steady": [1.0]})[0].text
    'steady: the median is wrong.'
    """

    reference: str
    parts: tuple[Part, ...]

    def judge(self, found: Mapping[str, object], right: Mapping[str, object]) -> list[Share]:
        """Return the results of comparing the facts of an answer with those of the reference."""
        shares: dict[str, Share] = {}
        for part in self.parts:
            # Such a part is easy to get right by a function that does nothing; so the part
            # named by `after` must be right before it can earn marks.
            first = shares.get(part.after)
            agrees = part.agrees(found, right) and (first is None or first.share > 0)
            fact = found.get(part.fact or part.name)
            raised = f" ({visible(fact)[:200]})" if isinstance(fact, str) else ""
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
        The learner's variant. Without one, the cell of a value says that each learner has a
        different key.
    """
    if isinstance(key, FunctionKey):
        return key.reference.strip("\n")
    if variant is None:
        return f"{question.name} = ...  # each learner has a key: gpulab course key"
    return f"{question.name} = {key.solution(variant)}"
