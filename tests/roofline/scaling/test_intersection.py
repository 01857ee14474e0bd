"""Intersections of curves: exact for straight lines, with a reason where there is none."""

import math

import numpy as np
import pytest

from gpulab.roofline.scaling import Crossing
from gpulab.roofline.scaling._intersection import find_crossing, size_text

SIZES = (64, 128, 256, 512)


def found(*ratio: float, reach: float = 0.1) -> Crossing:
    """Return the crossing of log ratios GPU over CPU, all with the same interval."""
    values = np.array(ratio)
    return find_crossing(SIZES[: len(ratio)], values, np.full((2, len(ratio)), reach))


def test_the_crossing_is_interpolated() -> None:
    """The crossing and its ends are interpolated in both logarithms."""
    crossing = found(3.0, 1.0, -1.0, -3.0, reach=0.5)
    assert crossing.kind == "once"
    assert crossing.size == pytest.approx(128 * math.sqrt(2))
    assert crossing.low == pytest.approx(128 * 2**0.25)
    assert crossing.high == pytest.approx(128 * 2**0.75)
    assert str(crossing) == "n = 181 [152, 215]"


def test_the_interval_takes_the_reach_of_each_side() -> None:
    """The low end uses the lower reach, the high end the upper."""
    reach = np.array([[0.0, 0.0], [0.5, 0.5]])
    crossing = find_crossing((64, 128), np.array([1.0, -1.0]), reach)
    assert crossing.low == pytest.approx(crossing.size)
    assert crossing.high == pytest.approx(64 * 2**0.75)


def test_a_crossing_at_a_size_is_that_size() -> None:
    """Equal times at a size put the crossing at that size."""
    assert found(2.0, 0.0, -2.0).size == pytest.approx(128)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        ((-1, -2, -3), "no crossing: the GPU is faster at every size measured (from 64)"),
        ((3, 2, 1, 2), "no crossing: the GPU is slower at every size up to 512"),
        ((1, -1, 1, -1), "crosses more than once: at n = 90.5, 181, 362"),
        ((-1, -1, 1), "the other way round: the GPU is faster below n = 181 [175, 187] only"),
        (
            (0.05, -0.05, 0.02),
            "not decided from 64 to 256: the intervals overlap everywhere",
        ),
        ((0.05,), "not decided from 64 to 64: the intervals overlap everywhere"),
        ((1,), "no crossing: the GPU is slower at every size up to 64"),
    ],
)
def test_no_crossing_has_its_reason(ratio: tuple[float, ...], text: str) -> None:
    """Without a crossing, the text says which side is faster and for which sizes."""
    crossing = found(*ratio)
    assert str(crossing) == crossing.reason == text


def test_noise_does_not_cross() -> None:
    """Sign changes within overlapping intervals are no crossings, but widen the interval."""
    crossing = found(2.0, 0.05, -0.05, -2.0)
    assert crossing.kind == "once"
    assert 64 < (crossing.low or 0) < 128
    assert 256 < (crossing.high or 0) < 512
    flicker = found(2.0, -0.05, 0.05, -2.0)
    assert flicker.kind == "once"
    assert flicker.size == pytest.approx(128 * math.sqrt(2), rel=0.01)


def test_an_end_that_is_not_decided_leaves_the_interval_open() -> None:
    """If an end is undecided but the estimate crosses there, the interval is open."""
    early, late = found(0.05, -1, -2), found(2, 1, -0.05)
    assert (early.low, late.high) == (0.0, math.inf)
    assert str(early) == "n = 66.1 [below 64, 69.1]".replace("69.1", size_text(early.high or 0))
    assert str(late).endswith(", above 256]")


def test_an_end_that_is_not_decided_but_leans_the_same_way_changes_nothing() -> None:
    """An undecided end on the same side as its neighbours is no crossing."""
    assert found(-0.05, -1, -2).kind == "always"
    assert found(2, 1, 0.05).kind == "never"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (64, "64"),
        (2**13, "8,192"),
        (2**26, "2^26"),
        (32, "32"),
        (212.4, "212"),
        (123_456.7, "123,000"),
        (65, "65"),
    ],
)
def test_sizes_are_short(size: float, text: str) -> None:
    """Powers of two from 64 on are written as powers, other sizes with three digits."""
    assert size_text(size) == text
