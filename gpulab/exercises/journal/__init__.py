"""The learner's progress file: guesses, drawings and answers, one per line, never overwritten."""

from gpulab.exercises.journal._file import (
    FILE_NAME,
    Contents,
    LearnerJournal,
    files_in,
    journal,
    read,
    way_home,
)
from gpulab.exercises.journal._history import (
    KeptPrediction,
    exercises_of,
    lesson_of,
    predictions_of,
    versions_of,
)
from gpulab.exercises.journal._records import (
    CONFIDENCE,
    Answer,
    Guess,
    HintRead,
    JournalEntry,
    Reset,
    Reveal,
    Stroke,
    Version,
    now,
)

__all__ = [
    "CONFIDENCE",
    "FILE_NAME",
    "Answer",
    "Contents",
    "Guess",
    "HintRead",
    "JournalEntry",
    "KeptPrediction",
    "LearnerJournal",
    "Reset",
    "Reveal",
    "Stroke",
    "Version",
    "exercises_of",
    "files_in",
    "journal",
    "lesson_of",
    "now",
    "predictions_of",
    "read",
    "versions_of",
    "way_home",
]
