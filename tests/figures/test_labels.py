"""Names at points and lines cover no point and no other text, in figures and in explorers."""

from collections.abc import Callable, Iterator

import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

from gpulab import plots, recordings, roofline
from gpulab.explorers import crossover_explorer, roofline_explorer
from gpulab.figures import Figure, name_point, place_labels
from tests.support.overprints import overprints

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
def test_no_text_covers_a_point_or_another_text() -> None:
    """On the rendered picture no text shares a pixel with a point or with another text."""
    found: dict[str, list[str]] = {}
    for picture in _pictures():
        figure = picture()
        assert figure.png  # the labels are placed when the figure is drawn
        found.setdefault(figure.title, []).extend(overprints(figure.canvas))
    assert {title: texts for title, texts in found.items() if texts} == {}


def test_a_name_without_room_is_left_out() -> None:
    """Among many points a name that would cover one of them is not drawn; a free one is."""
    ax = Canvas().add_subplot()
    near = [(x / 60, y / 60) for x in range(60) for y in range(40)]
    ax.plot(*zip(*near, strict=True), "o")
    ax.set(xlim=(0, 1), ylim=(0, 1))
    hidden, shown = name_point(ax, "hidden", (0.5, 0.3)), name_point(ax, "shown", (0.5, 0.65))
    place_labels(ax)
    assert (hidden.get_visible(), shown.get_visible()) == (False, True)
