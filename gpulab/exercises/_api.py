"""The door to the exercises: find one by its id, show it, judge an answer, give a hint."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.exercises import (
    lesson_00,
    lesson_01,
    lesson_02,
    lesson_03,
    lesson_04,
    lesson_05,
    lesson_06,
    lesson_07,
    lesson_08,
    lesson_09,
    lesson_10,
)
from gpulab.exercises._exercise import Exercise, Hint, Verdict
from gpulab.exercises._progress import SESSION, Progress

if TYPE_CHECKING:
    import pandas as pd


_LESSONS = (
    *(lesson_00, lesson_01, lesson_02, lesson_03, lesson_04),
    *(lesson_05, lesson_06, lesson_07, lesson_08, lesson_09, lesson_10),
)


def exercise_ids() -> tuple[str, ...]:
    """List the ids of all exercises, in the order of the lessons."""
    return tuple(_registry())


def ask(exercise_id: str) -> Exercise:
    """Show an exercise: its question, and how to answer.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    if exercise_id not in _registry():
        raise UnknownNameError("exercise", exercise_id, exercise_ids())
    return _registry()[exercise_id]


def check(exercise_id: str, answer: object, *, readings: object = None) -> Verdict:
    """Judge an answer and say what a wrong one mistook.

    Parameters
    ----------
    exercise_id
        Such as ``"01.hidden-sync"``.
    answer
        In the form that the exercise asks for; ``...`` and None mean "not answered yet".
    readings
        The learner's own numbers, for the exercises that are about them.

    Returns
    -------
    Verdict
        Right, wrong with a diagnosis, or not answered. What the answer does wrong never
        raises here, not even when it is a function that does.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    verdict = replace(ask(exercise_id).judge(answer, readings), exercise_id=exercise_id)
    SESSION.answered(verdict)
    return verdict


def hint(exercise_id: str) -> Hint:
    """Give the next hint; after the last one, the last again.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    hints = ask(exercise_id).hints
    number = min(SESSION.next_hint(exercise_id), len(hints))
    return Hint(hints[number - 1], number, len(hints))


def readings(exercise_id: str) -> "pd.DataFrame":
    """Return the numbers that an exercise is about, as a frame with units in its columns.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    InvalidOptionError
        If the exercise is not about given numbers.
    """
    make = ask(exercise_id).readings
    if make is None:
        raise InvalidOptionError(f"exercise {exercise_id!r} has no readings; take your own")
    return make()


def progress() -> Progress:
    """Show which exercises were answered and which were right since the kernel started.

    Shown are the lessons of which an exercise was met, for each notebook has a kernel of its
    own; before any was met, all of them.
    """
    lessons = {_lesson(name) for name in SESSION.entries} or set(map(_lesson, exercise_ids()))
    shown = (name for name in exercise_ids() if _lesson(name) in lessons)
    return Progress(tuple((name, SESSION.entry(name)) for name in shown))


def _lesson(exercise_id: str) -> str:
    return exercise_id.partition(".")[0]


@cache
def _registry() -> Mapping[str, Exercise]:
    exercises = (exercise for lesson in _LESSONS for exercise in lesson.EXERCISES)
    return MappingProxyType({exercise.exercise_id: exercise for exercise in exercises})
