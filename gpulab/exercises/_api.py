"""The functions that a notebook calls: show an exercise, check an answer, read hints, progress."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpulab.core.errors import GpulabError, InvalidOptionError, UnknownNameError
from gpulab.core.foreign_text import shortened
from gpulab.core.requirements import PATH
from gpulab.exercises._answer_form import AnswerForm
from gpulab.exercises._carried import keep_version
from gpulab.exercises._entries import Answer, HintRead, JournalEntry, Reset, now
from gpulab.exercises._exercise import Exercise, Hint, Question, Verdict
from gpulab.exercises._history import lesson_of, predictions_of
from gpulab.exercises._journal import LearnerJournal, journal, read
from gpulab.exercises._lesson_index import (
    COURSE,
    MET,
    N_LESSONS,
    check_lesson,
    lessons,
    lessons_with,
    package_of,
)
from gpulab.exercises._progress import ExerciseProgress, Progress, exercise_progress
from gpulab.tracing.trials import stream_kept, text_of

if TYPE_CHECKING:
    import pandas as pd


# Ids begin with the number of the package, so those of lesson 08b begin with 08.
_LESSONS = tuple(f"{number:02}" for number in range(N_LESSONS))
_CASES = tuple(f"case-{number:02}" for number in range(1, 11))
_UNITS = (*_LESSONS, *_CASES)
_LONGEST = 500  # characters of an error's message


class StoppedCheck(KeyboardInterrupt):
    """The learner pressed Ctrl-C, or the stop button, while an answer was tried."""

    def __str__(self) -> str:
        return (
            "You stopped the check before your answer had ended, so there is no verdict. Does it "
            "contain a loop that never ends?"
        )

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: one sentence, and no stack."""
        return [str(self)]


def exercise_ids() -> tuple[str, ...]:
    """Return the ids of all exercises: first those of the lessons, then those of the cases."""
    return tuple(exercise_id for unit in _UNITS for exercise_id in _exercises_of(unit))


def ask(exercise_id: str, *, readings: object = None) -> Question:
    """Show an exercise: the question, and how to write the answer.

    Parameters
    ----------
    exercise_id
        Lesson and name, for example ``"06.hot-or-cold"``.
    readings
        Your own measurements, for the exercises that judge against them; see :func:`check`.

    Raises
    ------
    UnknownNameError
        If no exercise has this id.

    Examples
    --------
    >>> from gpulab import exercises
    >>> str(exercises.ask("06.hot-or-cold")).splitlines()[0]
    '06.hot-or-cold: In which state do you measure?'
    """
    definition = exercise(exercise_id)
    MET.update(lessons_with(exercise_id))
    fields = definition.judge.fields
    if fields is None:
        return definition.asked
    check_it = partial(check, exercise_id, readings=readings)

    def show_form(asked: Question) -> None:
        AnswerForm(asked, fields, check_it, partial(hint, exercise_id)).display()

    return replace(definition.asked, _show_form=show_form)


def exercise(exercise_id: str) -> Exercise:
    """Return an exercise with its key; the package does not export this function.

    An unknown id raises `UnknownNameError`.
    """
    lesson = lesson_of(exercise_id) if isinstance(exercise_id, str) else ""
    if lesson not in _UNITS or exercise_id not in _exercises_of(lesson):
        raise UnknownNameError("exercise", exercise_id, exercise_ids())
    return _exercises_of(lesson)[exercise_id]


