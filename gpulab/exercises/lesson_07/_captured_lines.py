"""The judge for lines in a graph capture: says how many answers are right, and one principle."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.exercises._fields import Fields
from gpulab.exercises.answers import AnswerJudge, Diagnosis, Table


@dataclass(frozen=True, slots=True)
class CapturedLines(AnswerJudge):
    """A judge for a table, whose verdict explains a mistake but does not name its line.

    There are only three words to choose from. A learner who is told which lines are wrong could
    solve the exercise by trying. ``principles`` has the message for each diagnosis of the table.
    """

    table: Table
    principles: Mapping[str, str]

    @property
    def how(self) -> str:
        """How to write the answer."""
        return self.table.how

    @property
    def fields(self) -> Fields:
        """The fields of the table."""
        return self.table.fields

    @property
    def why(self) -> str:
        """The reason why the right answer is right."""
        return self.table.why

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a dict of words by letters."""
        outcome = self.table.judge(answer)
        if isinstance(outcome, str) or not isinstance(answer, Mapping):
            return outcome
        # Other diagnoses are about the form of an answer, and name no line to hide.
        if outcome.code not in self.principles:
            return outcome
        words = {
            str(key).strip().lower(): str(word).strip().lower() for key, word in answer.items()
        }
        n_right = sum(words.get(key) == word for key, word in self.table.right.items())
        n_all = len(self.table.right)
        message = f"{n_right} of {n_all} are right. {self.principles[outcome.code]}"
        return Diagnosis(outcome.code, message)
