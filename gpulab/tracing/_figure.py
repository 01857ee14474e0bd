"""Draw a timeline as a static picture, with the lanes, arrows and series of the widget."""

from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line, shortened, visible
from gpulab.core.requirements import TEXT, Requirement, instance_of
from gpulab.core.units import format_bytes
from gpulab.figures import (
    MUTED,
    PAPER,
    WIDTH_IN,
    Figure,
    Look,
    check_axes,
    check_words,
    finish,
    legend_below,
    look_of,
    render,
    style,
)
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._flows import Flow
from gpulab.tracing._geometry import Bars, Drawing, drawing
from gpulab.tracing._spans import SPAN_KINDS
from gpulab.tracing._summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpulab.tracing._timeline import Timeline


# A static picture cannot be zoomed, so it needs fewer bars than the widget (20,000).
MAX_BARS = 3_000
MAX_ARROWS = 60
_ROW_IN, _MARGIN_IN = 0.36, 1.7
_BAR, _SERIES = 0.7, 0.8  # of the height of a row
# Most characters of a lane's name and of the device's name: very long text takes matplotlib
# minutes and leaves no space for the picture.
_MOST_NAME, _MOST_PLACE = 60, 120
# A bar below the first width has no white edge; the second is about the width of a character.
_THIN, _CHARACTER = 0.01, 0.0125  # shares of the width of the axes
_LEAST_ROOM = 4  # characters; a narrower bar shows no name, because hardly any would fit
_LEAST_SHORTENED = 7  # a name cut to "lau…" says less than the colour of the bar does
_SCALE = 1e6  # seconds to microseconds
_ABOVE_ARROWS = 5.0  # z-order of names, because matplotlib draws arrows over text otherwise
# Checked by its attribute: Timeline imports this module to show itself, so isinstance() would need
# an import in a circle.
_TIMELINE = Requirement(
    "a timeline, such as gpulab.timeline() returns", lambda value: hasattr(value, "spans")
)
_SUMMARY = instance_of(Summary, "the summary of the timeline: record.summary()").or_none
_EVENT = SPAN_KINDS.index("event")


def timeline_axes(record: "Timeline", ax: "Axes") -> "Axes":
    """Draw a timeline on existing axes: one lane for each thread and stream, against time in µs.

    Time starts at the first span. Arrows lead from a launch to the kernels and copies that it
    started, and from the awaited work to the end of the wait; if there are more than 60 arrows,
    none is drawn. Below the lanes are the engines, the queue and the memory, where known. A wait
    on a stream is drawn, but it does not make the device busy.

    Raises
    ------
    InvalidOptionError
        If there are no spans.

    Examples
    --------
    >>> import torch, gpulab
    >>> from matplotlib.figure import Figure
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(64, device="cuda")
    ...     shown = gpulab.timeline(x.exp)
    >>> ax = timeline_axes(shown, Figure().add_subplot())
    >>> ax.get_xlabel()
    'time (µs)'
    """
    check_axes(ax)
    return _paint(_shown(record), ax)


def _shown(record: "Timeline") -> Drawing:
    _TIMELINE.check(record=record)
    if not record.spans:
        raise InvalidOptionError("the timeline has no spans; there is nothing to draw")
    return drawing(record, max_bars=MAX_BARS)


