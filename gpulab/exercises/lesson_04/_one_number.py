"""The judge for one number that summarises samples with two outliers."""

from dataclasses import dataclass
from math import isclose
from statistics import fmean, median

from gpulab.exercises._fields import SECONDS, Fields
from gpulab.exercises.answers import (
    FORGOT_UNITS,
    MALFORMED,
    AnswerJudge,
    Diagnosis,
    agrees,
    read_number,
)
from gpulab.exercises.lesson_04.traces import SAMPLES_S

_SAME = 1e-3  # relative; the mistakes differ by more


@dataclass(frozen=True, slots=True)
class OneNumber(AnswerJudge):
    """A judge for one number that summarises samples with two outliers: the median is right."""

    how: str = 'Answer in seconds, or as text with a unit, for example "12.5 µs".'
    fields: Fields = SECONDS

    def judge(self, answer: object) -> Diagnosis | str:
        """Judge a duration."""
        number_s = read_number(answer)
        if number_s is None:
            return MALFORMED
        middle_s = median(SAMPLES_S)
        if agrees(number_s, middle_s, _SAME):
            return _MEDIAN
        if any(agrees(number_s * scale, middle_s, _SAME) for scale in (1e-6, 1e-3)):
            return FORGOT_UNITS
        known = (
            diagnosis
            for diagnosis, value_s in _OTHERS
            if isclose(number_s, value_s, rel_tol=_SAME)
        )
        return next(known, _NO_MEDIAN)


_MEDIAN = (
    "Half of the calls took longer, half took less. How long the two outliers took does not "
    "matter: they could be a second each. The mean is seven times as long, and no call took it."
)
_NO_MEDIAN = Diagnosis("no-median", "Sort the thirteen samples and take the one in the middle.")
_OTHERS = (
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
