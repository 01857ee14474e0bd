"""The questions of all lessons: a guess in the unit of the question, or a choice, is taken."""

import pytest

from gpulab import exercises
from gpulab.exercises import _guess_question
from gpulab.exercises._guess_question import GuessQuestion
from tests.exercises.test_journal import folder

__all__ = ["folder"]  # a fixture: an empty folder with a journal of its own

QUESTIONS = [
    question
    for package in _guess_question._PACKAGES
    for question in _guess_question._questions_in(package).values()
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_question_takes_a_guess(question: GuessQuestion, folder: object) -> None:
    """Neither the unit nor a choice of a question is refused."""
    del folder
    given = question.choices[0] if question.choices else 3
    asked = exercises.predict(question.name, given)
    assert asked.guess is not None, str(asked)
