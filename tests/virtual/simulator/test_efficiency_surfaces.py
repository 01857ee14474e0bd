"""A surface gives corrections at its points, between them and beyond them."""

import json
from importlib.resources import files
from itertools import pairwise
from math import exp

import numpy as np
import pytest

from benchmarks.fidelity.fit import packed
from gpulab.gpus import gpu
from gpulab.virtual import KernelWork, Traffic, duration_ns
from gpulab.virtual.simulator.costs._efficiency_surfaces import (
    NO_CORRECTION,
    Correction,
    EfficiencySurface,
    SurfacePoint,
    correction,
    nearness,
    unpacked,
)

H200 = gpu("H200")
HOT, COLD = Traffic(1 << 20, 0), Traffic(0, 1 << 20)


def surface(*, scale: float = 1.0) -> EfficiencySurface:
    """Return a surface of two distant points, at 0 with the word "a" and at 10 with "b"."""
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


def test_nearness_is_a_weighted_sum_of_kernels() -> None:
    """With two rows of scales, nearness is the sum of both kernels with their shares."""
    apart = np.array([[1.0, 0.0], [0.0, 1.0]])
    found = nearness(apart, np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.25, 0.75]))
    assert found == pytest.approx([0.25 * 2 * exp(-1) + 0.75, 0.25 + 0.75 * 3 * exp(-2)])


def test_at_a_point_its_weight_is_added_to_the_middle() -> None:
    """At a point the middle plus its weight is returned, limited to the least value."""
    assert surface().logarithms((10.0, "b")) == pytest.approx([-0.3, -0.05])


def test_a_prediction_stays_within_what_was_measured() -> None:
    """A logarithm above all measured ones is limited to the largest of them."""
    assert surface().logarithms((0.0, "a")) == pytest.approx([0.55, 0.45])


def test_an_unknown_word_falls_back_to_the_median() -> None:
    """A call with an unmeasured operator gets the surface's middle value."""
    assert surface().logarithms((0.0, "new")) == pytest.approx([0.1, 0.2])


def test_beyond_the_measured_sizes_the_last_one_counts() -> None:
    """A size beyond the measured range gets the value at the end of the range."""
    assert surface().logarithms((99.0, "b")) == pytest.approx(surface().logarithms((10.0, "b")))


def test_between_two_sizes_it_changes_smoothly() -> None:
    """A hundredth of a doubling of the size changes the logarithm by less than 0.01."""
    smooth = surface(scale=0.1)
    steps = [smooth.logarithms((n / 100, "a"))[1] for n in range(100)]
    assert max(abs(b - a) for a, b in pairwise(steps)) < 0.01


def test_what_was_not_measured_is_not_corrected() -> None:
    """A kernel without coordinates, or on an unknown surface, has a correction of 1."""
    assert correction(None) == NO_CORRECTION == Correction(1.0, 1.0)
    assert correction(SurfacePoint("of nothing", (1.0,))) == NO_CORRECTION


def test_the_correction_lies_between_hot_and_cold_by_the_bytes_missed() -> None:
    """The correction is the mean of hot and cold, weighted by the bytes that miss the cache."""
    point = SurfacePoint("likelihood", (8.0, 10.0))
    factors = correction(point)
    plain, placed = KernelWork("reduction"), KernelWork("reduction", surface_point=point)
    for traffic, factor in ((HOT, factors.hot), (COLD, factors.cold)):
        expected = duration_ns(plain, traffic, H200) * factor
        assert duration_ns(placed, traffic, H200) == pytest.approx(expected, abs=1)
    half = Traffic(1 << 19, 1 << 19)
    expected = duration_ns(plain, half, H200) * (factors.hot + factors.cold) / 2
    assert duration_ns(placed, half, H200) == pytest.approx(expected, abs=1)


def test_a_packed_table_can_be_unpacked() -> None:
    """A packed table is unpacked with the same numbers, up to two thousand millions."""
    table = np.array([[1.0, -2.0, 3.0], [0.0, 2_000_000_000.0, -7.0]])
    assert unpacked(packed(table), 3).tolist() == table.tolist()


def test_every_shipped_surface_can_be_read() -> None:
    """The tables of every shipped surface have sizes that fit together."""
    kept = json.loads(files("gpulab").joinpath("data/efficiencies.json").read_text("utf-8"))
    for name, item in kept["surfaces"].items():
        n = len(item["used"])
        assert {n, len(item["words"])} == {n, *(len(row) for row in item["scales"])}, name
        assert len(item["shares"]) == len(item["scales"]), name
        assert sum(item["shares"]) == pytest.approx(1, abs=1e-3), name
        assert unpacked(item["rows"], n + 2).shape[1] == n + 2, name
        assert all(low < high for low, high in zip(item["least"], item["most"], strict=True))
