"""The style of all plots: looks that do not depend on colour, units, ticks, and a last touch.

One file, because every plot needs all of it, and a fifth of it are examples.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import cycle
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpulab.core import palette
from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import shortened, visible
from gpulab.core.requirements import instance_of
from gpulab.core.units import time_unit
from gpulab.figures._line_names import name_line, spread_names

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation


PAPER, INK, MUTED = palette.PAPER.light, palette.INK.light, palette.MUTED.light
# One more than the colours, so that the seventh series differs from the first by its marker.
_MARKERS = ("o", "^", "D", "v", "P", "X", "s")
_HATCHES = ("", "..", "xx", "\\\\", "--", "oo")
_MOST_TEXT = 300  # characters; matplotlib draws longer ones for minutes
# A notebook's page shows 9 inches on about 820 pixels: even small text has 12 pixels then.
_TEXT_PT = 12.0
_MANY_DECADES = 30.0  # highest over lowest value: a decade and a half
_FEW_OF_125 = 4.0  # times; a shorter axis may have one tick alone of 1, 2, 5, 10, 20, 50
_MOST_AT_LINES = 8  # names; more would not fit beside the axes
_LONGEST_AT_LINE = 34  # characters; longer names would leave too little room for the lines
_LEGEND_WIDTH, _LEGEND_SIGN = 96, 6  # characters
_LABEL_IN = 0.62  # height of ticks and label under the axes
_LEAST_SHORT = 10_000  # smaller sizes are written out, as in programs
_KI = 1_024
_MOST_TICKS = 11
_THOUSAND = 1_000
_THOUSANDS = {1e3: "k", 1e6: "M", 1e9: "G", 1e12: "T"}


_STYLE: Any = {  # its type lists all names of matplotlib
    "font.size": _TEXT_PT,
    "axes.titlesize": "medium",
    "axes.labelsize": "medium",
    "xtick.labelsize": "small",
    "ytick.labelsize": "small",
    "legend.fontsize": "small",
    "lines.linewidth": 2.0,
    "lines.markersize": 6.0,
    "hatch.linewidth": 1.0,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "legend.facecolor": PAPER,
    "legend.edgecolor": PAPER,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": palette.FAINT.light,
    "axes.axisbelow": True,
}


def style() -> "AbstractContextManager[None]":
    """Return a context in which matplotlib draws in the style of gpulab's figures."""
    from matplotlib import rc_context

    return rc_context(_STYLE)


class Look(NamedTuple):
    """Colour, marker and hatch of one series: no meaning depends on the colour alone."""

    colour: str
    marker: str
    hatch: str


def look_of(role: str) -> Look:
    """Return the look of a role, one of :data:`gpulab.core.palette.ROLES`."""
    colour, marker, hatch = palette.ROLES[role]
    return Look(colour.light, marker, hatch)


def looks(names: Iterable[str] = ()) -> Iterator[Look]:
    """Yield looks, one for each series, without end; that of "cold" is its role's."""
    others = (
        Look(colour.light, marker, hatch)
        for colour, marker, hatch in zip(
            cycle(palette.SERIES), cycle(_MARKERS), cycle(_HATCHES), strict=True
        )
    )
    for name in names:
        yield look_of(name) if name in palette.ROLES else next(others)
    yield from others


def marks(look: Look, source: str) -> dict[str, Any]:
    """Return the options of ``ax.plot`` for a look and a source, by default "measured"."""
    sign = palette.SOURCES.get(source, palette.SOURCES["measured"])
    return {
        "color": look.colour,
        "marker": look.marker,
        "linestyle": sign.dashes,
        # Paper and not "none", or the line would be seen through the marker.
        "markerfacecolor": look.colour if sign.is_filled else PAPER,
        "markeredgecolor": look.colour,
    }


def bar_marks(look: Look, source: str) -> dict[str, Any]:
    """Return the options with which ``ax.bar`` shows a look and a source, as :func:`marks`."""
    sign = palette.SOURCES.get(source, palette.SOURCES["measured"])
    if not sign.is_filled:
        return {"facecolor": PAPER, "edgecolor": look.colour, "linewidth": 2.0}
    return {"facecolor": look.colour, "edgecolor": PAPER, "hatch": sign.hatch or None}


# A ContextVar and not a global: two threads of a program may draw at once.
_SOURCE: ContextVar[str] = ContextVar("source of what is drawn", default="measured")


@contextmanager
def drawn_from(source: object) -> Iterator[None]:
    """Inside the block, draw records that do not say their source as if from this one.

    It is an object with ``source``, such as a ``Device``; text has no effect.
    """
    token = _SOURCE.set(str(getattr(source, "source", _SOURCE.get())))
    try:
        yield
    finally:
        _SOURCE.reset(token)


