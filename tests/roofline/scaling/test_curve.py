"""A curve has points of one device, and its line uses the quantity that fits better."""

from dataclasses import replace

import numpy as np
import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.roofline.scaling._curve import curve_of
from gpulab.workloads.sweeps import Point, Task

GPU = Task("matmul", 1, method="synchronized", cache="hot")
SIZES = (64, 128, 256, 512, 1024, 2048)
# A matmul of n by n float32 matrices moves three of them.
AMOUNTS = {"B": 3 * 4.0 * np.square(SIZES), "FLOP": 2.0 * np.power(SIZES, 3)}


def points(task: Task, unit: str) -> list[Point]:
    """Return points whose times grow with FLOPs or with bytes."""
    times_s = 1e-5 + 1e-12 * AMOUNTS[unit]
    return [
        Point(
            replace(task, size=size),
            median_s=time_s,
            low_s=time_s / 2,
            high_s=time_s * 2,
            n_samples=9,
            device_name="NVIDIA H200",
        )
        for size, time_s in zip(SIZES, times_s, strict=True)
    ]


@pytest.mark.parametrize("unit", ["B", "FLOP"])
def test_the_line_runs_over_what_the_times_grow_with(unit: str) -> None:
    """The line of a matmul uses FLOPs or bytes, whichever fits the points."""
    fit = curve_of(points(GPU, unit)).fit
    assert fit is not None
    assert (fit.unit, fit.worst) == (unit, pytest.approx(0, abs=1e-5))


def test_bytes_are_taken_where_both_fit() -> None:
    """If FLOPs and bytes fit equally, as for an addition, bytes are used."""
    made = [replace(point, task=replace(point.task, workload="add")) for point in points(GPU, "B")]
    fit = curve_of(made).fit
    assert fit is not None
    assert fit.unit == "B"


def test_points_are_put_in_order() -> None:
    """The curve is sorted by size, in whatever order points come."""
    assert curve_of(points(GPU, "B")[::-1]).sizes == SIZES


def test_logarithms_are_given_with_their_reach() -> None:
    """`at` returns log times with the reach to both sides, finite even for a low end of 0."""
    made = points(GPU, "B")
    made[0] = replace(made[0], low_s=0.0)
    middle, reach = curve_of(made).at([64, 256])
    assert middle == pytest.approx(np.log([made[0].median_s, made[2].median_s]))
    assert reach.tolist() == [
        pytest.approx([np.log(1e6), np.log(2)]),
        pytest.approx([np.log(2), np.log(2)]),
    ]


@pytest.mark.parametrize(
    ("change", "how"),
    [
        ({}, ""),
        ({"transfers": "both"}, "transfers both"),
        ({"method": "calibrated", "cache": "cold"}, "calibrated, cold"),
        ({"cache": "cold", "transfers": "in"}, "synchronized, cold, transfers in"),
        ({"on": "cpu", "n_threads": 4}, "4 threads"),
        ({"on": "cpu", "n_threads": 1}, "1 thread"),
        ({"on": "cpu"}, ""),
    ],
)
def test_unusual_options_are_in_the_name(change: dict[str, object], how: str) -> None:
    """The curve's name contains an unusual method, cache, transfers or threads."""
    curve = curve_of(points(replace(GPU, **change), "B"))
    assert curve.how == how
    assert curve.name.endswith(f"NVIDIA H200, measured{', ' + how if how else ''}")


def test_two_devices_make_no_curve() -> None:
    """Points of different devices, or of one device recorded and virtual, make no curve."""
    made = points(GPU, "B")
    made[0] = replace(made[0], source="virtual")
    with pytest.raises(InvalidOptionError) as error:
        curve_of(made)
    assert str(error.value) == (
        "the times of matmul float32 on the GPU come from several devices (NVIDIA H200, measured, "
        "virtual NVIDIA H200); keep the points of one of them"
    )


def test_no_time_at_all_is_refused_with_the_reason() -> None:
    """If no size could be timed, the error quotes the first reason."""
    failed = Point(replace(GPU, size=2**17), error="out of memory: needs 200 GiB")
    with pytest.raises(InvalidOptionError) as error:
        curve_of([failed])
    assert str(error.value) == (
        "no size of matmul float32 on the GPU could be timed: out of memory: needs 200 GiB; "
        "try other sizes"
    )
