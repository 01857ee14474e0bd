"""Draw a timeline as a static picture, with the lanes, arrows and series of the widget."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import shortened
from gpulab.core.requirements import Requirement, instance_of
from gpulab.core.units import format_bytes, format_time, spelled
from gpulab.figures import (
    Arrow,
    Lanes,
    Level,
    Plot,
    Strip,
)
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._event_pairs import EventPair, event_pairs, shifted, work_between
from gpulab.tracing._flows import Flow
from gpulab.tracing._geometry import Drawing, drawing
from gpulab.tracing._idle_causes import merged
from gpulab.tracing._spans import SPAN_KINDS, Span
from gpulab.tracing._summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpulab.tracing._timeline import Timeline


# A static picture cannot be zoomed, so it needs fewer bars than the page.
MAX_BARS = 3_000
MAX_ARROWS = 60
_ROW_IN, _MARGIN_IN = 0.36, 1.7
_MOST_PAIRS = 6
_LEAST_AHEAD = 2  # launches
_TOO_NARROW = 0.05  # of the length; the name of a kernel that is shorter has no room in its bar
_MOST_NAME = 40  # characters
# Checked by its attribute: Timeline imports this module to show itself, so isinstance() would need
# an import in a circle.
_TIMELINE = Requirement(
    "a timeline, such as gpulab.timeline() returns", lambda value: hasattr(value, "spans")
)
_SUMMARY = instance_of(Summary, "the summary of the timeline: record.summary()").or_none


@dataclass(frozen=True)  # without slots, for the cached summary
class _TimelinePlot(Plot):
    """A timeline with its lanes: one for each thread and stream, and below them the series."""

    record: "Timeline"
    picture: Drawing
    known_summary: Summary | None = None
    marks_idle: bool = True

    @cached_property
    def summary(self) -> Summary:
        """The summary; axes that are given need none, and for a million spans it takes 10 s."""
        return self.known_summary or self.record.summary()

    @property
    def title(self) -> str:
        spans = self.record.spans
        if len(self.pairs) == 1:
            (pair,) = self.pairs
            work = format_time(work_between(pair, spans))
            return (
                f"Two events {format_time(pair.duration_s)} apart; the GPU works for {work} of it"
            )
        return _ahead(spans) or self.summary.finding

    @property
    def words(self) -> str:
        return "\n".join([*self.summary.lines(), *self.reads, *self.notes])

    @property
    def reads(self) -> list[str]:
        """What each pair of events reads, in a sentence."""
        return [
            f"Two events on {pair.lane} are {format_time(pair.duration_s)} apart."
            for pair in self.pairs
        ]

    @property
    def pairs(self) -> tuple[EventPair, ...]:
        """The pairs of events that time something; none if there are too many to show."""
        pairs = event_pairs(self.record.spans)
        return pairs if len(pairs) <= _MOST_PAIRS else ()

    @property
    def notes(self) -> list[str]:
        """Sentences about what is not drawn as it is."""
        notes = [self.picture.note] if self.picture.note else []
        n_arrows = len(arrows_of(self.picture))
        if n_arrows > MAX_ARROWS:
            notes.append(f"The {n_arrows:,} arrows are left out.")
        return notes

    @property
    def height_in(self) -> float:
        return _MARGIN_IN + _ROW_IN * self.lanes.n_rows

    @property
    def lanes(self) -> Lanes:
        """What is drawn, and where."""
        picture, bars = self.picture, self.picture.bars
        n_rows = sum(lane.n_rows for lane in picture.lanes)
        names = {lane.first_row + (lane.n_rows - 1) / 2: lane.name for lane in picture.lanes}
        pairs = [
            Strip(n_rows, "ink", f"start to end: {format_time(pair.duration_s)}", *pair.times_s)
            for pair in shifted(self.pairs, self.record.spans)
        ]
        if pairs:
            names[n_rows] = "between events"
            n_rows += 1
        lone = self._lone_kernel(n_rows)
        if lone:
            names[n_rows] = "the only kernel"
            n_rows += 1
        idle = [] if pairs or lone else self._idle()
        levels = []
        if idle:
            idle_s = sum(end_s - start_s for start_s, end_s in idle)
            blocks = (((a, 0.0), (a, 1.0), (b, 1.0), (b, 0.0)) for a, b in idle)
            levels.append(Level(n_rows, tuple(chain.from_iterable(blocks))))
            names[n_rows] = f"GPU idle: {format_time(idle_s)}"
            n_rows += 1
        for row, series in enumerate(picture.series, start=n_rows):
            names[row] = f"{title_of(series, picture)} (≤ {most_of(series)})"
        columns = (bars.row, bars.kind, bars.start_s, bars.end_s)
        strips = (
            Strip(row, SPAN_KINDS[kind], name, start_s, end_s)
            for name, row, kind, start_s, end_s in zip(
                bars.name, *(column.tolist() for column in columns), strict=True
            )
        )
        levels += [
            _level(series, row, picture.length_s)
            for row, series in enumerate(picture.series, start=n_rows)
            if series.times_s
        ]
        return Lanes(
            names,
            n_rows + len(picture.series),
            (*strips, *pairs, *lone),
            picture.length_s,
            tuple(levels),
            tuple(_arrows(picture)),
        )

    def _lone_kernel(self, row: int) -> list[Strip]:
        """Return a mark for the only kernel if nobody would find it: it is too short to be named.

        Beside long copies such a kernel is a line, and often it is what the picture is about.
        """
        kernels = [span for span in self.record.spans if span.kind == "kernel"]
        if len(kernels) != 1 or kernels[0].duration_s > _TOO_NARROW * self.picture.length_s:
            return []
        (kernel,) = kernels
        begin_s = min(span.start_s for span in self.record.spans)
        label = f"{shortened(kernel.name, _MOST_NAME)}: {format_time(kernel.duration_s)}"
        return [Strip(row, "ink", label, kernel.start_s - begin_s, kernel.end_s - begin_s)]

    def _idle(self) -> list[tuple[float, float]]:
        """Return the times without work, if the title says how busy the GPU is."""
        spans = [span for span in self.record.spans if span.is_work]
        is_told = self.marks_idle and not _ahead(self.record.spans)
        if not is_told or len({span.device for span in spans}) != 1:
            return []
        begin_s = min(span.start_s for span in self.record.spans)
        busy = merged([(span.start_s - begin_s, span.end_s - begin_s) for span in spans])
        starts_s = [0.0, *(end_s for _, end_s in busy)]
        ends_s = [*(start_s for start_s, _ in busy), self.picture.length_s]
        gaps = zip(starts_s, ends_s, strict=True)
        return [(start_s, end_s) for start_s, end_s in gaps if end_s > start_s]

    def draw(self, ax: "Axes") -> "Axes":
        return self.lanes.draw(ax)


def timeline_plot(
    record: "Timeline",
    summary: Summary | None = None,
    *,
    has_series: bool = True,
    marks_idle: bool = True,
) -> _TimelinePlot:
    """Return the plot of a timeline, which must have spans.

    Time starts at the first span. Arrows lead from a launch to the kernels and copies that it
    started, and from the awaited work to the end of the wait; if there are more than 60 arrows,
    none is drawn. Below the lanes are the engines, the queue and the memory, where known. A wait
    on a stream is drawn, but it does not make the device busy. With ``marks_idle`` a row
    shows when the device is idle, if that is what the title is about.
    """
    _TIMELINE.check(record=record)
    _SUMMARY.check(summary=summary)
    if not record.spans:
        raise InvalidOptionError("the timeline has no spans; there is nothing to draw")
    picture = drawing(record, max_bars=MAX_BARS)
    if not has_series:
        picture = replace(picture, series=())
    return _TimelinePlot(record, picture, summary, marks_idle)


def title_of(series: CounterSeries, picture: Drawing) -> str:
    """Return the name of a series, with the GPU if there are several."""
    several = len({other.device for other in picture.series}) > 1
    return f"cuda:{series.device} {series.name}" if several else series.name


def most_of(series: CounterSeries) -> str:
    """Return the greatest value of a series as text."""
    return format_bytes(series.largest) if series.unit == "B" else f"{series.largest:,.0f}"


def arrows_of(picture: Drawing) -> list[Flow]:
    """Return the arrows to draw: all but those from a call to the event that it records."""
    # An event lies right after its call, so its arrow would show nothing new.
    return [arrow for arrow in picture.arrows if arrow.kind != "record"]


def _ahead(spans: Sequence[Span]) -> str:
    """Return in words how far the host is ahead of the GPU when it has launched everything."""
    launches = [span for span in spans if span.kind == "launch"]
    if len(launches) < _LEAST_AHEAD:
        return ""
    all_s = max(span.end_s for span in launches)
    n_done = sum(span.is_work and span.end_s <= all_s for span in spans)
    if 2 * n_done >= len(launches):
        return ""
    every = "both" if len(launches) == _LEAST_AHEAD else f"all {spelled(len(launches))}"
    return f"The host has launched {every}; by then the GPU has finished {spelled(n_done)}"


def _arrows(picture: Drawing) -> list[Arrow]:
    """Return the arrows to draw, or none if there are too many."""
    bars, flows = picture.bars, arrows_of(picture)
    if len(flows) > MAX_ARROWS:
        return []
    arrows = []
    for flow in flows:
        source, target, is_wait = flow.source, flow.target, flow.kind != "launch"
        end_s = float((bars.end_s if is_wait else bars.start_s)[target])
        # A kernel may start before its launch call returns; the arrow must not go back.
        start_s = min(float(bars.end_s[source]), end_s)
        rows = int(bars.row[source]), int(bars.row[target])
        arrows.append(Arrow(start_s, rows[0], end_s, rows[1], is_dashed=is_wait))
    return arrows


def _level(series: CounterSeries, row: int, length_s: float) -> Level:
    """Return a series as steps from the left edge; its last value is valid up to the right."""
    last_s = max(length_s, *series.times_s)
    points, share = [(0.0, 0.0)], 0.0
    for time_s, value in zip(series.times_s, series.values, strict=True):
        points += [(time_s, share), (time_s, share := value / (series.largest or 1))]
    return Level(row, (*points, (last_s, share)))
