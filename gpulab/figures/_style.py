"""What all plots share: looks that do not rest on colour, readable units, plain ticks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpulab.errors import InvalidOptionError, shown
from gpulab.figures._inputs import check_frame
from gpulab.foreign_text import one_line, shortened, visible
from gpulab.measurement import Measurement
from gpulab.requirements import instance_of, items_of
from gpulab.units import time_unit

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


# Okabe and Ito's palette without yellow, which vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1)), (0, (8, 2)), (0, (2, 1)))
_HATCHES = ("..", "//", "", "xx", "\\\\", "--")
_MOST_TEXT = 300  # characters; matplotlib draws longer ones for minutes
_MILLION = 1e6
_MANY_DECADES = 30.0


class Look(NamedTuple):
    """Colour and further signs of one series, so that colour is never alone."""

    colour: str
    marker: str
    dashes: "str | tuple[int, tuple[int, ...]]"
    hatch: str


def looks() -> Iterator[Look]:
    """Yield a look for each series, without end."""
    parts = zip(cycle(COLOURS), cycle(_MARKERS), cycle(_DASHES), cycle(_HATCHES), strict=True)
    for colour, marker, dashes, hatch in parts:
        yield Look(colour, marker, dashes, hatch)  # type: ignore[arg-type]  # mypy joins the tuples


_MEASUREMENT = instance_of(Measurement, "a Measurement, such as measure() returns")


def as_list(record: Measurement | Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements of a record, be it one or several.

    Raises
    ------
    InvalidOptionError
        If there are none.
    """
    given = [record] if isinstance(record, Measurement) else record
    measurements = list(items_of("record", given, _MEASUREMENT))
    if not measurements:
        raise InvalidOptionError(f"record={shown(record)} has no measurements; give at least one")
    return measurements


def name_of(item: Measurement) -> str:
    """Name a measurement by its label, or else by its method."""
    return one_line(item.label or item.method)


def unit_of(values_s: Iterable[float]) -> tuple[float, str]:
    """Choose one unit for an axis, by the median: its length in seconds and its name."""
    exponent, unit = time_unit(float(np.median(np.abs(list(values_s)))))
    return 10.0**exponent, unit


def need(frame: "pd.DataFrame", names: tuple[str, ...]) -> None:
    """Refuse a frame that cannot be drawn.

    Raises
    ------
    InvalidOptionError
        If a column is missing, or there are no rows.
    """
    check_frame("record", frame)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidOptionError(
            f"the frame has no column {', '.join(missing)}; it must have {', '.join(names)}"
        )
    if frame.empty:
        raise InvalidOptionError("the frame has no rows; there is nothing to draw")


def log_axis(ax: "Axes", which: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks, and millions from one on."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log")
    low, high = axis.get_data_interval()
    plain = FuncFormatter(lambda value, _: _tick(value))
    # Over less than about a decade and a half, powers of ten alone leave an axis without ticks.
    narrow = low > 0 and high < _MANY_DECADES * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    axis.set_major_formatter(plain)
    axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _tick(value: float) -> str:
    # Written out, the numbers of an axis over many decades run into each other.
    return f"{value / _MILLION:,.10g} M" if value >= _MILLION else f"{value:,.10g}"


def finish(ax: "Axes", kind: str, xlabel: str, ylabel: str, *, legend: bool = True) -> "Axes":
    """Label the axes; the group id keeps the kind of plot for the description."""
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.set_gid(kind)
    ax.spines[["top", "right"]].set_visible(False)
    if legend and len(ax.get_legend_handles_labels()[1]) > 1:
        # named, because matplotlib warns of its default place where a machine is slow
        ax.legend(frameon=False, fontsize="small", loc="best")
    _show_as_it_is(ax)
    return ax


def _show_as_it_is(ax: "Axes") -> None:
    """Let no name on the axes be read as a formula, and none have what no font can draw."""
    from matplotlib.category import StrCategoryLocator
    from matplotlib.ticker import FixedLocator

    legend = ax.get_legend()
    texts = [ax.title, ax.get_xaxis().label, ax.get_yaxis().label, *ax.texts]
    texts += [] if legend is None else legend.get_texts()
    for axis in (ax.get_xaxis(), ax.get_yaxis()):
        # Others count in numbers, and to ask for their labels makes all of their ticks.
        if isinstance(axis.get_major_locator(), (FixedLocator, StrCategoryLocator)):
            texts += axis.get_ticklabels()
    for text in texts:
        text.set_parse_math(False)
        text.set_text(shortened(visible(text.get_text()), _MOST_TEXT))
