"""Lesson 12: sectors are counted byte by byte, and a listing that raises is described."""

import pytest

from gpulab.exercises import lesson_12 as lab
from gpulab.exercises.lesson_12._sectors import CASES, sectors


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