def source_of(record: object) -> str:
    """Return a record's own source, or that of :func:`drawn_from` if it has none."""
    unknown = _SOURCE.get()
    if hasattr(record, "columns"):
        frame: Any = record
        kinds = set(frame["source"]) if "source" in frame.columns else set()
    elif isinstance(record, Sequence) and not isinstance(record, str):
        kinds = {getattr(item, "source", unknown) for item in record}
    else:
        kinds = {getattr(record, "source", unknown)}
    # Numbers of several sources have no look of their own.
    return str(kinds.pop()) if len(kinds) == 1 else unknown


def unit_of(values_s: Iterable[float]) -> tuple[float, str]:
    """Return the unit for an axis of times, by their median: its seconds and its name."""
    times_s = np.abs(np.fromiter(values_s, float))
    times_s = times_s[np.isfinite(times_s)]  # a gap in a column is nan
    # By the median: one far value would choose a unit that fits no other.
    exponent, unit = time_unit(float(np.median(times_s)) if times_s.size else 1.0)
    return 10.0**exponent, unit


def need(frame: "pd.DataFrame", names: tuple[str, ...]) -> None:
    """Raise `InvalidOptionError` unless a frame has the columns that a plot needs, and rows."""
    import pandas as pd

    instance_of(pd.DataFrame, "a frame of pandas").check(record=frame)
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InvalidOptionError(
            f"the frame has no column {', '.join(missing)}; it must have {', '.join(names)}"
        )
    if frame.empty:
        raise InvalidOptionError("the frame has no rows; there is nothing to draw")


def log_axis(ax: "Axes", which: str) -> None:
    """Make an axis logarithmic, with plain numbers at its ticks, large ones with k, M or G."""
    from matplotlib.ticker import AutoLocator, FuncFormatter, LogLocator, NullFormatter

    axis = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}scale")("log")
    low, high = axis.get_data_interval()
    # Over less than a decade and a half there would be one tick or none at powers of ten.
    narrow = low > 0 and high < _MANY_DECADES * low
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if narrow else (1.0,)))
    if 0 < low < high < _FEW_OF_125 * low:
        axis.set_major_locator(AutoLocator())
    axis.set_major_formatter(FuncFormatter(_short_tick))
    # On a short axis matplotlib also names the minor ticks, over the names of the others.
    axis.set_minor_formatter(NullFormatter())


def _short_tick(value: float, _place: int | None) -> str:
    """Return the label of a tick; a function of the module, because figures are pickled."""
    return short_number(value)


def _group_digits(ax: "Axes") -> None:
    """Write 1,000 instead of 1000 at the ticks of linear axes, as everywhere else."""
    from matplotlib.ticker import FuncFormatter, ScalarFormatter

    for axis in (ax.xaxis, ax.yaxis):
        # Another formatter was chosen on purpose. Below 1,000 matplotlib's own knows how many
        # digits the ticks need.
        is_default = type(axis.get_major_formatter()) is ScalarFormatter
        if is_default and max(map(abs, axis.get_view_interval())) >= _THOUSAND:
            axis.set_major_formatter(FuncFormatter(_grouped))


def _grouped(value: float, _place: int | None) -> str:
    return f"{value:,.10g}".replace("-", "\N{MINUS SIGN}")


def short_number(value: float) -> str:
    """Return a number as a short tick label, so that neighbours do not overlap: 512, 10 k, 4.2 M.

    >>> short_number(512), short_number(20_000), short_number(4_194_304)
    ('512', '20 k', '4.19 M')
    """
    for size, letter in reversed(_THOUSANDS.items()):
        if abs(value) >= max(size, _LEAST_SHORT):
            return f"{value / size:,.3g} {letter}"
    return f"{value:,.10g}"


def short_sizes(sizes: Sequence[float]) -> list[str]:
    """Return sizes as short tick labels of one form: all multiples of 1,024 with Ki, or none.

    >>> short_sizes([64, 512, 8192])
    ['64', '512', '8,192']
    >>> short_sizes([512, 1024, 65_536, 4_194_304, 20_000])
    ['512', '1 Ki', '64 Ki', '4 Mi', '20 k']
    """
    if not any(size >= _LEAST_SHORT and size % _KI == 0 for size in sizes):
        return [short_number(size) for size in sizes]
    return [_binary(size) or short_number(size) for size in sizes]


def _binary(size: float) -> str:
    for exponent, letter in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size and size % 2**exponent == 0:
            return f"{size / 2**exponent:,.0f} {letter}"
    return ""


