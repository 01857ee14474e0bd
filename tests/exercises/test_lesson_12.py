"""Lesson 12: each typical mistake gets its diagnosis, and claims and helpers are right."""

import math

import pytest

from gpulab import exercises
from gpulab.exercises import lesson_12 as lab
from gpulab.exercises.lesson_12._claims import CLAIMS
from gpulab.exercises.lesson_12._exercises import EXERCISES
from gpulab.exercises.lesson_12._sectors import CASES, sectors
from tests.support.judging import check_whole

SOURCE = {
    "a": "clock",
    "b": "order",
    "c": "allocator",
    "d": "contention",
    "e": "placement",
    "f": "data",
}
CURE = {"a": "batch", "b": "fuse", "c": "precision", "d": "layout", "e": "none"}
VERDICTS = dict.fromkeys("abc", "cannot run") | dict.fromkeys("def", "does not hold")
VERDICTS["g"] = "holds"


def used_only(n: int, _stride: int, size_bytes: int) -> int:
    """Count sectors as if the used bytes were contiguous."""
    return math.ceil(n * size_bytes / 32)


def whole_span(n: int, stride: int, size_bytes: int) -> int:
    """Count all sectors from the first element to the last."""
    return math.ceil(n * stride * size_bytes / 32)


@pytest.mark.parametrize(
    ("name", "answer", "code"),
    [
        ("source", SOURCE, ""),
        ("source", {**SOURCE, "b": "clock"}, "the-clock-is-the-means"),
        ("source", {**SOURCE, "b": "contention"}, "compared-with-itself"),
        ("source", {**SOURCE, "a": "contention"}, "steady-in-time"),
        ("source", {**SOURCE, "d": "clock"}, "at-random"),
        ("source", {**SOURCE, "e": "order"}, "after-the-flush"),
        ("source", {**SOURCE, "c": "placement"}, "who-pays"),
        ("source", {**SOURCE, "f": "clock"}, "what-moved-the-clock"),
        ("source", {**SOURCE, "f": "order"}, "another-source"),
        ("sectors", sectors, ""),
        ("sectors", used_only, "only-what-is-used"),
        ("sectors", whole_span, "the-whole-span"),
        ("sectors", lambda n, _stride, _size: n, "one-for-each"),
        ("sectors", lambda n, s, b: len({k * s * b // 128 for k in range(n)}), "cache-lines"),
        ("sectors", lambda n, s, _: len({k * s // 32 for k in range(n)}), "elements-are-no-bytes"),
        ("sectors", lambda n, stride, _size: n * stride, "unexplained"),
        ("cure", CURE, ""),
        ("cure", {**CURE, "a": "precision"}, "idle-gpu"),
        ("cure", {**CURE, "a": "fuse"}, "fusing-saves-launches-too"),
        ("cure", {**CURE, "b": "batch"}, "few-launches"),
        ("cure", {**CURE, "b": "precision"}, "half-the-bytes"),
        ("cure", {**CURE, "c": "fuse"}, "matmul-is-compute"),
        ("cure", {**CURE, "c": "batch"}, "four-launches"),
        ("cure", {**CURE, "d": "precision"}, "already-half"),
        ("cure", {**CURE, "d": "fuse"}, "do-not-need-it"),
        ("cure", {**CURE, "e": "batch"}, "one-copy"),
        ("cure", {**CURE, "e": "layout"}, "another-limit"),
        ("verdicts", VERDICTS, ""),
        ("verdicts", {**VERDICTS, "a": "does not hold"}, "no-such-function"),
        ("verdicts", {**VERDICTS, "b": "holds"}, "conv2d-needs-four"),
        ("verdicts", {**VERDICTS, "c": "holds"}, "four-dimensions"),
        ("verdicts", {**VERDICTS, "d": "holds"}, "legacy-stream"),
        ("verdicts", {**VERDICTS, "e": "holds"}, "idle-queue"),
        ("verdicts", {**VERDICTS, "f": "holds"}, "pageable"),
        ("verdicts", {**VERDICTS, "g": "does not hold"}, "look-at-the-claim"),
        ("verdicts", {**VERDICTS, "d": "cannot run"}, "run-it"),
    ],
)
def test_each_answer_has_its_verdict(name: str, answer: object, code: str) -> None:
    """A right answer gets no code, and a wrong one gets the code of its mistake."""
    verdict = exercises.check(f"12.{name}", answer)
    assert (bool(verdict), verdict.diagnosis_code) == (not code, code)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: each.exercise_id)
def test_exercises_are_complete(exercise: object) -> None:
    """Each exercise has hints and words for every key, and leaves a placeholder open."""
    check_whole(exercise)  # type: ignore[arg-type]  # EXERCISES are exercises


@pytest.mark.parametrize("case", CASES)
def test_sectors_are_counted_byte_by_byte(case: tuple[int, int, int]) -> None:
    """The formula gives as many sectors as looking at each byte."""
    n, stride, size_bytes = case
    touched = {
        byte // 32
        for k in range(n)
        for byte in range(k * stride * size_bytes, (k * stride + 1) * size_bytes)
    }
    assert sectors(n, stride, size_bytes) == len(touched)


def test_a_listing_that_raises_is_described() -> None:
    """The outcome of a failing listing has the error's name and its message's first line."""

    def raises() -> None:
        raise ValueError("no such thing\nsecond line")

    assert lab.attempt(raises) == {"outcome": "ValueError", "message": "no such thing"}
    assert lab.attempt(lambda: 3) == {"outcome": "runs", "message": "3"}


def test_the_claims_hold_for_both_sides_of_their_limits() -> None:
    """Each claim holds for one value and fails for another."""
    plain = {"12.no-default-fence": (1.0, 3.0), "12.one-wait-is-enough": (1.0, 2.0)}
    plain |= {"12.context": (0.3, 0.01), "12.no-listing-runs": (3, 2)}
    for claim in CLAIMS:
        yes, no = plain.get(claim.claim_id, (20.0, 1.0))
        assert (claim.holds(yes), claim.holds(no)) == (True, False), claim.claim_id
