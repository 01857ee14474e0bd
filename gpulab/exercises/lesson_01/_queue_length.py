"""The judge for the length of the launch queue, by the call times that the learner measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from gpulab.core.requirements import numbers_of
from gpulab.exercises._fields import NUMBER, Fields
from gpulab.exercises.answers import (
    MALFORMED,
    Diagnosis,
    ReadingsJudge,
    plain_number,
)

# An H200 blocked at the 1,022nd pending launch; other drivers differ by a few. This range is used
# only if the learner gives no readings.
_USUAL_RANGE = (1000.0, 1050.0)
# Learners read the number off a plot.
_TOLERANCE = 0.05
# A blocked call is 100 times as long as usual, or the median of 21 calls is 1.8 times as long.
_FAR_LONGER, _SLOWER, _STAYS = 100, 1.8, 21
_LAUNCHES = Fields("number", ("answer",), (NUMBER,), "launches")


@dataclass(frozen=True, slots=True)
class QueueLength(ReadingsJudge):
    """A judge for a number of launches: it compares it with the first call that was blocked."""

    how: str = (
        "Answer with a whole number of launches; pass your own times of the calls, in seconds, "
        "as readings=."
    )
    fields: Fields = _LAUNCHES

    def judge_by(self, answer: object, readings: object) -> Diagnosis | str:
        """Judge a number of launches."""
        number = plain_number(answer)
        if number is None or number < 0:
            return MALFORMED
        durations_s = _seconds(readings)
        expected = first_blocked(durations_s) if durations_s else None
        if durations_s and expected is None:
            message = "In these readings no call had to wait: queue more work before them."
            return Diagnosis("never-blocked", message)
        low, high = _range(expected)
        if low <= number <= high:
            count = f"{expected:,}" if expected else "This many"
            return f"{count} {_FITS}"
        return _diagnose_length(number, expected, len(durations_s), low)


_FITS = (
    "launches were waiting when the next one found the queue full and had to wait for "
    "the GPU. If each kernel takes longer than its launch, every later launch waits, too."
)


def first_blocked(durations_s: Sequence[float]) -> int | None:
    """Return how many launches came before the first one that was blocked; None if none was.

    If one call is far longer than all others, it was the blocked one: it waited for a long kernel
    at the head of the queue. Otherwise the queue was full where calls become about twice as slow
    and stay so. A single slow call comes from the operating system and does not count.
    """
    if len(durations_s) <= _STAYS:
        return None
    usual_s = median(durations_s[1:101])  # the first call may pay for a first use
    longest = max(range(1, len(durations_s)), key=durations_s.__getitem__)
    if durations_s[longest] > _FAR_LONGER * usual_s:
        return longest
    starts = range(1, len(durations_s) - _STAYS)
    slow = (i for i in starts if median(durations_s[i : i + _STAYS]) > _SLOWER * usual_s)
    # The median of a window turns when half of it is slow: the change is in its middle.
    middle = next(slow, None)
    return None if middle is None else middle + _STAYS // 2


def _seconds(readings: object) -> list[float]:
    """Return the durations in a sequence, a Measurement or a data frame; none for None."""
    from gpulab.device.measurement import Measurement

    if readings is None:
        return []
    if isinstance(readings, Measurement):
        return list(readings.samples_s)
    values = getattr(readings, "duration_s", readings)  # a frame's column
    return [float(duration_s) for duration_s in numbers_of("readings", values)]


def _range(expected: int | None) -> tuple[float, float]:
    if expected is None:
        return _USUAL_RANGE
    # One more on each side: learners count the blocked call itself, or begin at 0.
    return expected * (1 - _TOLERANCE) - 1, expected * (1 + _TOLERANCE) + 1


def _diagnose_length(number: float, expected: int | None, n_calls: int, low: float) -> Diagnosis:
    if number < 1:
        return Diagnosis(
            "duration",
            f"{number:g} looks like a duration. Count how many launches were made before one had "
            "to wait: the position on the horizontal axis, not the height.",
        )
    if n_calls and number == n_calls:
        return Diagnosis(
            "all-launches",
            f"{n_calls:,} is the number of all launches. Count only those that were made before "
            "one had to wait: look for the jump.",
        )
    if expected and abs(number - (n_calls - expected)) <= _TOLERANCE * expected:
        return Diagnosis(
            "blocked-calls",
            "You counted the calls that had to wait. Count those that did not: up to the jump.",
        )
    if number < low:
        message = "Too few: at this launch the host was not blocked yet. Look for the jump."
        return Diagnosis("too-few", message)
    message = "Too many: an earlier launch was already blocked. Look for the first slow call."
    return Diagnosis("too-many", message)
