"""Plots of any frame with numbers: lines, bars or points for its columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import TEXT, Requirement, items_of
from gpulab.core.units import format_number, format_time
from gpulab.figures import (
    Figure,
    FigureOptions,
    Plot,
    bar_marks,
    finish,
    log_axis,
    looks,
    marks,
    need,
    size_ticks,
    source_of,
    unit_of,
)
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_UNITS = {"us": "µs", "ms": "ms", "ns": "ns", "mhz": "MHz", "w": "W", "bytes": "bytes"}
_UNITS |= {"mib": "MiB", "percent": "%"}
_TIMES = ("µs", "ms", "ns")
_SCALES = ("x", "y", "xy")
_LOG = Requirement(
    "one of 'x', 'y', 'xy', or None",
    lambda value: value is None or (isinstance(value, str) and value in _SCALES),
)
_LEAST_HEIGHT = 0.2  # of an axis from zero; on a smaller part of it changes would not be seen
_MOST_BARS = 30  # more would be too thin to read
_ROW = "row"  # stands in for the name of an index without one


@dataclass(frozen=True, slots=True)
class _Lines(Plot):
    """Columns of a frame over another column, joined by lines or not."""

    record: object
    frame: "pd.DataFrame"
    x: str
    columns: list[str]
    log: str | None
    is_joined: bool

    def __post_init__(self) -> None:
        _LOG.check(log=self.log)

    @property
    def title(self) -> str:
        return _title(self.columns, self.x)

    @property
    def words(self) -> str:
        sentences = []
        for name in self.columns:
            ordered = self.frame[[self.x, name]].dropna().sort_values(self.x)
            first, last = (
                f"{_value(name, row[name])} at {_value(self.x, row[self.x])}"
                for _, row in ordered.iloc[[0, -1]].iterrows()
            )
            low, high = (_value(name, end) for end in (ordered[name].min(), ordered[name].max()))
            sentences.append(
                f"{_plain(name)}: from {first} to {last}; lowest {low}, highest {high}."
            )
        return "\n".join(sentences)

    @property
    def _fits_from_zero(self) -> bool:
        """Whether the data can be seen on an axis from zero, where heights compare as numbers."""
        values = self.frame[self.columns].to_numpy(float)
        low, high = np.nanmin(values), np.nanmax(values)
        is_hidden = 0 < high - low < _LEAST_HEIGHT * high
        return bool(low >= 0 and not is_hidden)

    def draw(self, ax: "Axes") -> "Axes":
        x_scale, x_label = _axis([self.x], self.frame)
        scale, label = _axis(self.columns, self.frame)
        source = source_of(self.record)
        for name, look in zip(self.columns, looks(map(_plain, self.columns)), strict=False):
            signs = marks(look, source) | ({} if self.is_joined else {"linestyle": "none"})
            # For each column by itself, so that a gap in one leaves the points of the others.
            part = self.frame[[self.x, name]].dropna()
            if self.is_joined:
                part = part.sort_values(self.x)
            ax.plot(part[self.x] / x_scale, part[name] / scale, label=_plain(name), **signs)
        log = self.log or ""
        for which in log:
            log_axis(ax, which)
        if "x" in log:
            size_ticks(ax, self.frame[self.x] / x_scale)
        elif self.frame[self.x].dtype.kind in "iu":  # half a call is no place on an axis
            ax.locator_params(axis="x", integer=True)
        if "y" not in log and self._fits_from_zero:
            ax.set_ylim(0, None)
        ax.grid(visible=True)
        return finish(ax, "Line chart" if self.is_joined else "Scatter plot", x_label, label)


@dataclass(frozen=True, slots=True)
class _Bars(Plot):
    """A bar for each row of a frame and each of its columns."""

    record: object
    frame: "pd.DataFrame"
    names: str
    columns: list[str]

    @property
    def title(self) -> str:
        return _title(self.columns, self.names)

    @property
    def words(self) -> str:
        sentences = []
        for _, row in self.frame.iterrows():
            values = [
                _value(name, row[name])
                if len(self.columns) == 1
                else f"{_plain(name)} {_value(name, row[name])}"
                for name in self.columns
            ]
            sentences.append(f"{one_line(str(row[self.names]))}: {', '.join(values)}.")
        return "\n".join(sentences)

    @property
    def height_in(self) -> float:
        return 1.5 + 0.45 * len(self.frame)

    def draw(self, ax: "Axes") -> "Axes":
        columns = self.columns
        scale, label = _axis(columns, self.frame)
        rows, thickness = np.arange(len(self.frame)), 0.8 / len(columns)
        for number, (name, look) in enumerate(
            zip(columns, looks(map(_plain, columns)), strict=False)
        ):
            values = self.frame[name].to_numpy(float)
            bars = ax.barh(
                rows + (number - (len(columns) - 1) / 2) * thickness,
                values / scale,
                thickness * 0.9,
                label=_plain(name),
                **bar_marks(look, source_of(self.record)),
            )
            texts = [_value(name, value) for value in values]
            ax.bar_label(bars, texts, padding=4, fontsize="small")
        ax.set_yticks(rows, [one_line(str(row)) for row in self.frame[self.names]])
        # Reversed, so that the first row is at the top.
        ax.set_ylim(len(self.frame) - 0.5, -0.5)
        # Room for the number beside the longest bar.
        ax.margins(x=0.15)
        return finish(ax, "Bar chart", label, "")


@typed
def line(
    record: "pd.DataFrame",
    ax: "Axes | None" = None,
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    log: str | None = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw columns of a frame over another column, one line each.

    A linear y axis begins at zero, unless a value is negative, or the values would fill less than
    a fifth of the height then.

    Parameters
    ----------
    record
        The frame, or a series that is drawn over its index.
    ax
        Axes to draw on. None: return a figure.
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
    return show(_Lines(record, *_numbers(record, x, y), log, is_joined=True), ax, figure)


@typed
def scatter(
    record: "pd.DataFrame",
    ax: "Axes | None" = None,
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    log: str | None = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw columns of a frame over another column as points; parameters are those of `line`.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"n": [1, 2], "time_us": [3.0, 5.0], "source": "virtual"})
    >>> plots.scatter(frame, x="n", y="time_us", title="Two sizes").title
    'Two sizes (virtual NVIDIA H200)'
    """
    return show(_Lines(record, *_numbers(record, x, y), log, is_joined=False), ax, figure)


