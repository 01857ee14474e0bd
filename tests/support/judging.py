"""What every exercise must do, as checks for the files that test them lesson by lesson."""

import re

from gpulab.exercises._exercise import Exercise, Verdict
from gpulab.exercises.answers._forms import Choice, Table


def judged(exercise: Exercise, answer: object) -> Verdict:
    """Judge an answer as the notebook does."""
    return exercise.judge(answer, None)


def check_right(exercise: Exercise, answer: object) -> None:
    """Expect an answer to be right, and that it is told why."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (True, "")
    assert verdict.message == exercise.judge.why  # type: ignore[attr-defined]  # these have one


def check_mistake(exercise: Exercise, answer: object, code: str, begins: str) -> None:
    """Expect a mistake's own name, what it is about at the beginning, and a whole sentence."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, code)
    assert verdict.message.startswith(begins)
    assert re.fullmatch(r"Not yet\. .{30,}[.?)]", str(verdict), re.DOTALL)


def check_whole(exercise: Exercise) -> None:
    """Expect two hints, words for every key, and that the placeholder is no answer."""
    judge = exercise.judge
    assert len(exercise.hints) >= 2
    for blank in (..., None):
        assert judged(exercise, blank) == Verdict(ok=None, message=judge.how)
    if isinstance(judge, Choice):
        assert exercise.choices is not None
        assert set(exercise.choices) == {judge.right, *judge.wrong}
    if isinstance(judge, Table):
        (words,) = judge.allowed
        assert set(judge.right.values()) <= set(words)
        assert {key for key, _ in judge.wrong} <= set(judge.right)
        assert {word for _, word in judge.wrong} <= set(words)


def check_strange(exercise: Exercise, answer: object) -> None:
    """Expect what is no answer to be shown back beside how to answer."""
    verdict = judged(exercise, answer)
    assert (verdict.ok, verdict.diagnosis_code) == (False, "not-a-choice")
    assert verdict.message.endswith(exercise.judge.how)
