"""A lab and its questions, and the variant of a question that one learner gets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpulab.core.errors import UnknownNameError
from gpulab.course._seeded_random import SeededDraw


@dataclass(frozen=True, slots=True)
class Variant:
    """A question with the numbers of one learner; it does not contain the key.

    Attributes
    ----------
    text
        The question. Lines that are indented by four spaces are shown as code.
    choices
        The choices by their letters; empty if the question has none.
    numbers
        The numbers in the text, by name. The key computes the right answer from them.

    Examples
    --------
    >>> from gpulab import course
    >>> variant = course.Variant("The kernel takes 28 ms.", numbers={"kernel": 28})
    >>> variant.numbers["kernel"]
    28
    """

    text: str
    choices: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabQuestion:
    """One graded question.

    Attributes
    ----------
    name
        Name of the variable or the function in the notebook that is the answer.
    title
        Heading of the question.
    points
        Marks for a right answer.
    how
        How to write the answer.
    draw
        Returns the variant of one learner.
    trial
        Name of the trial that runs the answer; empty if the answer is a value.
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

    Attributes
    ----------
    name
        Name of the assignment and of its notebook.
    title
        Heading of the notebook.
    text
        What the lab is about, and which lessons come before it.
    questions
        The questions, in the order of the notebook.
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
        """Return a question by its name.

        Raises
        ------
        UnknownNameError
            If the lab has no such question.
        """
        for question in self.questions:
            if question.name == name:
                return question
        raise UnknownNameError("question", name, [each.name for each in self.questions])


def normal_id(learner: str) -> str:
    """Return a learner's id in lower case and without spaces around it."""
    # Learners type their ids: a capital letter must not give them other numbers than the grader's.
    return learner.strip().casefold()
