"""The lesson on crossovers: each mistake gets its diagnosis, and the numbers are right."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gpulab import exercises
from gpulab.exercises._api import exercise
from gpulab.exercises.answers import Quantities
from gpulab.exercises.lesson_09 import (
    causes,
    draw_crossings,
    draw_sides,
    n_needed,
    operations_needed,
)
from gpulab.exercises.lesson_09._figures import crossings_of
from gpulab.roofline.scaling import Crossover, crossover
from gpulab.workloads import workload
from gpulab.workloads.sweeps import Point, Task
from tests.support.judging import check_function, right_of

HOW_MANY = exercise("09.how-many")
READ_OFF = exercise("09.read-off").judge
LINKS = {"n_pcie3": "PCIe 3", "n_pcie5": "PCIe 5", "n_nvlink": "NVLink"}


def test_the_key_is_what_the_explorer_shows() -> None:
    """The explorer shows the sizes of the key, and the links have the explanation's rates."""
    from gpulab.roofline.scaling import LINKS as KNOWN
    from gpulab.views.explorers import crossover_explorer

    assert isinstance(READ_OFF, Quantities)
    explorer = crossover_explorer("matmul", transfers="both")
    for key, link in LINKS.items():
        explorer.choose(link=link)
        assert f"with transfers: n = {READ_OFF.right[key]:.0f} [" in str(explorer)
    assert 28 < KNOWN["NVLink"].bytes_per_s / KNOWN["PCIe 3"].bytes_per_s < 30
    assert READ_OFF.right["n_pcie3"] / READ_OFF.right["n_nvlink"] < 3


def test_the_wrong_sizes_are_those_of_the_recording() -> None:
    """The crossing of the fitted lines, and that without copies, come from what is shipped."""
    assert isinstance(READ_OFF, Quantities)
    sizes = {(key, diagnosis.code): size for key, size, diagnosis in READ_OFF.wrong}
    for key, link in LINKS.items():
        record = crossover("matmul", transfers="both", link=link, source="h200-sxm-2026-11")
        assert record.predicted is not None
        assert sizes[key, "from-the-lines"] == pytest.approx(record.predicted.size, rel=1e-3)
        assert sizes[key, "without-transfers"] == pytest.approx(
            record.bare_crossing.size, rel=1e-3
        )


def test_the_picture_of_both_sides_marks_where_they_meet() -> None:
    """The title names the size at which the curves meet, or the side that is always ahead."""

    def title(cpu_s: list[float]) -> str:
        return draw_sides([100, 10_000, 1_000_000], cpu_s, [1e-5, 1e-5, 1e-5]).title

    assert title([1e-6, 1e-4, 1e-2]).startswith("Up to about n = 1,000 the CPU is faster, then")
    assert title([1e-4, 1e-6, 1e-6]).startswith("Up to about n = 1,000 the GPU is faster, then")
    assert title([1e-6, 1e-4, 1e-6]).startswith("The curves cross 2 times")
    assert title([1e-6, 1e-6, 1e-6]).startswith("The CPU is faster at all of these sizes")
    assert title([1e-4, 1e-4, 1e-4]).startswith("The GPU is faster at all of these sizes")
    figure = draw_sides([100, 10_000, 1_000_000], [1e-6, 1e-4, 1e-2], [1e-5] * 3)
    (ax,) = figure.canvas.axes
    texts = [text.get_text() for text in ax.texts]
    assert texts[:3] == ["CPU faster", "GPU faster", "n = 1,000"]
    (ring,) = (line for line in ax.lines if line.get_markersize() == 12)
    assert ring.get_xydata() == pytest.approx(np.array([[1000, 10]]))


def test_a_faster_gpu_crosses_at_the_same_size() -> None:
    """Twice the rate moves n by half a percent; twice the fixed cost more than doubles it."""
    places = right_of("09.meeting-point")
    assert places["n"] == pytest.approx(12e-6 / (1 / 40e9 - 1 / 4e12) / 12)
    assert places["n_fast_gpu"] / places["n"] == pytest.approx(0.995, abs=1e-3)
    assert places["n_slow_launch"] / places["n"] == pytest.approx(26 / 12)
    at_crossing_us = 14 + places["n"] * 12 / 4e12 * 1e6
    assert at_crossing_us == pytest.approx(14.1, abs=0.05)


def test_the_diagnoses_of_the_addition_agree_with_its_readings() -> None:
    """The numbers in the diagnoses of the addition follow from the table of its readings."""
    table = exercises.readings("09.never-pays").set_index("elements")
    large, larger = table.loc[2**24], table.loc[2**26]
    assert (table["gpu_with_copies_s"] > table[["cpu_s", "gpu_s"]].min(axis=1)).all()
    assert 15e-6 / larger["gpu_with_copies_s"] == pytest.approx(1e-4, rel=0.2)
    assert larger["cpu_s"] / larger["gpu_s"] > 100
    assert larger["gpu_with_copies_s"] == pytest.approx(160e-3, rel=0.01)
    ratios = [row["gpu_with_copies_s"] / row["cpu_s"] for row in (large, larger)]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)
    for column in ("cpu_s", "gpu_s", "gpu_with_copies_s"):
        assert 3 < larger[column] / large[column] < 4.2


# How many operations must stay


