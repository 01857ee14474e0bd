"""The lines of a learner's file: what was said, what came out, what was answered."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime

from gpulab.errors import DamagedDataError, SchemaVersionError
from gpulab.serialization import Saved, parse_json

# The steps of confidence, and how often what is said with each of them should be right.
CONFIDENCE = {"guess": 1 / 3, "likely": 2 / 3, "sure": 0.95}


@dataclass(frozen=True, slots=True)
class Stroke:
    """A curve that was drawn: the places on both axes where it was given."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Guess(Saved):
    """A prediction.

    Attributes
    ----------
    name
        Lesson and name of the prediction, such as ``"01.naive"``.
    at
        When it was said, in UTC.
    number
        The guess in seconds or as a count; None where it is a choice or a drawing.
    choice
        The guess among choices; empty for all others.
    unit
        Unit in which the number was given.
    confidence
        One of the three steps; empty if none was given.
    is_late
        Whether the outcome had been shown before.
    strokes
        What was drawn.
    question
        What was asked, for those who read the file without the lesson.
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

    @property
    def said(self) -> tuple[object, ...]:
        """What makes two guesses the same one."""
        return (self.number, self.choice, self.confidence, self.strokes)


@dataclass(frozen=True, slots=True)
class Reveal(Saved):
    """What came out, and how far the guess was from it.

    Attributes
    ----------
    name
        Lesson and name of the prediction.
    at
        When it was shown, in UTC.
    outcome
        What came out, in words.
    message
        What the learner was told; empty where there was no guess.
    counts
        What made a guess a good one, such as ``"factor"`` or ``"choice"``.
    word
        The verdict in a word or two, such as ``"Far off."``; empty without a guess.
    size
        How far the guess was off, in the terms that ``counts`` names: times, percentage points,
        a count or percent. None where there is no such number.
    is_right
        Whether the guess counts as right; None without a guess.
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
    """An answer to an exercise that was right or wrong."""

    schema = "answer"
    exercise_id: str
    at: str
    ok: bool
    diagnosis_code: str = ""


@dataclass(frozen=True, slots=True)
class HintRead(Saved):
    """A hint of an exercise that was read."""

    schema = "hint"
    exercise_id: str
    at: str


@dataclass(frozen=True, slots=True)
class Reset(Saved):
    """From here on a lesson counts as new, or the whole course where there is no lesson."""

    schema = "reset"
    at: str
    lesson: str = ""


Record = Guess | Reveal | Answer | HintRead | Reset
_KINDS: dict[str, type[Record]] = {
    kind.schema: kind for kind in (Guess, Reveal, Answer, HintRead, Reset)
}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def to_line(record: Record) -> str:
    """Return a record as a line of the file."""
    return json.dumps(record.to_dict()) + "\n"


def from_line(line: bytes) -> Record | None:
    """Return the record of a line, or None where nobody can read it."""
    try:
        data = parse_json(line)
        kind = _KINDS.get(str(data.get("schema"))) if isinstance(data, dict) else None
        return None if kind is None else kind.from_dict(data)
    except (DamagedDataError, SchemaVersionError):
        return None
