"""What a page draws of a picture that grows; ``widgets/live/live.js`` draws it."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core import palette
from gpulab.core.foreign_text import visible
from gpulab.figures import MUTED, Figure, look_of
from gpulab.gpus.provenance import device_label
from gpulab.views.live._figure import PANELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.lines import Line2D

    from gpulab.views.live._records import Trace

_MOST_POINTS = 500  # of a curve; a page shows no more, and an hour would be sent at each frame
_HEADROOM = 1.15  # from zero to above the highest value: a clock that falls a little looks so
_CAPS = {"|", "_"}  # the markers that end an interval


def view_of_trace(record: "Trace", note: str, *, title: str) -> dict[str, Any]:
    """Return the view of a load: clock and power over time.

    It is made from the readings, so that a load does not wait until matplotlib has drawn.
    """
    readings = record.readings[:: math.ceil(len(record.readings) / _MOST_POINTS)]
    times_s = [reading.at_s - readings[0].at_s for reading in readings]
    colour = _themed(look_of("GPU").colour)
    # The axis doubles as the load goes on, so that a long one is not a line at the left border.
    doubled_s = 2.0 ** math.ceil(math.log2(max(times_s[-1], 1.0)))
    span_s = [0, max(times_s[-1], min(record.asked_s, doubled_s))]
    panels = []
    for panel in PANELS:
        values = [getattr(reading, panel.column) for reading in readings]
        points = [list(at) for at in zip(times_s, values, strict=True) if at[1] is not None]
        limit = getattr(readings[-1], panel.limit) if panel.limit else None
        rules = [] if limit is None else [_rule("y", limit, panel.limit_name, MUTED)]
        high = _HEADROOM * max([*(value for _, value in points), limit or 0.0]) or 1.0
        curve = {"name": "", "colour": colour, "line": "solid", "dots": "", "points": points}
        panels.append(
            {
                "x": {"label": "time (s)", "is_log": False, "span": span_s, "ticks": None},
                "y": {"label": panel.label, "is_log": False, "span": [0, high], "ticks": None},
                "curves": [curve],
                "rules": rules,
                "intervals": [],
                "texts": [],
            }
        )
    label = device_label(record.device_name, record.source)
    return {"title": visible(f"{title} ({label})"), "note": note, "panels": panels}


def view_of_figure(figure: Figure, note: str) -> dict[str, Any]:
    """Return the view of a figure: the lines, points, intervals and texts of its axes.

    Bars, fills and arrows are left out; the finished figure shows them.
    """
    panels = [_panel(ax) for ax in figure.picture.peek().axes]
    return {"title": figure.title, "note": note, "panels": panels}


def _panel(ax: "Axes") -> dict[str, Any]:
    from matplotlib.collections import LineCollection
    from matplotlib.text import Annotation

    # A page's axes go up and to the right, so rows that are counted downward get a minus.
    down = -1.0 if ax.yaxis_inverted() else 1.0
    curves, rules = [], []
    for line in ax.lines:
        across, up = line.get_transform().contains_branch_seperately(ax.transData)
        name = "" if str(line.get_label()).startswith("_") else visible(str(line.get_label()))
        x, y = (float(np.ravel(values)[0]) for values in (line.get_xdata(), line.get_ydata()))
        colour = line.get_color()
        if not up:
            rules.append(_rule("x", x, name, colour))
        elif not across:
            rules.append(_rule("y", down * y, name, colour))
        elif line.get_marker() not in _CAPS:
            curves.append(_curve(line, name, down))
    intervals = [
        {"from": [x1, down * y1], "to": [x2, down * y2], "colour": _themed(colour)}
        for collection in ax.collections
        if isinstance(collection, LineCollection)
        for colour in np.atleast_2d(collection.get_edgecolor())[:1]
        for (x1, y1), (x2, y2) in collection.get_segments()
    ]
    texts = [
        {"at": [float(text.xy[0]), down * float(text.xy[1])], "text": text.get_text()}
        for text in ax.texts
        if isinstance(text, Annotation) and text.xycoords == "data" and text.get_text()
    ]
    along = [[each["from"], each["to"]] for each in intervals]
    points = [at for part in ([curve["points"] for curve in curves] + along) for at in part]
    return {
        "x": _axis(ax.xaxis, [x for x, _ in points] + _at(rules, "x"), 1.0),
        "y": _axis(ax.yaxis, [y for _, y in points] + _at(rules, "y"), down),
        "curves": curves,
        "rules": rules,
        "intervals": intervals,
        "texts": texts,
    }


def _curve(line: "Line2D", name: str, down: float) -> dict[str, Any]:
    filled = line.get_markerfacecolor() == line.get_markeredgecolor()
    dots = "" if line.get_marker() in {"None", "", None} else "filled" if filled else "hollow"
    style = {"None": "", "-": "solid"}.get(str(line.get_linestyle()), "dashed")
    at = np.array(line.get_xydata(), dtype=float)
    at = at[np.isfinite(at).all(axis=1)] * [1.0, down]
    every = math.ceil(len(at) / _MOST_POINTS) or 1
    points = at[::every].tolist()
    colour = _themed(line.get_color())
    return {"name": name, "colour": colour, "line": style, "dots": dots, "points": points}


def _axis(axis: "Axis", values: Sequence[float], sign: float) -> dict[str, Any]:
    """Return an axis that spans the values, by whole decades if it is logarithmic."""
    from matplotlib.ticker import FixedLocator

    label, is_log, ticks = visible(axis.get_label_text()), axis.get_scale() == "log", None
    if isinstance(axis.get_major_locator(), FixedLocator) and not is_log:
        # Names of rows, at their places.
        places = [float(place) for place in axis.get_majorticklocs()]
        names = axis.get_major_formatter().format_ticks(places)
        ticks = [[sign * place, visible(name)] for place, name in zip(places, names, strict=True)]
        span = sorted(sign * float(end) for end in axis.get_view_interval())
    elif is_log:
        positive = [value for value in values if value > 0] or [1.0]
        low, high = (math.log10(end) for end in (min(positive), max(positive)))
        span = [10.0 ** math.floor(low), 10.0 ** max(math.ceil(high), math.floor(low) + 1)]
    else:
        span = [min([0.0, *values]), _HEADROOM * max([0.0, *values]) or 1.0]
    return {"label": label, "is_log": is_log, "span": span, "ticks": ticks}


def _rule(axis: str, value: float, name: str, colour: Any) -> dict[str, Any]:  # noqa: ANN401  # as matplotlib has it
    return {"axis": axis, "value": float(value), "name": name, "colour": _themed(colour)}


def _at(rules: Sequence[dict[str, Any]], axis: str) -> list[float]:
    return [rule["value"] for rule in rules if rule["axis"] == axis]


def _themed(colour: Any) -> str:  # noqa: ANN401  # as matplotlib has it
    """Return a colour of a figure in CSS, lighter in a dark theme."""
    from matplotlib.colors import to_hex

    light = to_hex(colour)
    return f"light-dark({light}, {palette.ON_DARK.get(light, light)})"
