"""The judge for answers that are a dict of numbers; typical wrong numbers have a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.exercises._fields import NUMBER, Fields
from gpulab.exercises.answers._forms import agrees, plain_number, values_in
from gpulab.exercises.answers._judging import AnswerJudge, Diagnosis

_TOLERANCE = 0.03  # so that an answer with two digits is close enough


@dataclass(frozen=True, slots=True)
class Quantities(AnswerJudge):
    """A judge for a dict of numbers, whose keys name the units; a number within 3 % is right.

    ``wrong`` has key, wrong number and diagnosis of each typical mistake; the first that fits is
    shown. The message of ``otherwise``, for any other wrong number, comes after its key.
    """

    right: Mapping[str, float]
    why: str
    wrong: tuple[tuple[str, float, Diagnosis], ...]
    otherwise: Diagnosis

    @property
    def how(self) -> str:
        """How to write the answer."""
        keys = ", ".join(map(repr, self.right))
        return f"Answer with a dict that has the keys {keys}; each value is a plain number."

    @property
    def fields(self) -> Fields:
        """A row for each number."""
        return Fields("table", tuple(self.right), (NUMBER,))

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a dict of numbers."""
        numbers = values_in(answer, self.right, plain_number)
        if isinstance(numbers, Diagnosis):
            return numbers
        bad = [key for key, value in self.right.items() if not _same(numbers[key], value)]
        if not bad:
            return self.why
        # Looking up the right numbers too does no harm: `wrong` lists no right number.
        known = (item for key, value, item in self.wrong if _same(numbers.get(key), value))
        otherwise = Diagnosis(self.otherwise.code, f"{bad[0]}: {self.otherwise.message}")
        return next(known, otherwise)


def _same(number: float | None, value: float) -> bool:
    return number is not None and agrees(number, value, rel_tol=_TOLERANCE)
