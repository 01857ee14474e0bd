"""Judge answers as the notebook does, for the tests of the exercises."""

from collections.abc import Callable
from typing import Any

from gpulab.exercises._api import exercise
from gpulab.exercises._exercise import Exercise, Verdict


def judged(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as the notebook does."""
    return exercise.judge(answer, None)


def right_of(exercise_id: str) -> Any:  # noqa: ANN401  # a letter, or words or numbers by key
    """Return the key of an exercise, for tests that derive it from a program."""
    judge: Any = exercise(exercise_id).judge
    return judge.right


def check_function(
    exercise: Exercise, answer: Callable[..., object], code: str, part: str
) -> None:
    """Expect a function to be right (no code), or a diagnosis with this code and text."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (not code, code)
    assert part in verdict.message
