"""Judge a submission: values in this process, functions by their results in a confined process."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpulab.core.errors import GradingError
from gpulab.course._answers import (
    Notebook,
    Unread,
    answer_cell,
    function_in,
    source_of,
    value_in,
)
from gpulab.course._folder import CourseFolder
from gpulab.course._keys import FunctionKey, Key, Share
from gpulab.course._question import Lab, LabQuestion
from gpulab.course._sandbox import Outcome, Sandbox


@dataclass(frozen=True, slots=True)
class Mark:
    """The marks for one answer, with the reasons.

    ``flag`` names the reason why it could not be judged, and is empty if it was. ``lines`` are
    sentences for the learner, which do not reveal the key.
    """

    question: str
    points: float
    max_points: int
    flag: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.points:g} of {self.max_points} points for {self.question}"
        return "\n".join([head, *(f"  {line}" for line in self.lines)])


@dataclass(slots=True)
class Grader:
    """Gives marks for the labs of one course; the sandbox runs the learners' functions."""

    course: CourseFolder
    sandbox: Sandbox
    _references: dict[str, Outcome] = field(default_factory=dict)

    def marks(self, lab: Lab, notebook: Notebook, student: str) -> tuple[Mark, ...]:
        """Return the marks of a submission, question by question.

        ``student`` is the id from nbgrader, because the id in the notebook is not trusted.
        """
        keys = self.course.keys(lab)
        return tuple(
            self._mark(lab, question, keys[question.name], notebook, student)
            for question in lab.questions
        )

    def _mark(
        self, lab: Lab, question: LabQuestion, key: Key, notebook: Notebook, student: str
    ) -> Mark:
        source = source_of(notebook, answer_cell(lab.name, question.name))
        if isinstance(key, FunctionKey):
            judged = self._of_function(lab, question, key, source)
        else:
            value = value_in(source, question.name)
            variant = question.variant(self.course.token, student)
            judged = value if isinstance(value, Unread) else key.judge(value, variant)
        if isinstance(judged, Unread):
            return Mark(question.name, 0.0, question.points, judged.flag, (judged.text,))
        points = question.points * sum(part.share for part in judged) / len(judged)
        lines = tuple(part.text for part in judged)
        return Mark(question.name, round(points, 2), question.points, "", lines)

    def _of_function(
        self, lab: Lab, question: LabQuestion, key: FunctionKey, source: str | None
    ) -> list[Share] | Unread:
        readable = function_in(source, question.name)
        if isinstance(readable, Unread):
            return readable
        right = self._reference(lab, question, key)
        facts = self._run(lab, question, readable)
        return facts if isinstance(facts, Unread) else key.judge(facts, right)

    def _reference(
        self, lab: Lab, question: LabQuestion, key: FunctionKey
    ) -> Mapping[str, object]:
        """Return the facts of the reference function; it runs once for all submissions."""
        name = f"{lab.name}.{question.name}"
        if name not in self._references:
            self._references[name] = self._run(lab, question, key.reference)
        facts = self._references[name]
        if isinstance(facts, Unread):
            raise GradingError(
                f"the reference for {name} could not be run ({facts.text}); nothing can be "
                "graded against it: raise the limits in nbgrader_config.py"
            )
        return facts

    def _run(self, lab: Lab, question: LabQuestion, source: str) -> Outcome:
        # The same numbers for all learners, so that the reference has to run only once.
        draw = self.course.trial_draw(lab.name, question.name)
        return self.sandbox.run(question.trial, question.name, source, [draw])
