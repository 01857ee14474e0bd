"""The roofline's figures draw roofs and points correctly, read back from their artists."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab import roofline
from gpulab.core.errors import InvalidOptionError
from gpulab.gpus import Roof
from gpulab.views.plots import _roofline, gaps
from gpulab.views.plots import roofline as figure
from gpulab.workloads.sweeps import Point, Task

H200 = "NVIDIA H200"
pytestmark = pytest.mark.usefixtures("no_pixels")

SHEET = Roof("data sheet", {"float32": 60e12, "tf32": 480e12}, 4.8e12)
MEASURED = Roof("measured", {"float32": 50e12, "tf32": 400e12}, 4e12, 8e12, 2e-6)
LIVE = Roof("live clocks", {"float32": 30e12, "tf32": 240e12}, 4.8e12)


def point(name: str, size: int, median_s: float) -> Point:
    """Return a point of a virtual H200."""
    return Point(
        Task(name, size),
        median_s=median_s,
        low_s=median_s,
        high_s=median_s,
        n_samples=1,
        source="virtual",
        device_name=H200,
    )


POINTS = (
    point("add", 1 << 10, 2e-6),
    point("add", 1 << 26, 2e-4),
    point("matmul", 4096, 3e-3),
    point("conv3x3", 64, 1e-4),
    point("copy", 1 << 26, 2e-4),
)


def chart(*roofs: Roof, points: tuple[Point, ...] = POINTS) -> roofline.Chart:
    """Return a chart of the points with these roofs."""
    return roofline.chart(points, roofline.Ceilings(H200, "virtual", roofs))


@pytest.fixture
def ax() -> Axes:
    """Return empty axes."""
    return Canvas().add_subplot()


def line(ax: Axes, label: str) -> Any:  # noqa: ANN401 # an artist
    """Return the line with this label."""
    return next(item for item in ax.get_lines() if item.get_label() == label)


def slope(ax: Axes, name: str) -> Any:  # noqa: ANN401 # an artist
    """Return the line that has this name written along it."""
    assert name in [text.get_text() for text in ax.texts]
    return next(item for item in ax.get_lines() if item.get_gid() == name)


def test_one_roof_is_drawn_with_a_band_for_all_evidence(ax: Axes) -> None:
    """The line is the highest roof with its ridge, and the band reaches to the lowest."""
    figure(chart(SHEET, LIVE, MEASURED), ax)
    x, y = slope(ax, "memory, 4.00 to 4.80 TB/s").get_data()
    assert {roof.ridge("tf32") for roof in (SHEET, LIVE, MEASURED)} <= set(x)
    assert y[0] == pytest.approx(x[0] * SHEET.bandwidth_bytes_per_s / 1e12, rel=1e-12)
    assert y[-1] == SHEET.peak("tf32") / 1e12
    band = ax.collections[0].get_paths()[0].vertices
    at_the_end = band[band[:, 0] == x[-1]][:, 1]
    assert {round(value) for value in at_the_end} == {240, 480}
    texts = [text.get_text() for text in ax.texts]
    assert "tf32\n240 to 480 TFLOP/s" in texts
    assert "memory, 4.00 to 4.80 TB/s" in texts


def test_a_type_of_a_lower_peak_branches_off_the_slope(ax: Axes) -> None:
    """Float32 shares the memory slope with TF32, and has its own, lower peak."""
    figure(chart(SHEET), ax)
    branch = ax.get_lines()[1].get_data()
    assert branch[0][0] == SHEET.ridge("float32")
    assert list(branch[1]) == [60, 60]


def test_cache_and_floor_are_slopes_of_the_measured_roof(ax: Axes) -> None:
    """The L2 and the floor are slopes; that of the floor is the smallest bytes over its time."""
    figure(chart(SHEET, MEASURED), ax)
    x, y = slope(ax, "L2, 8.00 TB/s").get_data()
    assert y[0] / x[0] == pytest.approx(8, rel=1e-12)
    assert y[-1] == pytest.approx(400)  # no slope goes beyond the highest peak
    x, y = slope(ax, "floor of 2.00 µs for 12.0 KiB").get_data()
    assert y[0] / x[0] == pytest.approx(12 * 1024 / 2e-6 / 1e12, rel=1e-12)


def test_a_floor_shorter_than_the_bytes_take_is_left_out(ax: Axes) -> None:
    """If moving the smallest point's bytes takes longer than the floor, it is not drawn."""
    figure(chart(MEASURED, points=POINTS[1:]), ax)
    assert not [text for text in ax.texts if "floor" in text.get_text()]


def test_the_shape_of_a_point_shows_its_limit(ax: Axes) -> None:
    """A point is at its intensity and rate, and the legend fits into one row."""
    figure(chart(SHEET), ax)
    x, y = line(ax, "memory-bound").get_data()
    assert list(x) == [1 / 12]
    assert list(y) == pytest.approx([2**26 / 2e-4 / 1e12], rel=1e-12)
    assert list(line(ax, "launch-bound").get_xdata()) == [1 / 12]
    assert len(line(ax, "compute-bound").get_xdata()) == 2
    predicted = line(ax, "prediction")
    table = roofline.table(POINTS[:4])
    assert predicted.get_ydata() == pytest.approx(table["flops"] / table["refined_s"] / 1e12)
    # A line joins each point with its prediction.
    joined = [list(ends[:, 1]) for ends in ax.collections[-1].get_segments()]  # type: ignore[attr-defined]  # these have it
    reached = list(table["flops_per_s"] / 1e12)
    assert joined == [list(pair) for pair in zip(reached, predicted.get_ydata(), strict=True)]
    legend = ax.get_legend()
    assert legend is not None
    assert legend._ncols == len(legend.get_texts()) == 4  # type: ignore[attr-defined]  # no other way


