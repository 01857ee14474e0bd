"""What was answered since the kernel started; it is kept in memory only."""

from dataclasses import dataclass, field, replace

from gpulab.exercises._exercise import Verdict
from gpulab.foreign_text import visible
from gpulab.markup import table

_STATES = {None: "not yet", False: "tried", True: "right"}


@dataclass(frozen=True, slots=True)
class ExerciseProgress:
    """How far one exercise has come.

    Attributes
    ----------
    ok
        True once it was right, False if it was tried, None if it was not.
    n_tries
        Answers given, right or wrong.
    n_hints
        Hints read.
    """

    ok: bool | None = None
    n_tries: int = 0
    n_hints: int = 0

    def __str__(self) -> str:
        return _STATES[self.ok]


@dataclass(slots=True)
class LearnerProgress:
    """How far the learner has come in each exercise for which a hint was read or an answer given.

    Attributes
    ----------
    entries
        Exercise id to progress; exercises that were never touched are missing.
    """

    entries: dict[str, ExerciseProgress] = field(default_factory=dict)

    def answered(self, verdict: Verdict) -> None:
        """Take note of a verdict; what was right once stays right."""
        entry = self.entry(verdict.exercise_id)
        if verdict.ok is None:
            self.entries[verdict.exercise_id] = entry
            return
        ok = bool(verdict.ok or entry.ok)
        self.entries[verdict.exercise_id] = replace(entry, ok=ok, n_tries=entry.n_tries + 1)

    def next_hint(self, exercise_id: str) -> int:
        """Count one more hint and return its number, from 1."""
        entry = self.entry(exercise_id)
        self.entries[exercise_id] = replace(entry, n_hints=entry.n_hints + 1)
        return entry.n_hints + 1

    def entry(self, exercise_id: str) -> ExerciseProgress:
        """Return the progress in an exercise, an empty one if it was never touched."""
        return self.entries.get(exercise_id, ExerciseProgress())


# A kernel serves one learner, so one object for the whole process is enough.
SESSION = LearnerProgress()


@dataclass(frozen=True, slots=True)
class Progress:
    """A table of exercises and how far each has come.

    Attributes
    ----------
    rows
        Exercise id and progress, in the order of the lessons.
    """

    rows: tuple[tuple[str, ExerciseProgress], ...]

    @property
    def n_right(self) -> int:
        """Number of exercises that were right; it says nothing about how often one tried."""
        return sum(entry.ok is True for _, entry in self.rows)

    def __str__(self) -> str:
        lines = (
            f"  {exercise_id:<24}{entry!s:<9}{_count(entry.n_tries, 'answer')}, "
            f"{_count(entry.n_hints, 'hint')}"
            for exercise_id, entry in self.rows
        )
        return visible("\n".join([self._summary, *lines]))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(
            ((name, e, e.n_tries, e.n_hints) for name, e in self.rows),
            caption=self._summary,
            headings=("exercise", "state", "answers", "hints read"),
        )

    @property
    def _summary(self) -> str:
        return f"{self.n_right} of {len(self.rows)} exercises right"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
