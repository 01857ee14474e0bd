"""The judge for lines in a graph capture: says how many answers are right, and one principle."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpulab.exercises._exercise import Verdict
from gpulab.exercises.answers import Table

# Verdicts on the form of an answer, which contain no line that would have to be hidden.
_NOT_JUDGED = frozenset({"not-a-choice", "incomplete"})


@dataclass(frozen=True, slots=True)
class CapturedLines:
    """A judge for a table, whose verdict explains a mistake but does not name its line.

    There are only three words to choose from. A learner who is told which lines are wrong could
    solve the exercise by trying.

    Attributes
    ----------
    table
        The judge for the table.
    principles
        The message for each diagnosis of the table, by its code.
    """

    table: Table
    principles: Mapping[str, str]

    @property
    def how(self) -> str:
        """How to write the answer."""
        return self.table.how

    @property
    def why(self) -> str:
        """The reason why the right answer is right."""
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
