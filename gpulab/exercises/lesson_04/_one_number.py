"""The judge for one number that summarises samples with two outliers: the median is right."""

from statistics import fmean, median

from gpulab.exercises.answers import Diagnosis, Duration
from gpulab.exercises.lesson_04.traces import SAMPLES_S

_SAME = 1e-3  # relative; the mistakes differ by more

_MISTAKES = (
    (
        Diagnosis(
            "mean",
            "That is the mean. Two of the thirteen calls made it seven times as long as the "
            "others, and no call took that long. The mean answers another question: how long "
            "thirteen calls take together.",
        ),
        fmean(SAMPLES_S),
    ),
    (
        Diagnosis(
            "minimum",
            "That is the minimum: the luckiest call. It gets smaller the more often you measure. "
            "It may be a call that found everything in the cache.",
        ),
        min(SAMPLES_S),
    ),
    (
        Diagnosis(
            "outliers-thrown-out",
            "That is the mean without the two outliers. It is close, but you chose where to cut: "
            "is 43.9 µs an outlier too? The median needs no cut.",
        ),
        fmean(sorted(SAMPLES_S)[:-2]),
    ),
    (
        Diagnosis(
            "largest-thrown-out",
            "That is the mean without the largest sample. One outlier is still in it and makes it "
            "three times too long. How many would you throw out next time?",
        ),
        fmean(sorted(SAMPLES_S)[:-1]),
    ),
    (
        Diagnosis(
            "not-sorted",
            "That is the sample in the middle of the list. The list is in the order taken: sort "
            "it first.",
        ),
        SAMPLES_S[len(SAMPLES_S) // 2],
    ),
)

ONE_NUMBER_JUDGE = Duration(
    right_s=median(SAMPLES_S),
    why="Half of the calls took longer, half took less. How long the two outliers took does not "
    "matter: they could be a second each. The mean is seven times as long, and no call took it.",
    wrong=tuple(
        ((1 - _SAME) * time_s, (1 + _SAME) * time_s, diagnosis) for diagnosis, time_s in _MISTAKES
    ),
    otherwise=Diagnosis("no-median", "Sort the thirteen samples and take the one in the middle."),
    tolerance=_SAME,
)
