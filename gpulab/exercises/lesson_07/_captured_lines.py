"""The judge for lines in a graph capture: says how many answers are right, and one principle."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpulab.exercises.answers import Diagnosis, Table


@dataclass(frozen=True, slots=True)
class CapturedLines(Table):
    """A table, whose verdict explains a mistake but does not name its line.

    There are only three words to choose from. A learner who is told which lines are wrong could
    solve the exercise by trying. ``principles`` has the message for each diagnosis of the table.
    """

    principles: Mapping[str, str] = field(default_factory=dict)

    def _explain(self, bad: Mapping[str, tuple[str, ...]]) -> Diagnosis:
        code = Table._explain(self, bad).code  # noqa: SLF001  # of the base
        n_all = len(self.right)
        message = f"{n_all - len(bad)} of {n_all} are right. {self.principles[code]}"
        return Diagnosis(code, message)
