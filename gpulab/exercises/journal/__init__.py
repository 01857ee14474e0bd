"""The learner's progress file: guesses, drawings and answers, one per line, never overwritten."""

from gpulab.exercises.journal._entries import (
    CONFIDENCE,
    Answer,
    FilledForm,
    Guess,
    HintRead,
    JournalEntry,
    Reset,
    Reveal,
    Stroke,
    Version,
    now,
)
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
    filled_form_of,
    lesson_of,
    predictions_of,
    versions_of,
)

__all__ = [
    "CONFIDENCE",
    "FILE_NAME",
    "Answer",
    "Contents",
    "FilledForm",
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
    "filled_form_of",
    "journal",
    "lesson_of",
    "now",
    "predictions_of",
    "read",
    "versions_of",
    "way_home",
]
