"""From the lines of a file to what counts: the last guess before the outcome was shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpulab.exercises.journal._records import Answer, Guess, HintRead, Record, Reset, Reveal


@dataclass(slots=True)
class KeptPrediction:
    """All that is kept of one prediction.

    Attributes
    ----------
    name
        Lesson and name.
    guess
        The last guess before the outcome was shown, which is the one that counts; None if there
        was none.
    reveal
        The outcome and the score, as first shown; None if it was not shown yet.
    late
        Guesses that were given after the outcome was shown.
    """

    name: str
    guess: Guess | None = None
    reveal: Reveal | None = None
    late: list[Guess] = field(default_factory=list)

    @property
    def is_scored(self) -> bool:
        """Whether there is a guess, and an outcome that was shown after it."""
        return (
            self.guess is not None and self.reveal is not None and self.reveal.is_right is not None
        )

    @property
    def latest(self) -> Guess | None:
        """The last guess, late or not."""
        return self.late[-1] if self.late else self.guess


def predictions_of(records: Iterable[Record]) -> dict[str, KeptPrediction]:
    """Return what is kept of each prediction by its name, in the order of the first record."""
    found: dict[str, KeptPrediction] = {}
    for record in _since_reset(records):
        if isinstance(record, Guess | Reveal):
            kept = found.setdefault(record.name, KeptPrediction(record.name))
            if isinstance(record, Reveal):
                kept.reveal = kept.reveal or record
            elif kept.reveal is None:
                kept.guess = record
            else:
                kept.late.append(record)
    return found


def exercises_of(records: Iterable[Record]) -> Iterable[Answer | HintRead]:
    """Yield the answers and the hints that count."""
    return (record for record in _since_reset(records) if isinstance(record, Answer | HintRead))


def lesson_of(name: object) -> str:
    """Return the lesson of an exercise or a prediction, such as ``"08b"``."""
    return str(name).partition(".")[0]


def _since_reset(records: Iterable[Record]) -> list[Record]:
    kept: list[Record] = []
    for record in records:
        if isinstance(record, Reset):
            kept = [one for one in kept if record.lesson and _lesson(one) != record.lesson]
        else:
            kept.append(record)
    return kept


def _lesson(record: Record) -> str:
    if isinstance(record, Guess | Reveal):
        return lesson_of(record.name)
    return lesson_of(record.exercise_id) if isinstance(record, Answer | HintRead) else ""
