"""Find which entries of a progress file count: the last guess before the outcome was shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpulab.exercises._entries import (
    Answer,
    FilledForm,
    Guess,
    HintRead,
    JournalEntry,
    Reset,
    Reveal,
    Version,
)


@dataclass(slots=True)
class KeptPrediction:
    """All entries of one prediction.

    ``guess`` is the one that counts: the last one before the outcome was shown. ``reveal`` has
    outcome and score as they were shown first. ``late`` are guesses from after that.
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


def predictions_of(entries: Iterable[JournalEntry]) -> dict[str, KeptPrediction]:
    """Return the entries of each prediction, by its name, in the order of their first entries."""
    predictions: dict[str, KeptPrediction] = {}
    for entry in _since_reset(entries):
        if isinstance(entry, Guess | Reveal):
            prediction = predictions.setdefault(entry.name, KeptPrediction(entry.name))
            if isinstance(entry, Reveal):
                # The first one counts, as it was shown first.
                prediction.reveal = prediction.reveal or entry
            elif prediction.reveal is None:
                prediction.guess = entry
            else:
                prediction.late.append(entry)
    return predictions


def exercises_of(entries: Iterable[JournalEntry]) -> Iterable[Answer | HintRead]:
    """Return the answers and the hints since the last reset of their lesson."""
    return (entry for entry in _since_reset(entries) if isinstance(entry, Answer | HintRead))


def filled_form_of(entries: Iterable[JournalEntry], exercise_id: str) -> dict[str, list[str]]:
    """Return what the form of an exercise contained last, since the last reset of its lesson."""
    forms = [entry for entry in _since_reset(entries) if isinstance(entry, FilledForm)]
    fields = [entry.fields for entry in forms if entry.exercise_id == exercise_id]
    return {key: texts for key, *texts in fields[-1]} if fields else {}


def versions_of(entries: Iterable[JournalEntry]) -> list[Version]:
    """Return the versions of ``benchmark`` since the last reset of their lesson."""
    return [entry for entry in _since_reset(entries) if isinstance(entry, Version)]


def lesson_of(name: object) -> str:
    """Return the lesson in the name of an exercise or a prediction, such as ``"08b"``."""
    return str(name).partition(".")[0]


def _since_reset(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """Drop what a reset removes: the entries before it, of its lesson or of all lessons."""
    valid: list[JournalEntry] = []
    for entry in entries:
        if isinstance(entry, Reset):
            valid = [
                earlier for earlier in valid if entry.lesson and _lesson(earlier) != entry.lesson
            ]
        else:
            valid.append(entry)
    return valid


def _lesson(entry: JournalEntry) -> str:
    if isinstance(entry, Guess | Reveal):
        return lesson_of(entry.name)
    return "" if isinstance(entry, Reset) else lesson_of(entry.exercise_id)
