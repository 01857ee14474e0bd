"""A learner's progress: exercises solved, quality of the predictions, and what to repeat."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpulab.core.foreign_text import visible
from gpulab.core.markup import table
from gpulab.core.requirements import instance_of
from gpulab.core.units import counted
from gpulab.exercises import _calibration, _html
from gpulab.exercises._entries import Answer, JournalEntry
from gpulab.exercises._history import KeptPrediction, exercises_of
from gpulab.exercises._journal import journal

_STATES = {None: "not yet", False: "tried", True: "right"}


@dataclass(frozen=True, slots=True)
class ExerciseProgress:
    """A learner's progress in one exercise: the numbers of answers, and of hints read.

    ``ok`` is True if any answer was right, False if all were wrong, and None if there was none.
    ``is_further`` says that the lesson asks it in "Going further", which you may leave out.
    """

    ok: bool | None = None
    n_tries: int = 0
    n_hints: int = 0
    is_further: bool = False

    def __str__(self) -> str:
        return "in Going further" if self.is_further and self.ok is None else _STATES[self.ok]


def exercise_progress(
    journal_entries: Iterable[JournalEntry] | None = None,
) -> dict[str, ExerciseProgress]:
    """Return the progress in each exercise that has an answer or of which a hint was read.

    An exercise that was solved once stays solved. By default the entries of this process and its
    folder count.
    """
    progress: dict[str, ExerciseProgress] = {}
    for entry in exercises_of(journal().entries if journal_entries is None else journal_entries):
        done = progress.get(entry.exercise_id, ExerciseProgress())
        if isinstance(entry, Answer):
            ok = bool(entry.ok or done.ok)
            done = replace(done, ok=ok, n_tries=done.n_tries + 1)
        else:
            done = replace(done, n_hints=done.n_hints + 1)
        progress[entry.exercise_id] = done
    return progress


@dataclass(frozen=True, slots=True)
class Progress:
    """A learner's progress in exercises and predictions.

    Attributes
    ----------
    rows
        Id and progress of each exercise, in the order of the lessons.
    predictions
        The saved predictions.
    """

    rows: tuple[tuple[str, ExerciseProgress], ...]
    predictions: tuple[KeptPrediction, ...] = ()

    @property
    def n_right(self) -> int:
        """Number of exercises that were solved, after any number of tries."""
        return sum(done.ok is True for _, done in self.rows)

    def __str__(self) -> str:
        lines = (
            f"  {exercise_id:<24}{done!s:<18}{counted(done.n_tries, 'answer')}, "
            f"{counted(done.n_hints, 'hint')}"
            for exercise_id, done in self.rows
        )
        return visible("\n".join([self._summary, *lines, *self._review.lines()]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.exercises_html() + self.review_html()

    def exercises_html(self) -> str:
        """Return the table of the exercises as HTML."""
        return table(
            ((name, done, done.n_tries, done.n_hints) for name, done in self.rows),
            caption=self._summary,
            headings=("exercise", "state", "answers", "hints read"),
        )

    def review_html(self) -> str:
        """Return as HTML how good the predictions were, and what to repeat."""
        return self._review.html()

    @property
    def _review(self) -> _calibration.Review:
        return _calibration.review(self.predictions)

    @property
    def _summary(self) -> str:
        """How many are right; those in Going further, which you may leave out, on their own."""
        core, further = (
            [done.ok for _, done in self.rows if done.is_further == is_further]
            for is_further in (False, True)
        )
        more = f", and {further.count(True)} of {len(further)} in Going further" if further else ""
        return f"{core.count(True)} of {counted(len(core), 'exercise')} right{more}"


def page(progress: Progress) -> str:
    """Return progress as an HTML page that needs no other file.

    Parameters
    ----------
    progress
        What :func:`progress` or :func:`progress_in` returned.

    Examples
    --------
    >>> from gpulab import exercises
    >>> exercises.page(exercises.progress("01")).startswith("<!DOCTYPE html>")
    True
    """
    instance_of(Progress, "the progress of a learner").check(progress=progress)
    guesses = _guess_table(progress.predictions)
    body = f"{progress.review_html()}{guesses}{progress.exercises_html()}"
    return _html.page(TITLE, _STYLE, body)


TITLE = "gpulab: your predictions and exercises"
_STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:1.5rem}"
    "main{max-width:60rem;margin:auto}table{border-collapse:collapse;margin:1rem 0}"
    "th,td{border:1px solid #767676;padding:.25rem .6rem;text-align:left}"
    "caption{text-align:left;font-weight:600}"
)


def _guess_table(predictions: Iterable[KeptPrediction]) -> str:
    """Return a table of all predictions; changes after the outcome have a column of their own."""
    return table(
        (_calibration.row(prediction) for prediction in predictions),
        caption="All predictions",
        headings=("prediction", "how sure", "what came of it", "changed after the outcome"),
        is_text=True,
    )
