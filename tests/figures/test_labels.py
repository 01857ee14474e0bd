"""Names at points and lines cover no point and no other text, in figures and in explorers."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas

from gpulab import plots, recordings, roofline
from gpulab.figures import Figure, name_line, name_point
from gpulab.figures._labels import place_labels
from gpulab.views.explorers import crossover_explorer, roofline_explorer
from tests.support.overprints import far_names, overprints


def _pictures() -> Iterator[Callable[[], Figure]]:
    """Yield makers of figures whose names are near many points."""
    measured = "prediction against measurement"
    yield lambda: roofline_explorer(view=measured, model="plain").figure()
    few = ("matmul", "softmax", "add")  # and roofs so near that their names move apart
    yield lambda: roofline_explorer(
        view="roofline", beside="computed:A100", cache="hot", operations=few
    ).figure()
    yield lambda: crossover_explorer(transfers="both").figure()
    yield _chart


def _chart() -> Figure:
    recorded = recordings.load("h200-sxm-2026-11")
    return plots.roofline(roofline.chart(recorded, roofline.ceilings_of(recorded)))


@pytest.mark.slow
def test_every_text_is_readable_and_near_what_it_names() -> None:
    """No text shares a pixel with a point or a text, and each name is nearest to its own line."""
    found: dict[str, list[str]] = {}
    for picture in _pictures():
        figure = picture()
        assert figure.png  # the labels are placed when the figure is drawn
        faults = [*overprints(figure.canvas), *far_names(figure.canvas)]
        found.setdefault(figure.title, []).extend(faults)
    assert {title: texts for title, texts in found.items() if texts} == {}


@pytest.mark.slow
@pytest.mark.parametrize("beside", ["", "computed:A100"])
def test_a_roof_has_its_name_at_its_right_end(beside: str) -> None:
    """The text has the roof's height, its line leads there, and the arrows end at the slopes."""
    figure = roofline_explorer(view="roofline", beside=beside, cache="hot").figure()
    assert figure.png
    (ax,) = figure.canvas.axes
    named = {text.get_text(): text for text in ax.texts if text.get_visible()}
    ends = [name for name in named if "TFLOP/s" in name]
    assert ends
    for name in ends:
        peak = float(name.split("\n")[1].split()[-2].replace(",", ""))
        assert named[name].xy[1] == pytest.approx(peak, rel=0.01)  # type: ignore[attr-defined]  # annotations have it
    for name, slope in (("memory, 4.27 to 4.80 TB/s", 4.8), ("L2, 6.71 TB/s", 6.71)):
        x, y = named[name].xy  # type: ignore[attr-defined]  # annotations have it
        assert y / x == pytest.approx(slope, rel=0.01)


def test_a_name_without_room_is_left_out() -> None:
    """Among many points a name that would cover one of them is not drawn; a free one is."""
    ax = Canvas().add_subplot()
    near = [(x / 60, y / 60) for x in range(60) for y in range(40)]
    ax.plot(*zip(*near, strict=True), "o")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    hidden, shown = name_point(ax, "hidden", (0.5, 0.3)), name_point(ax, "shown", (0.5, 0.65))
    place_labels(ax)
    assert (hidden.get_visible(), shown.get_visible()) == (False, True)


def test_names_of_lines_that_end_together_are_moved_apart() -> None:
    """Names that were written at one height stand one above the other when they are placed."""
    ax = Canvas().add_subplot()
    for text in ("tf32", "float32"):
        (line,) = ax.plot([1, 2], [3, 3])
        name_line(ax, line, text)
    place_labels(ax)
    assert ax.texts[1].xyann[1] - ax.texts[0].xyann[1] > 0.03  # type: ignore[attr-defined]  # annotations have it


def test_a_line_leads_to_a_point_whose_name_is_away_from_it() -> None:
    """A name beside its point has no line; one that had to move is joined to its point."""
    ax = Canvas(layout="constrained").add_subplot()
    ax.plot([1, 2], [1, 2], "o")
    beside = name_point(ax, "add", (1, 1))
    # A square of points leaves no room beside the one in its middle.
    square = [(1.7 + 0.024 * x, 1.3 + 0.033 * y) for x in (-1, 0, 1) for y in (-1, 0, 1)]
    ax.plot(*np.transpose(square), "s")
    moved = name_point(ax, "exp", square[4])
    place_labels(ax)
    assert beside.arrow_patch is not None
    assert moved.arrow_patch is not None
    assert moved.get_visible()
    assert [each.arrow_patch.get_visible() for each in (beside, moved)] == [False, True]
