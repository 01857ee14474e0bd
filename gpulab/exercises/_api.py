"""The door to the exercises: find one by its id, show it, judge an answer, give a hint."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpulab.errors import GpulabError, InvalidOptionError, UnknownNameError
from gpulab.exercises._exercise import Exercise, Hint, Question, Verdict
from gpulab.exercises._progress import SESSION, Progress
from gpulab.exercises._rooms import room_of

if TYPE_CHECKING:
    import pandas as pd


_LESSONS = tuple(f"{number:02}" for number in range(12))
_CASES = tuple(f"case-{number:02}" for number in range(1, 11))
_UNITS = (*_LESSONS, *_CASES)


def exercise_ids() -> tuple[str, ...]:
    """List the ids of all exercises, lessons and then of the cases."""
    return _ids_of(_UNITS)


def ask(exercise_id: str) -> Question:
    """Show an exercise: its question, and how to answer.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    return exercise(exercise_id).asked


def exercise(exercise_id: str) -> Exercise:
    """Return an exercise with its key; it stays in this room, and is not offered at its door.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    lesson = _lesson_of(exercise_id)
    if lesson not in _UNITS or exercise_id not in _exercises_of(lesson):
        raise UnknownNameError("exercise", exercise_id, exercise_ids())
    return _exercises_of(lesson)[exercise_id]


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
    verdict = replace(_judged(exercise(exercise_id), answer, readings), exercise_id=exercise_id)
    SESSION.answered(verdict)
    return verdict


def hint(exercise_id: str) -> Hint:
    """Give the next hint; after the last one, the last again.

    Raises
    ------
    UnknownNameError
        If there is no exercise of this id.
    """
    hints = exercise(exercise_id).hints
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
    make = exercise(exercise_id).readings
    if make is None:
        raise InvalidOptionError(f"exercise {exercise_id!r} has no readings; take your own")
    return make()


def progress() -> Progress:
    """Show which exercises were answered and which were right since the kernel started.

    It shows the lessons of which you have met an exercise, as each notebook has a kernel of its
    own; before you have met any, all lessons.
    """
    met = {_lesson_of(exercise_id) for exercise_id in SESSION.entries}
    names = _ids_of(sorted(met) or _UNITS)
    return Progress(tuple((name, SESSION.entry(name)) for name in names))


def _judged(asked: Exercise, answer: object, readings: object) -> Verdict:
    """Judge an answer; one that cannot even be looked at is none of the possible ones."""
    try:
        return asked.judge(answer, readings)
    except GpulabError:  # the notebook's own mistake, such as readings without their columns
        raise
    except Exception as error:  # noqa: BLE001  # what is given may raise anything when it is read
        message = f"This answer cannot be read ({type(error).__name__}: {error}). "
        return Verdict(ok=False, message=message + asked.judge.how, diagnosis_code="unreadable")


def _lesson_of(exercise_id: str) -> str:
    return str(exercise_id).partition(".")[0]


def _ids_of(lessons: Iterable[str]) -> tuple[str, ...]:
    return tuple(exercise_id for lesson in lessons for exercise_id in _exercises_of(lesson))


@cache
def _exercises_of(lesson: str) -> Mapping[str, Exercise]:
    """Return the exercises of a lesson by their ids; this imports the lesson by its number.

    It is the one import whose name is computed: a notebook loads its own lesson, and the others
    only where somebody asks for all exercises. The cases share one room.
    """
    module = import_module(f"{room_of(lesson)}._exercises")
    exercises: tuple[Exercise, ...] = module.EXERCISES
    return MappingProxyType(
        {each.exercise_id: each for each in exercises if _lesson_of(each.exercise_id) == lesson}
    )
