"""What an exercise is and what a check says: frozen records that show themselves."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpulab.exercises import _html
from gpulab.foreign_text import visible
from gpulab.units import format_time

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says about an answer.

    Attributes
    ----------
    ok
        True if the answer is right, False if not, None if there is no answer yet.
    message
        What was found, and what to look at next.
    diagnosis_code
        Short name of the mistake that was recognised; empty if the answer is right.
    exercise_id
        The exercise that was answered.
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


class Judge(Protocol):
    """An answer's form: says how to answer, and judges what was answered."""

    @property
    def how(self) -> str:
        """How to write the answer, as one sentence."""
        ...

    def __call__(self, answer: object, readings: object) -> Verdict:
        """Judge an answer, against the learner's own readings when these are given."""
        ...


@dataclass(frozen=True, slots=True, repr=False)
class Exercise:
    """A question with its judge, which holds the key, and its hints; learners see `asked`.

    Attributes
    ----------
    exercise_id
        Lesson and name, such as ``"01.hidden-sync"``.
    question
        Text; an empty line starts a paragraph, lines indented by four are a listing.
    judge
        Knows how an answer looks and what it is worth.
    hints
        From the gentle to the plain.
    choices
        Lettered choices, shown under the question.
    readings
        Makes the numbers that the question is about, if there are any.
    """

    exercise_id: str
    question: str
    judge: Judge
    hints: tuple[str, ...]
    choices: Mapping[str, str] | None = None
    readings: "Callable[[], pd.DataFrame] | None" = None

    @property
    def asked(self) -> "Question":
        """What a learner sees of it."""
        return Question(
            self.exercise_id,
            self.question,
            self.judge.how,
            self.choices or {},
            None if self.readings is None else self.readings(),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A question as it is shown: it knows neither the answer nor the hints.

    Attributes
    ----------
    exercise_id
        Lesson and name, such as ``"01.hidden-sync"``.
    question
        What is asked.
    how
        How to write the answer.
    choices
        Lettered choices; empty where there are none.
    readings
        The numbers that the question is about; None where there are none.
    """

    exercise_id: str
    question: str
    how: str
    choices: Mapping[str, str]
    readings: "pd.DataFrame | None"

    def __str__(self) -> str:
        lines = (f"  {key}: {text}" for key, text in self.choices.items())
        return visible("\n".join([f"{self.exercise_id}: {self.question}", *lines, self.how]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        listed = _html.options(self.choices) if self.choices else ""
        numbers = "" if self.readings is None else _table(self.readings)
        return _html.box(
            _html.Tone("#0072B2", "?", f"Exercise {self.exercise_id}"),
            _html.paragraphs(self.question) + listed + numbers + _html.paragraphs(self.how),
        )


def _table(readings: "pd.DataFrame") -> str:
    """Write readings as a table, columns of seconds in the unit that a reader would choose."""
    columns = [name for name in map(str, readings.columns) if name.endswith("_s")]
    times = {name: readings[name].map(format_time) for name in columns}
    return visible(readings.assign(**times).to_html(index=False, border=0))


@dataclass(frozen=True, slots=True)
class Hint:
    """One hint, and how many there are."""

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
    """Tell whether an answer is still the placeholder that the notebook came with."""
    return answer is None or answer is ...
