"""Answers that learners may give to exercises about functions, each with the verdict it deserves.

A test module makes an :class:`Answers`, adds functions to it with decorators, and judges each.
"""

import inspect
import linecache
import textwrap
import time
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import torch

import gpulab
from gpulab import exercises

Function = Callable[..., Any]
Work = Callable[[], object]
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

    def judged(self) -> list[Answer]:
        """Return those to judge: a right benchmark only in the last of its lessons.

        There the judge tries all that it tries in the lessons before.
        """
        last = {
            each.function: each.exercise_id
            for each in self
            if not each.code and each.exercise_id.endswith(".benchmark")
        }
        return [
            each
            for each in self
            if each.code or last.get(each.function, each.exercise_id) == each.exercise_id
        ]


def as_given(exercise_id: str, function: Function) -> object:
    """Return an answer as the exercise takes it: one asks for a reason beside the function."""
    if exercise_id == "06.choose-a-flush":
        return {"flush": function, "because": "c"}
    return function


def changed(base: Function, name: str, *edits: str) -> Function:
    """Return a function like another one, but changed: each edit is ``"old text -> new text"``.

    An edit changes the first place that has the old text. The source of the function can be read,
    as that of a cell.
    """
    source = textwrap.dedent(inspect.getsource(base))
    source = source[source.index("def ") :].replace(base.__name__, name, 1)
    for edit in edits:
        old, new = edit.split(" -> ")
        assert old in source, f"{base.__name__} has no {old!r}"
        source = source.replace(old, new, 1)
    file = f"<{base.__name__}, changed to {name}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    made: dict[str, Any] = {}
    exec(compile(source, file, "exec"), base.__globals__, made)  # code of the tests
    function: Function = made[name]
    return function


def assert_verdict(answer: Answer) -> None:
    """Check an answer on a new virtual H200, and expect its diagnosis."""
    with gpulab.virtual_gpu("H200", first_use=False):
        verdict = exercises.check(
            answer.exercise_id, as_given(answer.exercise_id, answer.function)
        )
    assert (verdict.ok, verdict.diagnosis_code) == (not answer.code, answer.code), str(verdict)


def events(n: int = 2) -> list[torch.cuda.Event]:
    """Return events that can be read."""
    return [torch.cuda.Event(enable_timing=True) for _ in range(n)]


def waited(work: Work) -> float:
    """Return the time from an idle GPU to an idle GPU."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start