def _paint(shown: Drawing, ax: "Axes") -> "Axes":
    length_us = (shown.length_s or 1e-6) * _SCALE  # a timeline of one event has length 0
    kinds = dict(enumerate(looks_of_kinds()))
    _draw_bars(ax, shown.bars, kinds, length_us)
    _draw_arrows(ax, shown)
    n_rows = sum(lane.n_rows for lane in shown.lanes)
    for row, series in enumerate(shown.series, start=n_rows):
        _draw_series(ax, series, row, length_us)
    middles = [lane.first_row + (lane.n_rows - 1) / 2 for lane in shown.lanes]
    rows = [*middles, *range(n_rows, n_rows + len(shown.series))]
    names = [lane.name for lane in shown.lanes]
    names += [f"{title_of(series, shown)} (≤ {most_of(series)})" for series in shown.series]
    ax.set_yticks(rows, [shortened(one_line(name), _MOST_NAME) for name in names])
    ax.set_ylim(n_rows + len(shown.series) - 0.5, -0.5)  # reversed: the first row is at the top
    # A margin, so that an event at either end is not cut.
    ax.set_xlim(-0.01 * length_us, 1.01 * length_us)
    ax.xaxis.set_major_formatter("{x:,.6g}")
    legend_below(ax)
    return finish(ax, "Timeline", "time (µs)", "", legend=False)


def draw_timeline(
    record: "Timeline",
    *,
    summary: Summary | None = None,
    title: str = "Timeline",
    alt: str | None = None,
    ax_size: tuple[float, float] | None = None,
) -> Figure:
    """Return a timeline as a static picture with a text alternative.

    Parameters
    ----------
    record
        The timeline.
    summary
        Its summary, if you have it already: for a million spans it takes ten seconds.
    title
        Title, without the source.
    alt
        The text alternative. By default, the summary and a note about what is left out.
    ax_size
        Width and height in inches. By default, the width of a page and the height that the lanes
        need.

    Raises
    ------
    InvalidOptionError
        If there are no spans.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(64, device="cuda")
    ...     figure = draw_timeline(gpulab.timeline(x.exp), title="One kernel")
    >>> "on virtual NVIDIA H200: 1 launch, 1 wait, 1 kernel." in figure.description
    True
    """
    _SUMMARY.check(summary=summary)
    TEXT.check(title=title)
    check_words(title=title, alt=alt, ax_size=ax_size)
    from matplotlib.figure import Figure as Canvas

    shown = _shown(record)
    n_rows = sum(lane.n_rows for lane in shown.lanes) + len(shown.series)
    size = ax_size or (WIDTH_IN, _MARGIN_IN + _ROW_IN * n_rows)
    place = shortened(record.place, _MOST_PLACE)
    with style():
        canvas = Canvas(figsize=size, layout="constrained")
        ax = _paint(shown, canvas.add_subplot())
        # A "$" in the name of a device must not start a formula.
        ax.set_title(visible(f"{title} ({place})"), parse_math=False)
    said = [alt] if alt is not None else (summary or record.summary()).lines()
    notes = [shown.note] if shown.note else []
    n_arrows = len(arrows_of(shown))
    if n_arrows > MAX_ARROWS:
        notes.append(f"The {n_arrows:,} arrows are left out.")
    return render(ax, alt="\n".join([*said, *notes]), frame=record.to_frame())


def looks_of_kinds() -> list[Look]:
    """Return the colour and hatch of each kind of span, in the order of ``SPAN_KINDS``."""
    return [look_of(kind) for kind in SPAN_KINDS]


def title_of(series: CounterSeries, shown: Drawing) -> str:
    """Return the name of a series, with the GPU if there are several."""
    several = len({other.device for other in shown.series}) > 1
    return f"cuda:{series.device} {series.name}" if several else series.name


def most_of(series: CounterSeries) -> str:
    """Return the greatest value of a series as text."""
    return format_bytes(series.largest) if series.unit == "B" else f"{series.largest:,.0f}"


def arrows_of(shown: Drawing) -> list[Flow]:
    """Return the arrows to draw: all but those from a call to the event that it records."""
    # An event lies right after its call, so its arrow would show nothing new.
    return [arrow for arrow in shown.arrows if arrow.kind != "record"]


