"""Corrections by size: on a surface's points, between them and beyond them."""

import json
from importlib.resources import files
from itertools import pairwise
from math import exp

import numpy as np
import pytest

from gpulab.gpus import gpu
from gpulab.virtual import KernelWork, Traffic, duration_ns
from gpulab.virtual.simulator.costs._efficiency_surfaces import (
    NO_CORRECTION,
    Correction,
    EfficiencySurface,
    SurfacePoint,
    correction,
    difference,
    nearness,
    packed,
    unpacked,
)

H200 = gpu("H200")
HOT, COLD = Traffic(1 << 20, 0), Traffic(0, 1 << 20)


def surface(*, scale: float = 1.0) -> EfficiencySurface:
    """Return two points a long way apart, at 0 and 10, of the words "a" and "b"."""
    return EfficiencySurface(
        used=(0, 1),
        words=(None, {"a": 0, "b": 1}),
        scales=np.array([[scale, 100.0]]),
        shares=np.array([1.0]),
        points=np.array([[0.0, 0.0], [10.0, 1.0]]),
        weights=np.array([[0.5, 0.25], [-0.5, -0.25]]),
        middle=np.array([0.1, 0.2]),
        least=np.array([-0.3, -0.3]),
        most=np.array([0.55, 0.5]),
    )


def test_words_are_the_same_or_one_apart() -> None:
    """Numbers differ by what lies between them, whichever is larger."""
    points = np.array([[0.0, 3.0], [2.0, 3.0], [-1.5, 5.0]])
    found = difference(np.array([0.0, 3.0]), points, np.array([False, True]))
    assert found.tolist() == [[0, 0], [2, 0], [1.5, 1]]


def test_a_place_is_nearest_to_itself() -> None:
    """1 at the point, (1 + d) exp(-d) at a distance."""
    apart = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0], [8.0, 3.0]])
    found = nearness(apart, np.array([[0.5, 2.0]]), np.array([1.0]))
    assert found == pytest.approx([1.0, 2 * exp(-1), 3 * exp(-2), (1 + 52**0.5) * exp(-(52**0.5))])


def test_points_may_be_near_in_several_ways() -> None:
    """Here a quarter for the first coordinate alone, and the rest for the second alone."""
    apart = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = nearness(apart, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.25, 0.75]))
    assert found == pytest.approx([0.25 * 2 * exp(-1) + 0.75, 0.25 + 0.75 * 3 * exp(-2)])


def test_near_a_point_its_weight_counts() -> None:
    """At the second point the median less a half, bounded below by what was measured."""
    assert surface().logarithms((10.0, "b")) == pytest.approx([-0.3, -0.05])


def test_a_prediction_stays_within_what_was_measured() -> None:
    """At the first point 0.1 + 0.5 is more than any measured logarithm."""
    assert surface().logarithms((0.0, "a")) == pytest.approx([0.55, 0.45])


def test_an_unknown_word_falls_back_to_the_median() -> None:
    """Nothing that was measured is near an operator that was not."""
    assert surface().logarithms((0.0, "new")) == pytest.approx([0.1, 0.2])


def test_beyond_the_measured_sizes_the_last_one_counts() -> None:
    """A number is held at the end of its range."""
    assert surface().logarithms((99.0, "b")) == pytest.approx(surface().logarithms((10.0, "b")))


def test_between_two_sizes_it_changes_smoothly() -> None:
    """A hundredth of a doubling moves the logarithm by less than a hundredth."""
    smooth = surface(scale=0.1)
    steps = [smooth.logarithms((n / 100, "a"))[1] for n in range(100)]
    assert max(abs(b - a) for a, b in pairwise(steps)) < 0.01


def test_what_was_not_measured_is_not_corrected() -> None:
    """A kernel without coordinates, or on an unknown surface, is not corrected."""
    assert correction(None) == NO_CORRECTION == Correction(1.0, 1.0)
    assert correction(SurfacePoint("of nothing", (1.0,))) == NO_CORRECTION


def test_the_correction_lies_between_hot_and_cold_by_the_bytes_missed() -> None:
    """A sum with everything in the cache, nothing in it, and half."""
    point = SurfacePoint("likelihood", (8.0, 10.0))
    factors = correction(point)
    plain, placed = KernelWork("reduction"), KernelWork("reduction", surface_point=point)
    for traffic, factor in ((HOT, factors.hot), (COLD, factors.cold)):
        expected = duration_ns(plain, traffic, H200) * factor
        assert duration_ns(placed, traffic, H200) == pytest.approx(expected, abs=1)
    half = Traffic(1 << 19, 1 << 19)
    expected = duration_ns(plain, half, H200) * (factors.hot + factors.cold) / 2
    assert duration_ns(placed, half, H200) == pytest.approx(expected, abs=1)


def test_a_table_comes_back_from_its_text() -> None:
    """Row by row, with its sign, up to two thousand millions."""
    table = np.array([[1.0, -2.0, 3.0], [0.0, 2_000_000_000.0, -7.0]])
    assert unpacked(packed(table), 3).tolist() == table.tolist()


def test_every_shipped_surface_can_be_read() -> None:
    """As many scales and words as coordinates, and as many shares as rows of scales."""
    kept = json.loads(files("gpulab").joinpath("data/efficiencies.json").read_text("utf-8"))
    for name, item in kept["surfaces"].items():
        n = len(item["used"])
        assert {n, len(item["words"])} == {n, *(len(row) for row in item["scales"])}, name
        assert len(item["shares"]) == len(item["scales"]), name
        assert sum(item["shares"]) == pytest.approx(1, abs=1e-3), name
        assert unpacked(item["rows"], n + 2).shape[1] == n + 2, name
        assert all(low < high for low, high in zip(item["least"], item["most"], strict=True))