def check(exercise_id: str, answer: object, *, readings: object = None) -> Verdict:
    """Judge an answer, and explain the mistake if it is wrong.

    Parameters
    ----------
    exercise_id
        Lesson and name, for example ``"01.hidden-sync"``.
    answer
        The answer in the form that the exercise asks for. ``...`` and None mean "not answered
        yet".
    readings
        Your own measurements, for the exercises that judge against them.

    Returns
    -------
    Verdict
        Right, wrong with a diagnosis, or not answered. A wrong answer never raises an error
        here, not even if the answer is a function that raises one.

    Raises
    ------
    UnknownNameError
        If no exercise has this id.

    Examples
    --------
    >>> from gpulab import exercises
    >>> print(exercises.check("01.hidden-sync", ...))
    Not answered yet. Answer with a set of some of a, b, c, d, e, f, g, h, as in {"x", "y"}.
    """
    verdict = replace(_judged(exercise(exercise_id), answer, readings), exercise_id=exercise_id)
    MET.update(lessons_with(exercise_id))
    if verdict.ok is not None:  # a cell that was run without an answer is no try
        journal().add(Answer(exercise_id, now(), verdict.ok, verdict.diagnosis_code))
        keep_version(exercise_id, answer, ok=verdict.ok)
    return verdict


def hint(exercise_id: str) -> Hint:
    """Return the next hint of an exercise; after the last one, the last again.

    Parameters
    ----------
    exercise_id
        Lesson and name, for example ``"01.hidden-sync"``.

    Raises
    ------
    UnknownNameError
        If no exercise has this id.

    Examples
    --------
    >>> from gpulab import exercises
    >>> str(exercises.hint("01.hidden-sync")).partition(".")[0]
    'Hint 1 of 2'
    """
    hints = exercise(exercise_id).hints
    MET.update(lessons_with(exercise_id))
    # Recorded first, so that the number of hints that were read includes this one.
    journal().add(HintRead(exercise_id, now()))
    number = min(exercise_progress()[exercise_id].n_hints, len(hints))
    return Hint(hints[number - 1], number, len(hints))


def readings(exercise_id: str) -> "pd.DataFrame":
    """Return the measurements that an exercise is about, as a table.

    The names of columns with a unit end with it, such as ``cpu_s`` for seconds.

    Parameters
    ----------
    exercise_id
        Lesson and name, for example ``"09.never-pays"``.

    Raises
    ------
    UnknownNameError
        If no exercise has this id.
    InvalidOptionError
        If the exercise has no given measurements.

    Examples
    --------
    >>> from gpulab import exercises
    >>> list(exercises.readings("09.never-pays").columns[:3])
    ['elements', 'cpu_s', 'gpu_s']
    """
    make = exercise(exercise_id).readings
    if make is None:
        raise InvalidOptionError(f"exercise {exercise_id!r} has no readings; take your own")
    return make()


def progress(lesson: str | None = None) -> Progress:
    """Show which exercises you solved, how good your predictions were, and what to repeat.

    Parameters
    ----------
    lesson
        Number of a lesson, for example ``"08b"``, or ``"course"`` for all lessons. The default
        is the lessons whose exercises or predictions this notebook has used so far, or all
        lessons if it has used none.

    Raises
    ------
    UnknownNameError
        If no lesson has this number.

    Examples
    --------
    >>> from gpulab import exercises
    >>> "exercises right" in str(exercises.progress())
    True
    """
    check_lesson(lesson)
    return _progress_in(journal().entries, {str(lesson)} if lesson else MET)


def _progress_in(entries: Sequence[JournalEntry], chosen: set[str]) -> Progress:
    # An exercise may be asked in several lessons, and counts in each of them.
    is_all = COURSE in chosen or not chosen
    done, predictions = exercise_progress(entries), predictions_of(entries).values()
    return Progress(
        tuple(
            (each, replace(done.get(each, ExerciseProgress()), is_further=is_further))
            for name, contents in lessons().items()
            if is_all or name in chosen
            for each, is_further in contents.is_further.items()
        ),
        tuple(
            prediction
            for prediction in predictions
            if is_all or lesson_of(prediction.name) in chosen
        ),
    )


def progress_in(folder: Path) -> Progress:
    """Return the progress that is saved in a folder, for every lesson that was begun.

    Parameters
    ----------
    folder
        Folder of your lessons, which contains ``gpulab-progress.jsonl``.

    Raises
    ------
    InvalidOptionError
        If no progress is saved there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gpulab import exercises
    >>> with tempfile.TemporaryDirectory() as name:
    ...     exercises.progress_in(Path(name))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    gpulab.core.errors.InvalidOptionError: ... name the folder of your lessons: gpulab progress ...
    """
    PATH.check(folder=folder)
    own = _journal_in(folder)
    met = {lesson_of(name) for name in predictions_of(own.entries)}
    return _progress_in(own.entries, met.union(*map(lessons_with, exercise_progress(own.entries))))


