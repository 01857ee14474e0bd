"""The judge of what a capture does with each line: how many are right, and one principle."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Table

_NOT_JUDGED = frozenset({"not-a-choice", "incomplete"})


@dataclass(frozen=True, slots=True)
class CapturedLines:
    """A table whose verdict names the mistake but not the line that it was made on.

    With two or three words to choose from, whoever reads which lines are wrong needs to know
    nothing: flipping those lines solves the exercise.

    Attributes
    ----------
    table
        Judges the answer.
    principles
        What to say for each diagnosis of the table, by its code.
    """

    table: Table
    principles: Mapping[str, str]

    @property
    def how(self) -> str:
        """How to write the answer."""
        return self.table.how

    @property
    def why(self) -> str:
        """Why the right answer is right."""
        return self.table.why

    def __call__(self, answer: object, readings: object = None) -> Verdict:
        """Judge a dict of words by letters."""
        verdict = self.table(answer, readings)
        is_judged = verdict.ok is False and verdict.diagnosis_code not in _NOT_JUDGED
        if not is_judged or not isinstance(answer, Mapping):
            return verdict
        given = {
            str(key).strip().lower(): str(word).strip().lower() for key, word in answer.items()
        }
        n_right = sum(given.get(key) == word for key, word in self.table.right.items())
        n_all = len(self.table.right)
        message = f"{n_right} of {n_all} are right. {self.principles[verdict.diagnosis_code]}"
        return replace(verdict, message=message)
