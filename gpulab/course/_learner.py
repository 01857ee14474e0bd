"""Functions that a learner's notebook calls: ask a question, and check the form of an answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpulab.core.errors import InvalidOptionError, shown
from gpulab.core.foreign_text import visible
from gpulab.core.requirements import instance_of
from gpulab.course._labs import lab_named
from gpulab.course._question import Lab
from gpulab.exercises import Question


@dataclass(frozen=True, slots=True)
class LearnerLab:
    """A lab with the numbers of one learner, who is known by an id; the token is the course's."""

    lab: Lab
    token: str
    learner: str

    def __repr__(self) -> str:
        n = len(self.lab.questions)
        return f"{self.lab.title}, {n} questions, {self.lab.points} points, for {self.learner}"

    def ask(self, name: str) -> Question:
        """Return a question with this learner's numbers; `UnknownNameError` if there is none."""
        question = self.lab.question(name)
        variant = question.variant(self.token, self.learner)
        full_name = f"{self.lab.name}.{name}"
        return Question(full_name, variant.text, question.how, variant.choices, None)

    def form(self, name: str, variables: Mapping[str, object]) -> str:
        """Return a sentence that says whether the question has an answer of the right kind.

        Pass ``locals()`` as the notebook's variables. This does not judge the answer. The grader
        does that later.
        """
        question = self.lab.question(name)
        instance_of(Mapping, "the variables of the notebook: pass locals()").check(
            variables=variables
        )
        answer = variables.get(name)
        if answer is None or answer is ...:
            return f"{name}: not answered yet. {question.how}"
        if question.trial and not callable(answer):
            return f"{name} is {shown(answer)}, and no function. {question.how}"
        return f"{name}: there is an answer. It is judged after you have submitted it."


def lab(name: str, *, token: str, learner: str) -> LearnerLab:
    """Return a lab with the numbers of one learner.

    Parameters
    ----------
    name
        Name of the lab, for example ``"timing"``.
    token
        The token of the course. The notebook that you got already contains it.
    learner
        The id under which you submit.

    Raises
    ------
    UnknownNameError
        If no lab has this name.
    InvalidOptionError
        If ``learner`` or ``token`` is not a text, or is empty.

    Examples
    --------
    >>> from gpulab import course
    >>> timing = course.lab("timing", token="example", learner="ada")
    >>> timing
    Lab: time GPU work, 3 questions, 11 points, for ada
    >>> timing.form("waits", {"waits": "km"})
    'waits: there is an answer. It is judged after you have submitted it.'
    """
    if not isinstance(learner, str) or not learner.strip() or visible(learner) != learner:
        raise InvalidOptionError(
            f"learner={shown(learner)}; write the id under which you submit, as a text"
        )
    if not isinstance(token, str) or not token.isascii() or not token:
        raise InvalidOptionError(
            f"token={shown(token)}; it must be the text that your notebook contains"
        )
    return LearnerLab(lab_named(name), token, learner)