def adopt(file: Path, folder: Path) -> int:
    """Copy the entries of another progress file of yours into a folder; return their number.

    Use it if you worked on another computer. Records that the folder has already, after your last
    reset, are not copied again.

    Parameters
    ----------
    file
        The file to copy from.
    folder
        Folder of your lessons.

    Raises
    ------
    InvalidOptionError
        If the file cannot be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from gpulab import exercises
    >>> try:
    ...     exercises.adopt(Path("laptop.jsonl"), Path("."))
    ... except InvalidOptionError as error:
    ...     print(str(error).partition(" (")[0])
    laptop.jsonl cannot be read
    """
    PATH.check(file=file, folder=folder)
    file = Path(file)
    contents = read(file)
    if contents.problem:
        raise InvalidOptionError(f"{file} {contents.problem}; name another file")
    own = LearnerJournal(Path(folder))
    # What you have reset since then may come back: only entries after the reset are known.
    before = own.entries
    resets = (
        number
        for number, entry in enumerate(before, 1)
        if isinstance(entry, Reset) and entry not in contents.entries
    )
    known = before[max(resets, default=0) :]
    new = [entry for entry in contents.entries if entry not in known]
    for entry in new:
        own.add(entry)
    return len(new)


def _journal_in(folder: Path) -> LearnerJournal:
    journal = LearnerJournal(Path(folder))
    if not journal.entries:
        raise InvalidOptionError(
            f"{folder} has no predictions or answers of yours; name the folder of your lessons: "
            "gpulab progress FOLDER"
        )
    return journal


def reset(lesson: str | None = None, *, folder: Path | None = None) -> None:
    """Start again: earlier predictions and answers no longer count, but stay in the file.

    Parameters
    ----------
    lesson
        Number of a lesson, for example ``"08b"``; by default the whole course.
    folder
        Folder of the lessons; by default that of this notebook.

    Raises
    ------
    UnknownNameError
        If no lesson has this number.
    InvalidOptionError
        If no progress is saved in ``folder``.

    Examples
    --------
    >>> from gpulab import exercises
    >>> exercises.reset("08b")
    """
    if folder is not None:
        PATH.check(folder=folder)
    check_lesson(lesson)
    own = journal() if folder is None else _journal_in(folder)
    own.add(Reset(now(), "" if lesson in {None, COURSE} else str(lesson)))


def _judged(asked: Exercise, answer: object, readings: object) -> Verdict:
    """Judge an answer; an answer that raises an error when it is read is wrong."""
    try:
        # An answer that is data needs no torch, and its check must not load it.
        with stream_kept() if "torch" in sys.modules else nullcontext():
            return asked.judge(answer, readings)
    except GpulabError:  # the notebook's own mistake, such as readings without their columns
        raise
    except KeyboardInterrupt:
        raise StoppedCheck from None
    except Exception as error:  # noqa: BLE001  # an answer may be any object and raise anything
        why = shortened(text_of(error), _LONGEST)
        message = f"This answer cannot be read ({type(error).__name__}: {why}). "
        return Verdict(ok=False, message=message + asked.judge.how, diagnosis_code="unreadable")


@cache
def _exercises_of(lesson: str) -> Mapping[str, Exercise]:
    """Return the exercises of a lesson, by their ids.

    The name of the module is computed from the lesson's number. So a notebook imports only its
    own lesson, and all lessons are imported only for a list of all exercises. The cases share one
    package.
    """
    module = import_module(f"{package_of(lesson)}._exercises")
    exercises: tuple[Exercise, ...] = module.EXERCISES
    return MappingProxyType(
        {each.exercise_id: each for each in exercises if lesson_of(each.exercise_id) == lesson}
    )
