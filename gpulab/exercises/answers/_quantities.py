"""Judges for numbers, and for one duration; typical wrong numbers have a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.exercises._fields import NUMBER, SECONDS, Fields
from gpulab.exercises.answers._forms import agrees, plain_number, read_number, values_in
from gpulab.exercises.answers._judging import FORGOT_UNITS, MALFORMED, AnswerJudge, Diagnosis

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


@dataclass(frozen=True, slots=True)
class Duration(AnswerJudge):
    """A judge for one time, in seconds or as text with a unit.

    Attributes
    ----------
    right_s, tolerance, why
        The right time, the share by which an answer may be off, and the reason.
    wrong
        Ranges of wrong times, in seconds, each with its diagnosis; the first that fits is shown.
    otherwise
        The diagnosis of any other time.
    least_s
        The smallest answer that is right, if that is not decided by the tolerance.
    """

    right_s: float
    why: str
    wrong: tuple[tuple[float, float, Diagnosis], ...]
    otherwise: Diagnosis
    tolerance: float
    least_s: float = 0.0
    how: str = 'Answer in seconds, or as text with a unit, for example "12.5 µs".'
    fields: Fields = SECONDS

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a time."""
        time_s = read_number(answer)
        if time_s is None:
            return MALFORMED
        if time_s >= self.least_s and self._agrees(time_s):
            return self.why
        # Before the ranges: the digits of a time in microseconds may lie in one of them.
        if any(self._agrees(time_s * unit_s) for unit_s in (1e-6, 1e-3)):
            return FORGOT_UNITS
        known = (diagnosis for low_s, high_s, diagnosis in self.wrong if low_s <= time_s <= high_s)
        return next(known, self.otherwise)

    def _agrees(self, time_s: float) -> bool:
        return agrees(time_s, self.right_s, self.tolerance)


def _same(number: float | None, value: float) -> bool:
    return number is not None and agrees(number, value, rel_tol=_TOLERANCE)