def size_ticks(ax: "Axes", sizes: Iterable[float]) -> None:
    """Put the ticks of a logarithmic x axis at the sizes, without those that would overlap."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    ordered = sorted(set(sizes))
    if ordered[0] <= 0:
        return
    room = math.log(ordered[-1] / ordered[0]) / _MOST_TICKS
    # From the largest down, so that the size at which lines end has a tick.
    ticks = [ordered[-1]]
    for size in reversed(ordered[:-1]):
        if math.log(ticks[-1] / size) >= room:
            ticks.append(size)
    texts = dict(zip(ticks, short_sizes(ticks), strict=True))
    ax.xaxis.set_major_locator(FixedLocator(ticks[::-1]))
    ax.xaxis.set_major_formatter(FuncFormatter(partial(_size_tick, texts)))
    ax.xaxis.set_minor_locator(NullLocator())


def _size_tick(texts: Mapping[float, str], size: float, _place: int | None) -> str:
    """Return the label of a tick at a size, or no text."""
    return texts.get(size, "")


def write_beside(
    ax: "Axes",
    text: str,
    place: tuple[Any, Any],
    offset_pt: tuple[float, float],
    **style: Any,  # noqa: ANN401  # as matplotlib has it
) -> "Annotation":
    """Write a text some points away from a place, aligned so that it leads away from there."""
    right, up = offset_pt
    sides = {
        "ha": "left" if right > 0 else "right" if right < 0 else "center",
        "va": "bottom" if up > 0 else "top" if up < 0 else "center",
    }
    return ax.annotate(text, place, offset_pt, textcoords="offset points", **sides | style)


def finish(  # noqa: PLR0913  # two are keyword-only
    ax: "Axes",
    kind: str,
    xlabel: str,
    ylabel: str,
    *,
    legend: bool = True,
    names: Mapping[str, str] = MappingProxyType({}),
) -> "Axes":
    """Label the axes and the series of a finished drawing, and return the axes.

    Each series is named where its line ends, or in a legend below the axes if that is not
    possible. ``names`` has other names for labels, to be written at the lines; empty for none. The
    kind of plot, such as ``"Line chart"``, is stored as the axes' group id, for the text
    description.
    """
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    # The description of the figure takes the kind of plot from here.
    ax.set_gid(kind)
    ax.spines[["top", "right"]].set_visible(False)
    if legend and len(ax.get_legend_handles_labels()[1]) > 1 and not _name_lines(ax, names):
        legend_below(ax)
    spread_names(ax)
    _show_as_it_is(ax)
    _group_digits(ax)
    return ax


def legend_below(ax: "Axes") -> None:
    """Put the legend of all labelled artists under the axes and their label."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = ax.get_legend_handles_labels()
    longest = max(map(len, labels), default=1)
    inches = ax.get_figure(root=True).dpi_scale_trans  # type: ignore[union-attr]  # they have one
    ax.legend(
        handles=handles,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + ScaledTranslation(0.0, -_LABEL_IN, inches),
        ncols=max(1, min(len(labels), _LEGEND_WIDTH // (longest + _LEGEND_SIGN))),
        borderaxespad=0.0,
    )
    _show_as_it_is(ax)


def _name_lines(ax: "Axes", names: Mapping[str, str]) -> bool:
    """Write the name of each series where its line ends; return whether that was possible."""
    from matplotlib.lines import Line2D

    named = [
        (handle, names.get(label, label))
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        if names.get(label, label)
    ]
    lines = [line for line, _ in named if isinstance(line, Line2D) and _is_series(line)]
    if len(lines) < len(named) or len(lines) > _MOST_AT_LINES:
        return False
    if max((len(label) for _, label in named), default=0) > _LONGEST_AT_LINE:
        return False
    for line, (_, label) in zip(lines, named, strict=True):
        name_line(ax, line, label)
    return True


def _is_series(line: "Line2D") -> bool:
    """Return whether a line joins points of data; limits and loose points get no name there."""
    return line.get_linestyle() != "None" and len(np.asarray(line.get_xdata())) > 1


def _show_as_it_is(ax: "Axes") -> None:
    """Print all texts of the axes literally: no formulas, no control characters, no long texts."""
    from matplotlib.category import StrCategoryLocator
    from matplotlib.ticker import FixedLocator

    legend = ax.get_legend()
    texts = [ax.title, ax.get_xaxis().label, ax.get_yaxis().label, *ax.texts]
    texts += [] if legend is None else legend.get_texts()
    for axis in (ax.get_xaxis(), ax.get_yaxis()):
        # Other axes have numbers as labels, and reading them would create all of their ticks.
        if isinstance(axis.get_major_locator(), (FixedLocator, StrCategoryLocator)):
            texts += axis.get_ticklabels()
    for text in texts:
        text.set_parse_math(False)
        text.set_text(shortened(visible(text.get_text()), _MOST_TEXT))
