"""The judge of the one number that stands for samples with two strays among them."""

from dataclasses import dataclass
from math import isclose
from statistics import fmean, median

from gpulab.exercises._exercise import Verdict, is_open
from gpulab.exercises.answers import Diagnosis, malformed, read_number, unanswered
from gpulab.exercises.lesson_04.traces import SAMPLES_S


@dataclass(frozen=True, slots=True)
class OneNumber:
    """Judges the number that stands for samples with two strays among them."""

    how: str = 'Answer in seconds, or as text with a unit, for example "12.5 µs".'

    def __call__(self, answer: object, readings: object = None) -> Verdict:  # noqa: ARG002  # Judge
        """Judge a duration."""
        if is_open(answer):
            return unanswered(self.how)
        number_s = read_number(answer)
        if number_s is None:
            return malformed(answer, self.how)
        if _same(number_s, median(SAMPLES_S)):
            return Verdict(ok=True, message=_MEDIAN)
        if any(_same(number_s * scale, median(SAMPLES_S)) for scale in (1e-6, 1e-3)):
            return _UNITS.verdict()
        known = (diagnosis for diagnosis, value_s in _OTHERS if _same(number_s, value_s))
        return next(known, _NO_MEDIAN).verdict()


def _same(number_s: float, expected_s: float) -> bool:
    return isclose(number_s, expected_s, rel_tol=1e-3)


_MEDIAN = (
    "Half of the calls took longer, half less, and how long the two strays took does not matter: "
    "they could be a second each. The mean is 304 µs, a time that no call took."
)
_UNITS = Diagnosis(
    "forgot-units",
    "The digits are right, the unit is not: a plain number is read as seconds. Write 12.5e-6 for "
    '12.5 µs, or the text "12.5 µs".',
)
_NO_MEDIAN = Diagnosis(
    "no-median", "Sort the thirteen samples. The number asked for stands in the middle."
)
_OTHERS = (
    (
        Diagnosis(
            "mean",
            "That is the mean. Two calls of thirteen made it seven times as long as the others: "
            "no call took that long. It answers how long thirteen calls take together.",
        ),
        fmean(SAMPLES_S),
    ),
    (
        Diagnosis(
            "minimum",
            "That is the minimum: the luckiest call. It gets smaller the more often you measure, "
            "and in other work it may be one that found everything in the cache.",
        ),
        min(SAMPLES_S),
    ),
    (
        Diagnosis(
            "strays-thrown-out",
            "That is the mean of what you left over. It comes near, but where to cut was your "
            "choice (what of the 43.9 µs?). The median needs no cut.",
        ),
        fmean(sorted(SAMPLES_S)[:-2]),
    ),
    (
        Diagnosis(
            "largest-thrown-out",
            "That is the mean without the largest. One stray is still in it, and pulls it to "
            "three times the others. How many would you throw out next time?",
        ),
        fmean(sorted(SAMPLES_S)[:-1]),
    ),
    (
        Diagnosis(
            "not-sorted",
            "That is the sample in the middle of the list, which is in the order taken. Sort it "
            "first.",
        ),
        SAMPLES_S[len(SAMPLES_S) // 2],
    ),
)