@pytest.mark.parametrize(
    ("function", "code", "part"),
    [
        (
            lambda c, g, t: math.ceil(t / (c - g)) if c > g else None,
            "a-tie-is-not-faster",
            "1/128 s of transfers your function returned 2. With 2 operations both sides take",
        ),
        (
            lambda c, g, t: n_needed(c, g, t) if t > 1e-3 else 99,
            "unexplained",
            "Your function returned 99. One operation takes 60 µs on the CPU",
        ),
        (
            lambda c, g, t: int(t / (c - g)) + 1,
            "never-has-no-number",
            "12 µs on the GPU your function returned -6.",
        ),
        (
            lambda c, g, t: n_needed(c, g, t) or 1 / 0,
            "never-has-no-number",
            "12 µs on the GPU your function raised ZeroDivisionError.",
        ),
        (lambda _one, _two: 1, "raised", "Your function raised TypeError: "),
    ],
)
def test_cases_with_a_trap_decide_last(
    function: Callable[..., object], code: str, part: str
) -> None:
    """Without a known mistake, the message shows a case that is wrong, or one with a trap."""
    check_function(HOW_MANY, function, code, part)


# The figure of many crossings


def point(task: Task, size: int, time_s: float) -> Point:
    """Return a point whose interval is 10 % on both sides."""
    ends = {"low_s": 0.9 * time_s, "high_s": 1.1 * time_s}
    return Point(
        replace(task, size=size), median_s=time_s, n_samples=9, device_name="NVIDIA H200", **ends
    )


def made(name: str, cpu_us: float, *gpu_us: float, transfers: str = "none") -> Crossover:
    """Return a crossover of a CPU time that grows with the size and constant GPU times."""
    cpu, gpu = Task(name, 1, on="cpu"), Task(name, 1, method="synchronized", cache="hot")
    sizes = (64, 256, 1024)
    points = [point(cpu, size, cpu_us * 1e-6 * size / 64) for size in sizes]
    ways = ("none", "both")[: len(gpu_us)]
    for way, time_us in zip(ways, gpu_us, strict=True):
        points += [point(replace(gpu, transfers=way), size, time_us * 1e-6) for size in sizes]
    return crossover(name, source=points, transfers=transfers)


def test_crossings_are_given_in_bytes() -> None:
    """Sizes become bytes; an operation that never crosses is put at the end of the range."""
    records = [made("add", 10, 20), made("exp", 10, 1), made("sum", 10, 1e6)]
    table = crossings_of(records).set_index("operation")
    assert table.loc["add", "size_kib"] == pytest.approx(12 * 128 / 1024)
    low, size, high = table.loc["add", ["low_kib", "size_kib", "high_kib"]]
    assert low < size < high
    assert table.loc["exp", "size_kib"] == pytest.approx(8 * 64 / 1024)
    assert table.loc["sum", "size_kib"] == pytest.approx((4 * 1024 + 4) / 1024)
    assert list(table["kind"]) == ["once", "always", "never"]
    assert list(table["text"])[1:] == ["GPU faster at all sizes", "GPU faster at no size"]


def test_transfers_give_a_second_row() -> None:
    """An operation with transfers has a row without them and one with them."""
    table = crossings_of([made("add", 10, 20, 40, transfers="both")])
    assert list(table["series"]) == ["without transfers", "with transfers"]
    assert table["size_kib"].tolist() == pytest.approx([1.5, 3.0])


def test_the_title_names_the_first_and_the_last_crossing() -> None:
    """With two operations that cross, the title has the smallest and the largest size."""
    title = draw_crossings([made("add", 10, 20), made("exp", 10, 40)]).title
    assert title.startswith("The GPU gets ahead first in add (1.5 KiB), last in exp (2 KiB) (")
    large = draw_crossings([made("add", 10, 20), made("matmul", 10, 100)]).title
    assert "matmul (4,800 KiB)" in large
    alone = draw_crossings([made("add", 10, 20)]).title
    assert alone.startswith("Where the GPU gets ahead of the CPU (")


def crossing_often() -> Crossover:
    """Return two curves that cross at three sizes, because both have jumps."""
    cpu, gpu = Task("add", 1, on="cpu"), Task("add", 1, method="synchronized", cache="hot")
    sizes = (64, 256, 1024, 4096)
    sides = ((cpu, (1, 10, 10, 100)), (gpu, (5, 5, 50, 50)))
    points = [
        point(task, size, time_us * 1e-6)
        for task, times_us in sides
        for size, time_us in zip(sizes, times_us, strict=True)
    ]
    return crossover("add", source=points)


def test_three_crossings_have_three_marks() -> None:
    """A dotted line joins the marks, and the caption names all three crossings."""
    record = crossing_often()
    table = crossings_of([record])
    assert list(table["kind"]) == ["several"] * 3
    figure = draw_crossings([record])
    (ax,) = figure.canvas.axes
    joined, _ = (line for line in ax.lines if line.get_linestyle() == ":")
    assert list(joined.get_xdata()) == pytest.approx(list(table["size_kib"]))
    assert figure.caption.count("add without transfers: crosses more than once: at n = ") == 1


def test_the_causes_of_a_crossing() -> None:
    """The table has bytes, FLOPs per byte and the CPU's rate at each crossing, earliest first."""
    table = causes([made("exp", 10, 20), made("add", 10, 20)])
    assert list(table.index) == ["exp", "add"]
    assert table.loc["add", "crossing (KiB)"] == pytest.approx(1.5)
    assert table.loc["add", "CPU (GB/s)"] == pytest.approx(12 * 128 / 20e-6 / 1e9)
    work = workload("add")
    assert table.loc["add", "FLOP/byte"] == work.flops(128) / work.bytes(128, "float32")


def test_how_many_operations_are_needed_at_each_size() -> None:
    """The transfers' time is the difference of two GPU times; without a gain the number is NA."""
    table = operations_needed(made("add", 10, 20, 70, transfers="both"))
    assert list(table.index) == [64, 256, 1024]
    assert table["transfers_s"].tolist() == pytest.approx([50e-6] * 3)
    assert table["operations"].isna().tolist() == [True, False, False]
    assert table["operations"].dropna().tolist() == [3, 1]
