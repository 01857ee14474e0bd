"""The records of an exercise: question, hint and verdict, each with its text and HTML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core import shell
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.units import format_time
from gpulab.exercises import _html

if TYPE_CHECKING:
    import pandas as pd

    from gpulab.exercises.answers import ReadingsJudge


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of checking an answer; it is true if the answer is right.

    Attributes
    ----------
    ok
        True if the answer is right, False if it is wrong, None if there is no answer yet.
    message
        The finding, and what to look at next.
    diagnosis_code
        Short name of the mistake that was recognised; empty if the answer is right.
    exercise_id
        The id of the exercise.

    Examples
    --------
    >>> from gpulab import exercises
    >>> verdict = exercises.check("06.hot-or-cold", ...)
    >>> verdict.ok is None, bool(verdict)
    (True, False)
    """

    ok: bool | None
    message: str
    diagnosis_code: str = ""
    exercise_id: str = ""

    def __bool__(self) -> bool:
        return self.ok is True

    def __str__(self) -> str:
        return visible(f"{self._tone.word} {self.message}".strip())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return _html.box(self._tone, _html.paragraphs(self.message))

    @property
    def _tone(self) -> _html.Tone:
        if self.ok is None:
            return _html.OPEN
        return _html.RIGHT if self.ok else _html.WRONG


# No repr: a cell that shows an exercise by mistake must not print the key.
@dataclass(frozen=True, slots=True, repr=False)
class Exercise:
    """A question with its key and its hints; learners see only `asked`.

    In the question, an empty line starts a paragraph, and lines that are indented by four spaces
    are shown as code, as are the lettered choices under it. The judge contains the key. Hints go
    from a small one to one that nearly says the answer. ``readings`` returns the measurements that
    the question is about, if there are any.
    """

    exercise_id: str
    question: str
    judge: "ReadingsJudge"
    hints: tuple[str, ...]
    choices: Mapping[str, str] | None = None
    readings: "Callable[[], pd.DataFrame] | None" = None

    @property
    def asked(self) -> "Question":
        """The part of it that a learner sees."""
        return Question(
            self.exercise_id,
            self.question,
            self.judge.how,
            self.choices or {},
            None if self.readings is None else self.readings(),
        )


# No equality: comparing the readings, which are a data frame, gives no True or False.
@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """The question of an exercise as a learner sees it, without the key and the hints.

    Attributes
    ----------
    exercise_id
        Lesson and name, for example ``"01.hidden-sync"``.
    question
        Text of the question.
    how
        How to write the answer.
    choices
        Lettered choices; empty if there are none.
    readings
        The measurements that the question is about; None if there are none.

    Examples
    --------
    >>> from gpulab import exercises
    >>> exercises.ask("06.hot-or-cold").how  # doctest: +ELLIPSIS
    "Answer with a dict that has the keys 'a', 'b', 'c', 'd', 'e'; each value: one of 'hot', ..."
    """

    exercise_id: str
    question: str
    how: str
    choices: Mapping[str, str]
    readings: "pd.DataFrame | None"
    # Shows the form of the answer, where a front end is there; None if the answer is a function.
    _show_form: "Callable[[Question], None] | None" = None

    def __str__(self) -> str:
        lines = (f"  {key}: {text}" for key, text in self.choices.items())
        parts = [f"{self.exercise_id}: {self.question}", *lines, *self._how]
        return visible("\n".join(parts))

    __repr__ = __str__

    def _repr_html_(self, still: str = "") -> str:
        """Return the question as HTML; what its form says, too, gets the class ``still``."""
        listed = _html.options(self.choices) if self.choices else ""
        numbers = "" if self.readings is None else _table(self.readings)
        how = _html.paragraphs("\n\n".join(self._how))
        return _html.box(
            _html.Tone("#0072B2", "?", f"Exercise {self.exercise_id}"),
            f"{_html.paragraphs(self.question)}{numbers}"
            f'<div class="{clean(still)}">{listed}{how}</div>',
        )

    def _ipython_display_(self) -> None:
        if self._show_form is None or not shell.is_watched():
            raise NotImplementedError  # IPython shows it as text and HTML then
        self._show_form(self)

    @property
    def _how(self) -> list[str]:
        """How to write the answer, and where it goes if no form can be shown."""
        if self._show_form is None:
            return [self.how]
        call = f'exercises.check("{self.exercise_id}", ...)'
        return [self.how, f"Your answer goes in place of the dots: {call}"]


def _table(readings: "pd.DataFrame") -> str:
    """Return readings as an HTML table, with each time in a unit that is easy to read."""
    columns = [name for name in map(str, readings.columns) if name.endswith("_s")]
    times = {name: readings[name].map(_on_one_line) for name in columns}
    return visible(readings.assign(**times).to_html(index=False, border=0))


def _on_one_line(time_s: float) -> str:
    return format_time(time_s).replace(" ", "\N{NO-BREAK SPACE}")


@dataclass(frozen=True, slots=True)
class Hint:
    """A hint with its number, and how many hints the exercise has."""

    text: str
    number: int
    n_hints: int

    def __str__(self) -> str:
        return visible(f"{self._heading} {self.text}")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tone = _html.Tone("#0072B2", "i", self._heading)
        return _html.box(tone, _html.paragraphs(self.text))

    @property
    def _heading(self) -> str:
        return f"Hint {self.number} of {self.n_hints}."


def is_open(answer: object) -> bool:
    """Return whether an answer is None or ``...``, the placeholder in the notebook."""
    return answer is None or answer is ...
