"""Find which records of a progress file count: the last guess before the outcome was shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpulab.exercises.journal._records import (
    Answer,
    Guess,
    HintRead,
    Record,
    Reset,
    Reveal,
    Version,
)


@dataclass(slots=True)
class KeptPrediction:
    """All records of one prediction.

    Attributes
    ----------
    name
        Lesson and name of the prediction.
    guess
        The guess that counts: the last one before the outcome was shown; None if there was none.
    reveal
        The outcome and the score as they were shown first; None if they were not shown yet.
    late
        Guesses from after the outcome was shown.

    Examples
    --------
    >>> from gpulab.exercises.journal import Guess, KeptPrediction
    >>> kept = KeptPrediction("01.naive", Guess("01.naive", "2026-11-22T12:00:00+00:00", 3e-4))
    >>> kept.is_scored
    False
    """

    name: str
    guess: Guess | None = None
    reveal: Reveal | None = None
    late: list[Guess] = field(default_factory=list)

    @property
    def is_scored(self) -> bool:
        """Whether a guess was made and then judged against the outcome."""
        return (
            self.guess is not None and self.reveal is not None and self.reveal.is_right is not None
        )

    @property
    def latest(self) -> Guess | None:
        """The last guess, even if it was made after the outcome."""
        return self.late[-1] if self.late else self.guess


def predictions_of(records: Iterable[Record]) -> dict[str, KeptPrediction]:
    """Return the records of each prediction, by its name, in the order of their first records."""
    predictions: dict[str, KeptPrediction] = {}
    for record in _since_reset(records):
        if isinstance(record, Guess | Reveal):
            prediction = predictions.setdefault(record.name, KeptPrediction(record.name))
            if isinstance(record, Reveal):
                # The first one counts, as it was shown first.
                prediction.reveal = prediction.reveal or record
            elif prediction.reveal is None:
                prediction.guess = record
            else:
                prediction.late.append(record)
    return predictions


def exercises_of(records: Iterable[Record]) -> Iterable[Answer | HintRead]:
    """Return the answers and the hints since the last reset of their lesson."""
    return (record for record in _since_reset(records) if isinstance(record, Answer | HintRead))


def versions_of(records: Iterable[Record]) -> list[Version]:
    """Return the versions of ``benchmark`` since the last reset of their lesson."""
    return [record for record in _since_reset(records) if isinstance(record, Version)]


def lesson_of(name: object) -> str:
    """Return the lesson in the name of an exercise or a prediction, such as ``"08b"``.

    >>> from gpulab.exercises.journal import lesson_of
    >>> lesson_of("08b.autograd")
    '08b'
    """
    return str(name).partition(".")[0]


def _since_reset(records: Iterable[Record]) -> list[Record]:
    """Drop what a reset removes: the records before it, of its lesson or of all lessons."""
    valid: list[Record] = []
    for record in records:
        if isinstance(record, Reset):
            valid = [
                earlier for earlier in valid if record.lesson and _lesson(earlier) != record.lesson
            ]
        else:
            valid.append(record)
    return valid


def _lesson(record: Record) -> str:
    if isinstance(record, Guess | Reveal):
        return lesson_of(record.name)
    return "" if isinstance(record, Reset) else lesson_of(record.exercise_id)
