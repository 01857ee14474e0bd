"""A lab and its questions, and the variant of a question that one learner gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpulab.core.errors import UnknownNameError
from gpulab.course._seeded_random import SeededDraw


@dataclass(frozen=True, slots=True)
class Variant:
    """A question with the numbers of one learner, by name; it does not contain the key.

    Lines of the text that are indented by four spaces are shown as code. The choices, by their
    letters, are empty if the question has none. The key computes the right answer from the
    numbers.
    """

    text: str
    choices: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabQuestion:
    """One graded question.

    ``name`` is that of the notebook's variable or function that is the answer, and ``how`` says
    how to write it. ``draw`` returns the variant of a learner. ``trial`` names the trial that runs
    the answer, and is empty if the answer is a value.
    """

    name: str
    title: str
    points: int
    how: str
    draw: Callable[[SeededDraw], Variant]
    trial: str = ""

    def variant(self, token: str, learner: str) -> Variant:
        """Return the variant of one learner in one course."""
        return self.draw(SeededDraw(token, normal_id(learner), self.name))


@dataclass(frozen=True, slots=True)
class Lab:
    """A lab: a notebook with graded questions.

    ``name`` is that of the assignment and of its notebook; ``text`` says what the lab is about,
    and which lessons come before it.
    """

    name: str
    title: str
    text: str
    questions: tuple[LabQuestion, ...]

    @property
    def points(self) -> int:
        """Sum of the marks of all questions."""
        return sum(question.points for question in self.questions)

    def question(self, name: str) -> LabQuestion:
        """Return a question by its name; raise `UnknownNameError` if the lab has none such."""
        for question in self.questions:
            if question.name == name:
                return question
        raise UnknownNameError("question", name, [each.name for each in self.questions])


def normal_id(learner: str) -> str:
    """Return a learner's id in lower case and without spaces around it."""
    # Learners type their ids: a capital letter must not give them other numbers than the grader's.
    return learner.strip().casefold()
