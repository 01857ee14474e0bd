"""The entries in a progress file: guesses, outcomes, answers, versions, hints and resets."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from gpulab.core.errors import DamagedDataError, SchemaVersionError
from gpulab.core.serialization import Saved, parse_json

# The three degrees of confidence, and how often predictions with each of them should be right. A
# guess between two choices is right once in two: see Guess.promise.
CONFIDENCE = {"guess": 1 / 3, "likely": 2 / 3, "sure": 0.95}
_YES_OR_NO = 2  # choices, of which a mere guess finds the right one once in two


@dataclass(frozen=True, slots=True)
class Stroke:
    """A drawn curve: its name, its x values and its y values."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Guess(Saved):
    """A guess of a prediction, at a time in UTC; a drawing is in ``strokes``.

    ``number`` is in seconds or a count; None if the guess is a choice or a drawing. ``confidence``
    is one of the keys of ``CONFIDENCE``, empty if not given. ``is_late`` says that the outcome had
    been shown before. The text of the question is for readers of the file who do not have the
    lesson. ``n_choices`` is 0 if the guess is not a choice, or if an older gpulab saved it.
    """

    schema = "guess"
    name: str
    at: str
    number: float | None = None
    choice: str = ""
    unit: str = ""
    confidence: str = ""
    is_late: bool = False
    strokes: tuple[Stroke, ...] = ()
    question: str = ""
    n_choices: int = 0

    @property
    def promise(self) -> float | None:
        """How often such a guess should be right by its confidence; None without one."""
        if self.confidence == "guess" and self.n_choices == _YES_OR_NO:
            return 1 / _YES_OR_NO
        return CONFIDENCE.get(self.confidence)

    @property
    def content(self) -> tuple[object, ...]:
        """The fields in which two equal guesses agree."""
        # Not the unit: the number is in seconds, so 0.3 ms and 300 µs are one guess.
        return (self.number, self.choice, self.confidence, self.strokes)


@dataclass(frozen=True, slots=True)
class Reveal(Saved):
    """An outcome as it was shown, at a time in UTC, and how far the guess was from it.

    ``message`` is what the learner saw, and ``word`` the verdict, such as ``"Far off."``; without
    a guess both are empty and ``is_right`` is None. ``counts`` is the rule that judged it, such as
    ``"factor"``. ``size`` is in its unit: times, percentage points, a count or percent; None if
    the rule gives no number.
    """

    schema = "reveal"
    name: str
    at: str
    outcome: str
    message: str = ""
    counts: str = ""
    word: str = ""
    size: float | None = None
    is_right: bool | None = None


@dataclass(frozen=True, slots=True)
class Answer(Saved):
    """An answer to an exercise, and whether it was right."""

    schema = "answer"
    exercise_id: str
    at: str
    ok: bool
    diagnosis_code: str = ""


@dataclass(frozen=True, slots=True)
class Version(Saved):
    """The code of a ``benchmark`` that was checked; the next lesson goes on with it."""

    schema = "version"
    exercise_id: str
    at: str
    ok: bool
    code: str


@dataclass(frozen=True, slots=True)
class FilledForm(Saved):
    """What a form of an exercise contained when it was checked, so that a new kernel shows it.

    ``fields`` has, for each row that is marked or filled in, its key and the texts of its parts.
    """

    schema = "form"
    exercise_id: str
    at: str
    fields: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class HintRead(Saved):
    """A learner read a hint of an exercise."""

    schema = "hint"
    exercise_id: str
    at: str


@dataclass(frozen=True, slots=True)
class Reset(Saved):
    """A new start: earlier entries of the lesson, or of all lessons, no longer count."""

    schema = "reset"
    at: str
    lesson: str = ""


JournalEntry = Guess | Reveal | Answer | Version | FilledForm | HintRead | Reset
_KINDS: dict[str, type[JournalEntry]] = {
    kind.schema: kind for kind in (Guess, Reveal, Answer, Version, FilledForm, HintRead, Reset)
}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def to_line(entry: JournalEntry) -> str:
    """Return an entry as a line of the file."""
    return json.dumps(entry.to_dict()) + "\n"


def from_line(line: bytes) -> JournalEntry | None:
    """Return the entry of a line, or None if it cannot be read."""
    try:
        data = parse_json(line)
        kind = _KINDS.get(str(data.get("schema"))) if isinstance(data, dict) else None
        return None if kind is None else kind.from_dict(data)
    # Records of a newer gpulab are passed over too, and stay in the file for that version.
    except (DamagedDataError, SchemaVersionError):
        return None
