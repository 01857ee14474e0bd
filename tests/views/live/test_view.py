"""A page draws the points, lines, intervals and texts of a figure, in its units."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from gpulab import plots
from gpulab.gpus.provenance import device_label
from gpulab.views.live._view import view_of_figure, view_of_trace
from tests.views.live.test_figure import BLIND, TRACE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RISING = pd.DataFrame(
    {
        "size": [4, 8, 4, 8],
        "duration_s": [2e-6, 8e-6, 3e-6, 90e-6],
        "series": ["add", "add", "sort", "sort"],
        "source": "virtual",
        "device_name": "NVIDIA H200",
    }
)
ROWS = ("context", "first matmul")


def rows(record: list[float], ax: "Axes") -> "Axes":
    """Draw a record in rows, with a limit, intervals and texts."""
    ax.hlines([0, 1], 0, record)
    ax.errorbar(record, [0, 1], xerr=0.5, capsize=4, linestyle="none", marker="o", label="first")
    ax.axvline(7, label="limit")
    ax.axhline(0.5)
    ax.annotate("the longest", (record[0], 0), (8, 0), textcoords="offset points")
    ax.set_yticks([0, 1], ROWS)
    ax.set_ylim(1.5, -0.5)
    ax.set_xlabel("time per call (µs)")
    return ax


def panel_of(*arguments: Any) -> dict[str, Any]:  # noqa: ANN401  # of plots.draw
    """Return the only panel of a page."""
    source = None if isinstance(arguments[-1], pd.DataFrame) else "virtual"
    figure = plots.draw(*arguments, title="Rising", alt="It rises.", source=source)
    view = view_of_figure(figure, "1 of 2")
    assert view["title"].startswith("Rising (virtual")
    assert view["note"] == "1 of 2"
    (panel,) = view["panels"]
    made: dict[str, Any] = panel
    return made


def test_curves_have_the_points_of_the_figure() -> None:
    """Each series is a curve with its name, its own points, and signs of their source."""
    panel = panel_of(plots.scaling, RISING)
    for curve, (name, part) in zip(panel["curves"], RISING.groupby("series"), strict=True):
        assert (curve["name"], curve["line"], curve["dots"]) == (name, "dashed", "filled")
        assert np.allclose(curve["points"], part[["size", "duration_s"]] * [1, 1e6])
        assert curve["colour"].startswith("light-dark(#")


def test_a_logarithmic_axis_spans_whole_decades() -> None:
    """An axis does not move with each new result, and one point has a decade around it."""
    panel = panel_of(plots.scaling, RISING)
    assert [panel[axis]["span"] for axis in "xy"] == [[1, 10], [1, 100]]
    assert [panel[axis]["is_log"] for axis in "xy"] == [True, True]
    assert panel["y"]["label"] == "time per call (µs)"
    assert panel_of(plots.scaling, RISING[:1])["y"]["span"] == [1, 10]


def test_rows_are_counted_downward() -> None:
    """The names of rows, their points, intervals, texts and limits agree on the places."""
    panel = panel_of(rows, [9.0, 2.0])
    assert panel["y"]["ticks"] == [[0, "context"], [-1, "first matmul"]]
    assert panel["y"]["span"] == [-1.5, 0.5]
    (curve,) = panel["curves"]
    assert (curve["points"], curve["line"]) == ([[9, 0], [2, -1]], "")
    assert panel["texts"] == [{"at": [9, 0], "text": "the longest"}]
    ends = [(each["from"], each["to"]) for each in panel["intervals"]]
    lines = [([0, 0], [9, 0]), ([0, -1], [2, -1])]
    assert ends == [*lines, ([8.5, 0], [9.5, 0]), ([1.5, -1], [2.5, -1])]
    limits = [(rule["axis"], rule["value"], rule["name"]) for rule in panel["rules"]]
    assert limits == [("x", 7, "limit"), ("y", -0.5, "")]
    assert panel["x"]["span"] == [0, pytest.approx(1.15 * 9.5)]


def test_a_load_has_two_panels() -> None:
    """Clock and power begin at zero, with their limits; without readings they are empty."""
    view = view_of_trace(TRACE, "0.2 of 2 s", title="A load")
    clock, power = view["panels"]
    assert view["title"] == f"A load ({device_label('NVIDIA H200', 'measured')})"
    assert np.allclose(clock["curves"][0]["points"], [[0, 1980], [0.1, 1455], [0.2, 1440]])
    assert [panel["rules"][0]["value"] for panel in (clock, power)] == [1980, 700]
    assert [panel["y"]["span"][0] for panel in (clock, power)] == [0, 0]
    assert clock["x"]["span"] == [0, 1]
    empty = view_of_trace(BLIND, "", title="A load")["panels"][0]
    assert (empty["curves"][0]["points"], empty["rules"], empty["y"]["span"]) == ([], [], [0, 1])