@typed
def bars(
    record: "pd.DataFrame",
    ax: "Axes | None" = None,
    *,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw a bar for each row of a frame, with its number beside it.

    Parameters
    ----------
    record
        The frame, or a series whose index names the bars.
    ax
        Axes to draw on. None: return a figure.
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
    return show(_Bars(record, *_rows(record, x, y)), ax, figure)


def _numbers(record: object, x: object, y: object) -> "tuple[pd.DataFrame, str, list[str]]":
    """Return the frame, its column for the x axis, and the columns to draw; check for numbers."""
    from pandas.api.types import is_numeric_dtype

    frame, across, columns = _columns(record, x, y)
    for name in (across, *columns):
        if not is_numeric_dtype(frame[name]) or frame[[across, name]].dropna().empty:
            raise InvalidOptionError(
                f"the column {name!r} has no numbers; name columns of numbers, or draw bars"
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
    frame: pd.DataFrame = record  # type: ignore[assignment]  # checked next
    need(frame, ())
    TEXT.or_none.check(x=x)
    x_column = str(frame.columns[0]) if x is None else str(x)
    if y is None:
        numbers = [str(name) for name in frame.select_dtypes("number").columns]
        columns = [name for name in numbers if name != x_column]
    else:
        columns = [y] if isinstance(y, str) else list(items_of("y", y, TEXT))
    # Made here, because its message lists the columns of this very frame.
    known = Requirement(
        f"the name of a column: {', '.join(map(str, frame.columns))}",
        lambda name: name in frame.columns,
    )
    known.check(x=x_column)
    for name in columns:
        known.check(y=name)
    if not columns:
        raise InvalidOptionError("the frame has no column of numbers to draw; name it: y=...")
    return frame, x_column, columns


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


def _value(name: str, value: float) -> str:
    """Return a value of a column with its unit."""
    if name.endswith("_s"):
        return format_time(float(value))
    unit = _UNITS.get(name.rpartition("_")[2], "")
    return f"{format_number(value)} {unit}".strip()


def _title(columns: Sequence[str], x: str) -> str:
    drawn = ", ".join(map(_plain, columns))
    return drawn if x == _ROW else f"{drawn} over {_plain(x)}"
