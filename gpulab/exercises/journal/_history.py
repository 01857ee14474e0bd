"""Find which records of a progress file count: the last guess before the outcome was shown."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpulab.exercises.journal._records import (
    Answer,
    Given,
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
    """Return the records of each prediction, by its name, in the order of their first records.

    Examples
    --------
    >>> from gpulab.exercises.journal import Guess, predictions_of
    >>> first, second = (Guess("01.naive", "2026-11-22T12:00:00+00:00", n) for n in (1.0, 2.0))
    >>> predictions_of([first, second])["01.naive"].guess.number
    2.0
    """
    found: dict[str, KeptPrediction] = {}
    for record in _since_reset(records):
        if isinstance(record, Guess | Reveal):
            kept = found.setdefault(record.name, KeptPrediction(record.name))
            if isinstance(record, Reveal):
                kept.reveal = kept.reveal or record  # the first one counts, as it was shown first
            elif kept.reveal is None:
                kept.guess = record
            else:
                kept.late.append(record)
    return found


def exercises_of(records: Iterable[Record]) -> Iterable[Answer | HintRead]:
    """Return the answers and the hints since the last reset of their lesson.

    Examples
    --------
    >>> from gpulab.exercises.journal import Answer, Reset, exercises_of
    >>> at = "2026-11-22T12:00:00+00:00"
    >>> records = [Answer("01.a", at, True), Answer("02.b", at, True), Reset(at, "01")]
    >>> [each.exercise_id for each in exercises_of(records)]
    ['02.b']
    """
    return (record for record in _since_reset(records) if isinstance(record, Answer | HintRead))


def given_of(records: Iterable[Record], exercise_id: str) -> dict[str, list[str]]:
    """Return what the form of an exercise contained last, since the last reset of its lesson.

    Examples
    --------
    >>> from gpulab.exercises.journal import Given, given_of
    >>> given_of([Given("01.a", "2026-11-22T12:00:00+00:00", (("b", "b"),))], "01.a")
    {'b': ['b']}
    """
    given = [each for each in _since_reset(records) if isinstance(each, Given)]
    mine = [each.fields for each in given if each.exercise_id == exercise_id]
    return {key: texts for key, *texts in mine[-1]} if mine else {}


def versions_of(records: Iterable[Record]) -> list[Version]:
    """Return the versions of ``benchmark`` since the last reset of their lesson.

    Examples
    --------
    >>> from gpulab.exercises.journal import Version, versions_of
    >>> at = "2026-11-22T12:00:00+00:00"
    >>> len(versions_of([Version("02.benchmark", at, True, "def benchmark(fn): ...")]))
    1
    """
    return [record for record in _since_reset(records) if isinstance(record, Version)]


def lesson_of(name: object) -> str:
    """Return the lesson in the name of an exercise or a prediction, such as ``"08b"``.

    Examples
    --------
    >>> from gpulab.exercises.journal import lesson_of
    >>> lesson_of("08b.autograd")
    '08b'
    """
    return str(name).partition(".")[0]


def _since_reset(records: Iterable[Record]) -> list[Record]:
    """Drop what a reset removes: the records before it, of its lesson or of all lessons."""
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
    return "" if isinstance(record, Reset) else lesson_of(record.exercise_id)
