"""Checks that every exercise must pass, for the tests of each lesson."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.answers._forms import Choice, Table


def judged(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as the notebook does."""
    return exercise.judge(answer, None)


def check_right(exercise: Exercise, answer: object) -> None:
    """Expect an answer to be right, with the explanation."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (True, "")
    assert verdict.message == exercise.judge.why  # type: ignore[attr-defined]  # these have one


def check_mistake(exercise: Exercise, answer: object, code: str, begins: str) -> None:
    """Expect the code of a mistake, and a message that begins so and is a whole sentence."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert verdict.message.startswith(begins)
    assert re.fullmatch(r"Not yet\. .{30,}[.?)]", str(verdict), re.DOTALL)


def check_whole(exercise: Exercise) -> None:
    """Expect two hints, a text for every choice, and that the placeholder is no answer."""
    judge = exercise.judge
    assert len(exercise.hints) >= 2
    for blank in (..., None):
        assert judged(exercise, blank) == Verdict(ok=None, message=judge.how)
    if isinstance(judge, Choice):
        assert exercise.choices is not None
        assert set(exercise.choices) == {judge.right, *judge.wrong}
    if isinstance(judge, Table):
        words = {word for allowed in judge.allowed for word in allowed}
        rights = ((value,) if isinstance(value, str) else value for value in judge.right.values())
        assert {word for value in rights for word in value} <= words
        assert {key for key, _ in judge.wrong} <= set(judge.right)
        assert {word for _, word in judge.wrong} <= words


def check_strange(exercise: Exercise, answer: object) -> None:
    """Expect a senseless answer to be refused with how to answer."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, "not-a-choice")
    assert verdict.message.endswith(exercise.judge.how)


def exercise_tests(
    exercises: Sequence[Exercise],
    right: Sequence[tuple[Exercise, object]],
    wrong: Sequence[tuple[Exercise, object, str, str]],
    strange: Sequence[object],
) -> tuple[Callable[..., Any], ...]:
    """Return the four tests of a lesson: right, mistaken, strange and no answers at all."""

    @pytest.mark.parametrize(("exercise", "answer"), right)
    def test_right(exercise: Exercise, answer: object) -> None:
        """A right answer passes, and gets the explanation."""
        check_right(exercise, answer)

    @pytest.mark.parametrize(("exercise", "answer", "code", "begins"), wrong)
    def test_mistake(exercise: Exercise, answer: object, code: str, begins: str) -> None:
        """Each mistake has its own code, and a message that is a whole sentence."""
        check_mistake(exercise, answer, code, begins)

    @pytest.mark.parametrize("exercise", exercises, ids=lambda item: item.exercise_id)
    def test_whole(exercise: Exercise) -> None:
        """There are two hints, a text for every choice, and the placeholder is no answer."""
        check_whole(exercise)

    @pytest.mark.parametrize("answer", strange, ids=range(len(strange)))
    @pytest.mark.parametrize("exercise", exercises, ids=lambda item: item.exercise_id)
    def test_strange(exercise: Exercise, answer: object) -> None:
        """A senseless answer is refused with how to answer."""
        check_strange(exercise, answer)

    return test_right, test_mistake, test_whole, test_strange


def check_function(
    exercise: Exercise, answer: Callable[..., object], code: str, part: str
) -> None:
    """Expect a function to be right (no code), or a diagnosis with this code and text."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (not code, code)
    assert part in verdict.message
