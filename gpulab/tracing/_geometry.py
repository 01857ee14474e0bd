"""Compute the bars, lanes and arrows of a timeline's picture; too many short spans become one."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpulab.core.units import format_time
from gpulab.tracing._counters import CounterSeries, counter_series
from gpulab.tracing._flows import Flow, flows
from gpulab.tracing._lanes import Lane, layout
from gpulab.tracing._spans import SPAN_KINDS, Span

if TYPE_CHECKING:
    from gpulab.tracing._timeline import Timeline

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Texts: TypeAlias = NDArray[np.object_]
_HUGE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Bars:
    """The bars of a picture as columns of equal length, sorted by row and then by start.

    Times count from the start of the first span, and rows from the top; ``kind`` is an index in
    ``SPAN_KINDS``. A bar may stand for several spans, ``count``; ``busy_s`` is the sum of their
    durations, and less than the bar's length if there are pauses. ``size_bytes`` is what a copy
    moved; nan where not known.
    """

    start_s: Floats
    end_s: Floats
    row: Integers
    kind: Integers
    name: Texts
    count: Integers
    size_bytes: Floats
    busy_s: Floats

    def __len__(self) -> int:
        return len(self.name)


@dataclass(frozen=True, slots=True)
class Drawing:
    """Everything that a picture of a timeline shows, the lanes from top to bottom.

    A bar stands for one span or for several short neighbours, which ``note`` says in a sentence.
    Arrows go between indices of bars. The counters below the lanes, in seconds since the first
    span began, do without those that would only repeat the bars, such as an engine with one kernel
    at a time.
    """

    bars: Bars
    lanes: tuple[Lane, ...]
    arrows: tuple[Flow, ...]
    series: tuple[CounterSeries, ...]
    length_s: float
    note: str


def drawing(record: "Timeline", *, max_bars: int) -> Drawing:
    """Return what a picture of a timeline shows, with at most ``max_bars`` bars.

    If there are more spans, time is divided into equal pieces. Spans shorter than a piece that
    begin in the same piece of the same row become one bar: at this scale nobody could see them
    separately. Arrows from or to such a bar are left out.
    """
    spans, placed = record.spans, layout(record.spans)
    begin_s = min((span.start_s for span in spans), default=0.0)
    columns = _columns(spans, begin_s, np.array(placed.rows, dtype=np.int64))
    length_s = float(columns.end_s.max(initial=0.0))
    group, note = _groups(columns, length_s, max_bars)
    bars = columns if group is None else _merged(columns, group)
    # The widget searches the bars of a row by their start, so they are sent in that order.
    order = np.lexsort((bars.start_s, bars.row))
    series = tuple(
        _shifted(each, begin_s, max_bars)
        for each in counter_series(spans, record.memory)
        if spans and _tells_more(each)
    )
    arrows = _arrows(flows(spans), group, bars, order)
    ordered = Bars(*(getattr(bars, column.name)[order] for column in fields(Bars)))
    return Drawing(ordered, placed.lanes, arrows, series, length_s, note)


def _columns(spans: Sequence[Span], begin_s: float, rows: Integers) -> Bars:
    number = {kind: index for index, kind in enumerate(SPAN_KINDS)}
    n = len(spans)
    sizes = (np.nan if span.size_bytes is None else span.size_bytes for span in spans)
    start_s = np.fromiter((span.start_s for span in spans), np.float64, n) - begin_s
    end_s = np.fromiter((span.end_s for span in spans), np.float64, n) - begin_s
    return Bars(
        start_s,
        end_s,
        rows,
        np.fromiter((number[span.kind] for span in spans), np.int64, n),
        np.array([span.name for span in spans], dtype=object),
        np.ones(n, np.int64),
        np.fromiter(sizes, np.float64, n),
        end_s - start_s,
    )


def _groups(bars: Bars, length_s: float, max_bars: int) -> tuple[Integers | None, str]:
    """Return the group of each bar and a note for the reader; None if all bars can be drawn."""
    if len(bars) <= max_bars:
        return None, ""
    n_pieces = max_bars
    while True:
        piece_s = max(length_s, 1e-9) / n_pieces
        short = bars.end_s - bars.start_s < piece_s
        piece = np.minimum((bars.start_s / piece_s).astype(np.int64), n_pieces)
        # A long span gets a key that no other has, counted down from the largest number.
        key = np.where(short, bars.row * (n_pieces + 1) + piece, _HUGE - np.arange(len(bars)))
        keys, group = np.unique(key, return_inverse=True)
        # With one piece, all short spans of a row are one bar already.
        if len(keys) <= max_bars or n_pieces == 1:
            break
        # Halving takes few steps; at worst the picture has half as many bars as it could have.
        n_pieces //= 2
    note = (
        f"{len(bars):,} spans, drawn as {len(keys):,} bars: neighbours shorter than "
        f"{format_time(piece_s)} are drawn as one."
    )
    return group.astype(np.int64), note


def _merged(bars: Bars, group: Integers) -> Bars:
    """Return one bar for each group, from the first start to the last end in it."""
    n = int(group.max()) + 1
    first = np.full(n, len(bars), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(bars)))
    start_s, end_s = np.full(n, np.inf), np.full(n, -np.inf)
    np.minimum.at(start_s, group, bars.start_s)
    np.maximum.at(end_s, group, bars.end_s)
    count = np.bincount(group, minlength=n)
    shares = np.zeros((n, len(SPAN_KINDS)))
    # The kind with the longest time names the bar. Events have no length; with 1e-15 s added to
    # each, the most frequent kind decides in a group of events.
    np.add.at(shares, (group, bars.kind), bars.end_s - bars.start_s + 1e-15)
    kind = shares.argmax(axis=1)
    merged_names = [
        bars.name[index] if n_here == 1 else f"{n_here:,} spans, mostly {SPAN_KINDS[most]}"
        for index, n_here, most in zip(first, count, kind, strict=True)
    ]
    names = np.array(merged_names, dtype=object)
    # A group may mix copies with kernels, so it has no size.
    sizes = np.where(count == 1, bars.size_bytes[first], np.nan)
    busy_s = np.bincount(group, weights=bars.busy_s, minlength=n).astype(np.float64)
    return Bars(
        start_s, end_s, bars.row[first], kind, np.array(names, dtype=object), count, sizes, busy_s
    )


def _arrows(
    flows: Sequence[Flow], group: Integers | None, bars: Bars, order: Integers
) -> tuple[Flow, ...]:
    """Return the arrows between the reordered bars, without those of bars that are groups."""
    position = np.empty(len(bars), np.int64)
    position[order] = np.arange(len(bars))
    of_span = position if group is None else position[group]
    alone = bars.count[order] == 1
    return tuple(
        Flow(kind, int(of_span[source]), int(of_span[target]))
        for kind, source, target in flows
        if alone[of_span[source]] and alone[of_span[target]]
    )


def _tells_more(series: CounterSeries) -> bool:
    """Return whether a series shows what the bars do not: it changes, and counts more than one."""
    return len(set(series.values)) > 1 and (series.unit == "B" or series.largest > 1)


def _shifted(series: CounterSeries, begin_s: float, max_points: int) -> CounterSeries:
    """Return a series whose zero is the first span, thinned to ``max_points``."""
    # The largest value of neighbours is kept, because a short peak is what a reader looks for.
    times_s = np.array(series.times_s) - begin_s
    values = np.array(series.values)
    if len(values) > max_points:
        starts = np.unique(np.linspace(0, len(values), max_points, endpoint=False).astype(int))
        times_s, values = times_s[starts], np.maximum.reduceat(values, starts)
    return CounterSeries(
        series.name, series.unit, series.device, tuple(times_s.tolist()), tuple(values.tolist())
    )