def _draw_bars(ax: "Axes", bars: Bars, kinds: dict[int, Look], length_us: float) -> None:
    start_us = bars.start_s * _SCALE
    width_us = (bars.end_s - bars.start_s) * _SCALE
    # Decided per bar and made part of the key below: one collection has one width of edge.
    is_thin = width_us <= _THIN * length_us
    # Bars of no size give the legend one entry for each kind, in the order of their first spans.
    for kind in dict.fromkeys(bars.kind[np.argsort(bars.start_s, kind="stable")].tolist()):
        look = kinds[kind]
        ax.bar(0, 0, 0, color=look.colour, hatch=look.hatch, ec=PAPER, label=SPAN_KINDS[kind])
    # One collection for each row and look: matplotlib draws a few large collections much faster
    # than thousands of single bars.
    keys = list(zip(bars.row.tolist(), bars.kind.tolist(), is_thin.tolist(), strict=True))
    groups: dict[tuple[int, int, bool], list[int]] = {}
    for place, key in enumerate(keys):
        groups.setdefault(key, []).append(place)
    for (row, kind, thin), places in groups.items():
        look = kinds[kind]
        ax.broken_barh(
            [(start_us[place], width_us[place]) for place in places],
            (row - _BAR / 2, _BAR),
            facecolor=look.colour,
            hatch=look.hatch,
            # A white edge would hide a bar that is hardly wider than the edge. An event has no
            # width, so only an edge in its own colour makes it visible.
            edgecolor=look.colour if kind == _EVENT else PAPER,
            linewidth=1.0 if not thin or kind == _EVENT else 0.0,
        )
    room = (width_us / (_CHARACTER * length_us)).astype(np.int64)
    for place in np.flatnonzero(room >= _LEAST_ROOM).tolist():
        name, middle_us = bars.name[place], start_us[place] + width_us[place] / 2
        _write(ax, name, int(room[place]), float(middle_us), int(bars.row[place]))


def _write(ax: "Axes", name: str, room: int, middle_us: float, row: int) -> None:
    """Write a name, shortened if needed, into a bar with space for ``room`` characters."""
    box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.0}
    name = one_line(name)
    if len(name) > room and room < _LEAST_SHORTENED:
        return
    name = shortened(name, room)
    text = ax.text(middle_us, row, name, ha="center", va="center", fontsize="small", bbox=box)
    text.set_zorder(_ABOVE_ARROWS)


def _draw_arrows(ax: "Axes", shown: Drawing) -> None:
    bars, arrows = shown.bars, arrows_of(shown)
    if len(arrows) > MAX_ARROWS:
        return
    for arrow in arrows:
        source, target = arrow.source, arrow.target
        is_launch = arrow.kind == "launch"
        end_s = bars.start_s[target] if is_launch else bars.end_s[target]
        # A kernel may start before its launch call returns; the arrow must not go back.
        start_s = min(bars.end_s[source], end_s)
        down = 1 if bars.row[target] > bars.row[source] else -1
        # Launches are many and short, so their arrows are thinner than those of waits.
        style = {
            "arrowstyle": "-|>",
            "color": MUTED,
            "linewidth": 0.7 if is_launch else 1.0,
            "linestyle": "-" if is_launch else "--",
            "shrinkA": 0,
            "shrinkB": 0,
            "mutation_scale": 7,
        }
        head = (end_s * _SCALE, bars.row[target] - down * _BAR / 2)
        tail = (start_s * _SCALE, bars.row[source] + down * _BAR / 2)
        ax.annotate("", head, tail, arrowprops=style)


def _draw_series(ax: "Axes", series: CounterSeries, row: int, length_us: float) -> None:
    """Draw a series as steps; its greatest value reaches the top of the row."""
    if not series.times_s:
        return
    bottom = row + _SERIES / 2
    times_us = [time_s * _SCALE for time_s in series.times_s]
    heights = [bottom - _SERIES * value / (series.largest or 1) for value in series.values]
    ax.fill_between(
        # The series begins at the left edge and its last value is valid up to the right edge.
        [0, *times_us, max(length_us, *times_us)],
        [bottom, *heights, heights[-1]],
        bottom,
        step="post",
        facecolor=MUTED,
        alpha=0.45,
        linewidth=0,
    )
