"""The judge for answers that are a dict of numbers; typical wrong numbers have a diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.exercises._exercise import is_open
from gpulab.exercises._fields import NUMBER, Fields
from gpulab.exercises.answers._forms import agrees, key_text, plain_number, unknown_key
from gpulab.exercises.answers._judging import MALFORMED, UNANSWERED, AnswerJudge, Diagnosis

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
        if not isinstance(answer, Mapping):
            return MALFORMED
        by_key = {key_text(key): value for key, value in answer.items()}
        unknown = [key for key in by_key if key not in self.right]
        if unknown:
            return unknown_key(unknown[0], self.right)
        numbers = self._read(by_key)
        if numbers is None:
            return MALFORMED
        return self._explain(numbers) if numbers else UNANSWERED

    def _explain(self, numbers: Mapping[str, float]) -> Diagnosis | str:
        """Return the diagnosis of missing keys or, without any, of the first wrong number."""
        missing = [key for key in self.right if key not in numbers]
        if missing:
            message = f"There is no answer yet for {', '.join(missing)}."
            return Diagnosis("incomplete", message)
        bad = [key for key, value in self.right.items() if not _same(numbers[key], value)]
        if not bad:
            return self.why
        # Looking up the right numbers too does no harm: `wrong` lists no right number.
        known = (item for key, value, item in self.wrong if _same(numbers.get(key), value))
        otherwise = Diagnosis(self.otherwise.code, f"{bad[0]}: {self.otherwise.message}")
        return next(known, otherwise)

    def _read(self, answer: Mapping[str, object]) -> dict[str, float] | None:
        """Return the numbers in an answer, or None if it contains anything else."""
        read = {key: plain_number(value) for key, value in answer.items() if not is_open(value)}
        numbers = {key: value for key, value in read.items() if value is not None}
        return numbers if len(numbers) == len(read) else None


def _same(number: float | None, value: float) -> bool:
    return number is not None and agrees(number, value, rel_tol=_TOLERANCE)