def test_recorded_roofs_are_not_called_virtual() -> None:
    """The caption says "virtual" only for roofs of the virtual GPU, and has one line a thought."""
    said = []
    for source in ("recorded", "virtual"):
        points = [replace(each, source=source) for each in POINTS]
        roofs = roofline.Ceilings(H200, source, (SHEET, LIVE, MEASURED))
        said.append(figure(roofline.chart(points, roofs)).caption)
    assert [text.splitlines()[-1] for text in said] == [
        "Roofs: data sheet, live clocks, measured.",
        "Roofs: data sheet, live clocks, measured on the virtual GPU.",
    ]
    assert len(said[0].splitlines()) == 3


def names(ax: Axes) -> dict[str, float]:
    """Return the names at points, with their intensities."""
    roofs = ("float32", "tf32", "memory", "L2", "floor")
    named = (text for text in ax.texts if not text.get_text().startswith(roofs))
    return {text.get_text(): text.xy[0] for text in named}  # type: ignore[attr-defined] # annotations have it


def test_names_stand_at_the_largest_points(ax: Axes) -> None:
    """Each workload is named once, at its largest point, unless names are switched off."""
    figure(chart(SHEET, points=(*POINTS, point("matmul", 512, 1e-4))), ax)
    assert set(names(ax)) == {"add", "conv3x3", "matmul"}
    assert names(ax)["matmul"] == pytest.approx(4096 / 6, rel=1e-12)
    bare = Canvas().add_subplot()
    figure(chart(SHEET), bare, names=False)
    assert not names(bare)


def test_names_of_one_intensity_are_one_text(ax: Axes) -> None:
    """Workloads of the same intensity share one text, so that names do not overlap."""
    points = (point("exp", 1 << 20, 1e-5), point("gelu", 1 << 20, 1e-5))
    points += (point("dropout", 1 << 20, 1e-5),)
    figure(chart(SHEET, points=points), ax)
    assert sorted(names(ax)) == ["exp, dropout", "gelu"]


def test_work_without_flops_has_no_roofline(ax: Axes) -> None:
    """If no point has FLOPs, the roofline is refused, and the message says what to draw."""
    with pytest.raises(InvalidOptionError) as error:
        figure(chart(SHEET, points=POINTS[-1:]), ax)
    assert str(error.value) == (
        "none of the points computes anything, so none has an intensity; draw gaps() instead"
    )


def test_points_below_a_data_sheet_keep_their_source() -> None:
    """A data sheet has no source of its own, so the title has that of the points."""
    points = [replace(each, source="recorded") for each in POINTS]
    record = roofline.chart(points, roofline.Ceilings(H200, "", (SHEET,)))
    assert figure(record, title="Add").title == "Add (recorded on NVIDIA H200)"


def test_gaps_have_a_row_for_each_workload(ax: Axes) -> None:
    """Each workload has a row with the ratios to both predictions."""
    table = roofline.table(POINTS)
    gaps(table, ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [
        *("add", "matmul", "conv3x3", "copy"),
    ]
    x, y = line(ax, "over the plain prediction").get_data()
    assert list(x) == list(table["plain_ratio"])
    assert list(np.round(y)) == [0, 0, 1, 2, 3]
    assert list(line(ax, "over the refined prediction").get_xdata()) == list(
        table["refined_ratio"]
    )


def test_gaps_of_nothing_are_refused(ax: Axes) -> None:
    """An empty table is refused."""
    with pytest.raises(InvalidOptionError, match=r"^the frame has no rows"):
        gaps(roofline.table([]), ax)


def test_names_of_one_place_fit_into_the_picture() -> None:
    """A text has at most three names and the number of the others."""
    assert _roofline._some(["add", "exp", "sum"]) == "add, exp, sum"
    assert _roofline._some(["add", "exp", "sum", "sort", "fft"]) == "add, exp, sum +2"


def test_titles_say_what_was_reached_and_how_far_the_models_are_right() -> None:
    """The best point has its share of the highest peak; gaps count what is within a quarter."""
    best = point("matmul", 1024, 2 * 1024**3 / 30e12)
    shown = figure(chart(SHEET, LIVE, points=(best,)))
    assert shown.title.startswith(
        "The most is reached by matmul at 1,024: 30 TFLOP/s, 50 % of the peak"
    )
    assert shown.caption.startswith("1 point of 1 operation, from 30 to 30 TFLOP/s.")
    frame = pd.DataFrame(
        {"workload": ["a", "b"], "plain_ratio": [3.0, 9.0], "refined_ratio": [0.8, 1.3]}
    )
    assert gaps(frame, source="virtual").title == (
        "The refined model is right within a quarter for 1 of 2, the plain one for 0 (virtual)"
    )


def test_nearest_and_farthest_are_told_by_the_factor() -> None:
    """A point at a tenth of its prediction is farther from it than one at twice."""
    ratios = {2048: 0.1, 4096: 1.1, 8192: 2.0}
    points = (point("matmul", size, 1e-3) for size in ratios)
    predicted_s = chart(SHEET, points=tuple(points)).table.set_index("size")["refined_s"]
    points = (point("matmul", size, ratio * predicted_s[size]) for size, ratio in ratios.items())
    text = str(figure(chart(SHEET, points=tuple(points))))
    assert "matmul at 4,096, 1.10 times" in text
    assert "farthest: matmul at 2,048, 0.1 times" in text
