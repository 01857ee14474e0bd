"""Plots of any frame with numbers: lines, bars or points for its columns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import TEXT, Requirement, items_of
from gpulab.figures import (
    bar_marks,
    check_axes,
    check_frame,
    finish,
    log_axis,
    looks,
    marks,
    need,
    size_ticks,
    source_of,
    unit_of,
)
from gpulab.views.plots._draw import Words, one_call

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_UNITS = {"us": "µs", "ms": "ms", "ns": "ns", "mhz": "MHz", "w": "W", "bytes": "bytes"}
_TIMES = ("µs", "ms", "ns")
_SCALES = ("x", "y", "xy")
_LOG = Requirement(
    "one of 'x', 'y', 'xy', or None",
    lambda value: value is None or (isinstance(value, str) and value in _SCALES),
)
_MOST_BARS = 30  # more would be too thin to read
_ROW = "row"  # stands in for the name of an index without one


def _line_words(record: object, **options: Any) -> Words:  # noqa: ANN401  # those of the plot
    _LOG.check(log=options.get("log"))
    frame, x, columns = _numbers(record, options.get("x"), options.get("y"))
    said = []
    for name in columns:
        ordered = frame[[x, name]].dropna().sort_values(x)
        first, last = (
            f"{_said(name, row[name])} at {_said(x, row[x])}"
            for _, row in ordered.iloc[[0, -1]].iterrows()
        )
        low, high = (_said(name, value) for value in (ordered[name].min(), ordered[name].max()))
        said.append(f"{_plain(name)}: from {first} to {last}; lowest {low}, highest {high}.")
    return Words(_title(columns, x), "\n".join(said))


def _bars_words(record: object, **options: Any) -> Words:  # noqa: ANN401  # as above
    frame, x, columns = _rows(record, options.get("x"), options.get("y"))
    said = []
    for _, row in frame.iterrows():
        values = [
            _said(name, row[name])
            if len(columns) == 1
            else f"{_plain(name)} {_said(name, row[name])}"
            for name in columns
        ]
        said.append(f"{one_line(str(row[x]))}: {', '.join(values)}.")
    return Words(_title(columns, x), "\n".join(said), 1.5 + 0.45 * len(frame))


@one_call(_line_words)
def line(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    log: str | None = None,
) -> "Axes":
    """Draw columns of a frame over another column, one line each.

    A linear y axis begins at zero, unless a value is negative.

    Parameters
    ----------
    record
        The frame, or a series that is drawn over its index.
    ax
        Axes to draw on.
    x, y
        Names of the columns. Default: the first column, and all other columns of numbers. A name
        that ends in ``_s`` means seconds, which are shown in the unit that fits.
    log
        Which axes are logarithmic: ``"x"``, ``"y"`` or ``"xy"``.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"n": [1, 2], "time_us": [3.0, 5.0], "source": "virtual"})
    >>> plots.line(frame, x="n", y="time_us", title="Two sizes").title
    'Two sizes (virtual NVIDIA H200)'
    """
    return _draw(record, ax, x, y, log, joined=True)


@one_call(_line_words)
def scatter(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    log: str | None = None,
) -> "Axes":
    """Draw columns of a frame over another column as points; parameters are those of `line`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"n": [1, 2], "time_us": [3.0, 5.0], "source": "virtual"})
    >>> plots.scatter(frame, x="n", y="time_us", title="Two sizes").title
    'Two sizes (virtual NVIDIA H200)'
    """
    return _draw(record, ax, x, y, log, joined=False)


@one_call(_bars_words)
def bars(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
) -> "Axes":
    """Draw a bar for each row of a frame, with its number beside it.

    Parameters
    ----------
    record
        The frame, or a series whose index names the bars.
    ax
        Axes to draw on.
    x, y
        The column of names, and columns of numbers. Default: the first column, and all others.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"n": [1, 2], "time_us": [3.0, 5.0], "source": "virtual"})
    >>> plots.bars(frame, x="n", y="time_us", title="Two sizes").title
    'Two sizes (virtual NVIDIA H200)'
    """
    frame, names, columns = _rows(record, x, y)
    check_axes(ax)
    scale, label = _axis(columns, frame)
    places, thickness = np.arange(len(frame)), 0.8 / len(columns)
    for number, (name, look) in enumerate(zip(columns, looks(map(_plain, columns)), strict=False)):
        shift = (number - (len(columns) - 1) / 2) * thickness
        values = frame[name].to_numpy(float)
        drawn = ax.barh(
            places + shift,
            values / scale,
            thickness * 0.9,
            label=_plain(name),
            **bar_marks(look, source_of(record)),
        )
        ax.bar_label(drawn, [_said(name, value) for value in values], padding=4, fontsize="small")
    ax.set_yticks(places, [one_line(str(row)) for row in frame[names]])
    # Reversed, so that the first row is at the top.
    ax.set_ylim(len(frame) - 0.5, -0.5)
    # Room for the number beside the longest bar.
    ax.margins(x=0.15)
    return finish(ax, "Bar chart", label, "")


def _draw(  # noqa: PLR0913  # those of two plots
    record: object,
    ax: "Axes",
    x: str | None,
    y: str | Sequence[str] | None,
    log: str | None,
    *,
    joined: bool,
) -> "Axes":
    _LOG.check(log=log)
    frame, across, columns = _numbers(record, x, y)
    check_axes(ax)
    x_scale, x_label = _axis([across], frame)
    scale, label = _axis(columns, frame)
    source = source_of(record)
    for name, look in zip(columns, looks(map(_plain, columns)), strict=False):
        sign = marks(look, source)
        # For each column by itself, so that a gap in one leaves the points of the others.
        part = frame[[across, name]].dropna()
        if joined:
            part = part.sort_values(across)
        ax.plot(
            part[across] / x_scale,
            part[name] / scale,
            label=_plain(name),
            **(sign if joined else sign | {"linestyle": "none"}),
        )
    for which in log or "":
        log_axis(ax, which)
    if "x" in (log or ""):
        size_ticks(ax, frame[across] / x_scale)
    # From zero, so that heights compare as the numbers do. A logarithmic axis has no zero.
    if "y" not in (log or "") and (frame[columns].min() >= 0).all():
        ax.set_ylim(0, None)
    ax.grid(visible=True)
    return finish(ax, "Line chart" if joined else "Scatter plot", x_label, label)


def _numbers(record: object, x: object, y: object) -> "tuple[pd.DataFrame, str, list[str]]":
    """Return the frame, its column for the x axis, and the columns to draw; check for numbers."""
    from pandas.api.types import is_numeric_dtype

    frame, across, columns = _columns(record, x, y)
    words = [name for name in (across, *columns) if not is_numeric_dtype(frame[name])]
    if words:
        raise InvalidOptionError(
            f"the column {words[0]!r} has no numbers; name columns of numbers, or draw bars"
        )
    return frame, across, columns


def _rows(record: object, x: object, y: object) -> "tuple[pd.DataFrame, str, list[str]]":
    """Return the frame, its column of names, and the columns to draw as bars."""
    from pandas.api.types import is_numeric_dtype

    frame, names, columns = _columns(record, x, y)
    words = [name for name in columns if not is_numeric_dtype(frame[name])]
    if words:
        raise InvalidOptionError(f"the column {words[0]!r} has no numbers; a bar needs a number")
    if len(frame) > _MOST_BARS:
        raise InvalidOptionError(f"{len(frame):,} bars are too many; draw a line instead")
    return frame, names, columns


def _columns(record: object, x: object, y: Any) -> "tuple[pd.DataFrame, str, list[str]]":  # noqa: ANN401  # a name or several, not yet checked
    """Return a frame with an ordinary index, its column for x, and the columns for y."""
    import pandas as pd

    if isinstance(record, pd.Series):
        named = record.rename("value" if record.name is None else str(record.name))
        record = named.rename_axis(str(named.index.name or _ROW)).reset_index()
    check_frame("record", record)
    frame: pd.DataFrame = record  # type: ignore[assignment]  # checked
    TEXT.or_none.check(x=x)
    across = str(frame.columns[0]) if x is None and len(frame.columns) else str(x)
    if y is None:
        numbers = [str(name) for name in frame.select_dtypes("number").columns]
        columns = [name for name in numbers if name != across]
    else:
        columns = [y] if isinstance(y, str) else list(items_of("y", y, TEXT))
    # Made here, because its message lists the columns of this very frame.
    known = Requirement(
        f"the name of a column: {', '.join(map(str, frame.columns))}",
        lambda name: name in frame.columns,
    )
    known.check(x=across)
    for name in columns:
        known.check(y=name)
    need(frame, (across,))
    if not columns:
        raise InvalidOptionError("the frame has no column of numbers to draw; name it: y=...")
    return frame, across, columns


def _axis(columns: Sequence[str], frame: "pd.DataFrame") -> tuple[float, str]:
    """Return the divisor and the label of an axis; columns of times share one unit."""
    # Several columns have their names at their lines or in the legend.
    name = _plain(columns[0]) if len(columns) == 1 else ""
    if all(column.endswith("_s") for column in columns):
        scale, unit = unit_of(frame[list(columns)].to_numpy(float).ravel())
        return scale, f"{name or 'time'} ({unit})"
    units = {_UNITS.get(column.rpartition("_")[2], "") for column in columns}
    unit = units.pop() if len(units) == 1 else ""
    if unit:
        return 1.0, f"{name or ('time' if unit in _TIMES else 'value')} ({unit})"
    return 1.0, name or "value"


def _plain(name: str) -> str:
    """Return a column's name in words, without its unit."""
    words, _, unit = name.rpartition("_")
    return one_line((words if words and unit in {"s", *_UNITS} else name).replace("_", " "))


def _said(name: str, value: float) -> str:
    from gpulab.core.units import format_time

    if name.endswith("_s"):
        return format_time(float(value))
    unit = _UNITS.get(name.rpartition("_")[2], "")
    return f"{value:,.4g} {unit}".strip()


def _title(columns: Sequence[str], x: str) -> str:
    drawn = ", ".join(map(_plain, columns))
    return drawn if x == _ROW else f"{drawn} over {_plain(x)}"
