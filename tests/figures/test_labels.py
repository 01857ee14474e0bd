"""Names at points and lines cover no point and no other text, in figures and in explorers."""

from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

from gpulab import plots, recordings, roofline
from gpulab.explorers import crossover_explorer, roofline_explorer
from gpulab.figures import Figure, name_point, place_labels
from tests.support.overprints import far_names, overprints

RECORDED = "h200-sxm-2026-11"


def _pictures() -> Iterator[Callable[[], Figure]]:
    """Yield makers of figures whose names are near many points."""
    views = ("prediction against measurement", "roofline")
    for view in views:
        yield lambda view=view: roofline_explorer(view=view, model="plain").figure()
    yield lambda: roofline_explorer(view="roofline", beside="computed:T4").figure()
    yield lambda: crossover_explorer(transfers="both").figure()
    yield _chart
    yield lambda: _chart(names=False)  # names at lines only
    yield _gaps
    yield _line


def _chart(*, names: bool = True) -> Figure:
    recorded = recordings.load(RECORDED)
    return plots.roofline(roofline.chart(recorded, roofline.ceilings_of(recorded)), names=names)


def _gaps() -> Figure:
    recorded = recordings.load(RECORDED)
    return plots.gaps(roofline.table(recorded.points))


def _line() -> Figure:
    frame = pd.DataFrame({"n": [1, 2, 4], "a_us": [3.0, 5.0, 9.0], "b_us": [3.0, 5.1, 9.1]})
    return plots.line(frame, log="xy", source="virtual")


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
