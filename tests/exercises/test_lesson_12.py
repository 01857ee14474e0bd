"""Lesson 12: functions that count sectors get their verdict; claims and helpers are right."""

import math
from collections.abc import Callable

import pytest

from gpulab.exercises import lesson_12 as lab
from gpulab.exercises._api import exercise
from gpulab.exercises.lesson_12._claims import CLAIMS
from gpulab.exercises.lesson_12._sectors import CASES, sectors
from tests.support.judging import check_function


def used_only(n: int, _stride: int, size_bytes: int) -> int:
    """Count sectors as if the used bytes were contiguous."""
    return math.ceil(n * size_bytes / 32)


def whole_span(n: int, stride: int, size_bytes: int) -> int:
    """Count all sectors from the first element to the last."""
    return math.ceil(n * stride * size_bytes / 32)


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (sectors, ""),
        (used_only, "only-what-is-used"),
        (whole_span, "the-whole-span"),
        (lambda n, _stride, _size: n, "one-for-each"),
        (lambda n, s, b: len({k * s * b // 128 for k in range(n)}), "cache-lines"),
        (lambda n, s, _: len({k * s // 32 for k in range(n)}), "elements-are-no-bytes"),
        (lambda n, stride, _size: n * stride, "unexplained"),
    ],
)
def test_each_function_gets_its_verdict(function: Callable[..., object], code: str) -> None:
    """A right function gets no code, and a wrong one gets the code of its mistake."""
    check_function(exercise("12.sectors"), function, code, "")


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
    plain |= {"12.shifted-view": (1.0, 1.2)}
    for claim in CLAIMS:
        yes, no = plain.get(claim.claim_id, (20.0, 1.0))
        assert (claim.holds(yes), claim.holds(no)) == (True, False), claim.claim_id
