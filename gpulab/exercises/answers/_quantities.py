"""The form of answers that are a few numbers with units; known wrong ones have their diagnosis."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers._forms import Diagnosis, agrees, malformed, read_number, unanswered

_TOLERANCE = 0.03  # two digits are enough for a limit


@dataclass(frozen=True, slots=True)
class Quantities:
    """A number for each of a few keys, whose names carry the units.

    Attributes
    ----------
    right, why
        The right number of each key, and why. An answer within 3 % is right.
    wrong
        (key, number, diagnosis), in the order in which mistakes are worth talking about.
    otherwise
        What to say of a number that nobody foresaw; its key is put in front.
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

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Judge a dict of numbers."""
        if is_open(answer):
            return unanswered(self.how)
        given = self._read(answer)
        if given is None:
            return malformed(answer, self.how)
        return self._explain(given) if given else unanswered(self.how)

    def _explain(self, given: Mapping[str, float]) -> Verdict:
        """Diagnose what is missing, then the most telling of the wrong numbers."""
        missing = [key for key in self.right if key not in given]
        if missing:
            message = f"There is no answer yet for {', '.join(missing)}."
            return Diagnosis("incomplete", message).verdict()
        bad = [key for key, value in self.right.items() if not _same(given[key], value)]
        if not bad:
            return Verdict(ok=True, message=self.why)
        # Also of right numbers none is listed as wrong, so all of them may be looked up.
        known = (item for key, value, item in self.wrong if _same(given.get(key), value))
        found = next(known, None)
        if found is not None:
            return found.verdict()
        return Diagnosis(self.otherwise.code, f"{bad[0]}: {self.otherwise.message}").verdict()

    def _read(self, answer: object) -> dict[str, float] | None:
        """Return the numbers that are given; None where something else is."""
        if not isinstance(answer, Mapping) or not answer.keys() <= self.right.keys():
            return None
        read = {key: read_number(value) for key, value in answer.items() if not is_open(value)}
        numbers = {key: value for key, value in read.items() if value is not None}
        return numbers if len(numbers) == len(read) else None


def _same(given: float | None, value: float) -> bool:
    return given is not None and agrees(given, value, rel_tol=_TOLERANCE)
