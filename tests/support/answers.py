"""Answers that learners may give to exercises about functions, each with the verdict it deserves.

A test module makes an :class:`Answers`, adds functions to it with decorators, and judges each.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import gpulab
from gpulab import exercises

Function = Callable[..., Any]
_F = TypeVar("_F", bound=Function)


class Answer(NamedTuple):
    """An answer with the code of the diagnosis that is expected; empty for a right answer."""

    exercise_id: str
    function: Function
    code: str

    def __str__(self) -> str:
        return f"{self.exercise_id}-{self.function.__name__}-{self.code or 'right'}"


class Answers(list[Answer]):
    """A list of answers that decorators add to."""

    def right(self, *exercise_ids: str) -> Callable[[_F], _F]:
        """Add a function that is a right answer to each of some exercises."""

        def add(function: _F) -> _F:
            self.extend(Answer(each, function, "") for each in exercise_ids)
            return function

        return add

    def wrong(self, code: str, *exercise_ids: str) -> Callable[[_F], _F]:
        """Add a function that deserves a diagnosis in each of some exercises."""

        def add(function: _F) -> _F:
            self.extend(Answer(each, function, code) for each in exercise_ids)
            return function

        return add


def as_given(exercise_id: str, function: Function) -> object:
    """Return an answer as the exercise takes it: one asks for a reason beside the function."""
    if exercise_id == "06.choose-a-flush":
        return {"flush": function, "because": "c"}
    return function


def assert_verdict(answer: Answer) -> None:
    """Check an answer on a new virtual H200, and expect its diagnosis."""
    with gpulab.virtual_gpu("H200", first_use=False):
        verdict = exercises.check(
            answer.exercise_id, as_given(answer.exercise_id, answer.function)
        )
    assert (verdict.ok, verdict.diagnosis_code) == (not answer.code, answer.code), str(verdict)
