"""Plots of a short program: what the host did, what the GPU did, and what a clock sees of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line, shortened
from gpulab.core.requirements import COUNT_OR_ZERO
from gpulab.core.units import counted, format_time, spelled
from gpulab.figures import (
    INK,
    MUTED,
    PAPER,
    Figure,
    FigureOptions,
    Plot,
    finish,
    look_of,
    write_beside,
)
from gpulab.tracing import Span, Timeline
from gpulab.views.plots._draw import show, typed
from gpulab.views.plots._timeline import TIMELINE, checked_names, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR = 0.56  # height, in rows
_CHARACTER = 0.013  # width, as a share of the axes
_MOST_NAME = 20  # characters
_ROW_IN, _MARGIN_IN = 0.62, 1.35
_FLOOR_US = 2.0  # shorter pauses around a kernel are the floor of the pair, without a wait
_LONG = 0.6  # of the width; a longer bracket has its text above it
_BEFORE = 0.45  # of a pair: how much is shown to the left of it
_TWO = 2
_ARROW: Any = {"arrowstyle": "<->", "lw": 2, "shrinkA": 0, "shrinkB": 0}
_US = 1e6


def _bracket(ax: "Axes", times: tuple[float, float], height: float, text: str) -> None:
    """Mark a span of time by an arrow with two heads, and write beside it what it is."""
    start, end = times
    ax.annotate("", (end, height), (start, height), arrowprops={**_ARROW, "color": INK})
    left, right = ax.get_xlim()
    if end - start > _LONG * (right - left):
        write_beside(ax, text, ((start + end) / 2, height), (0, 5), fontweight="bold")
    else:
        write_beside(ax, text, (end, height), (9, 0), fontweight="bold")


def _bar(  # noqa: PLR0913, PLR0917  # what it shows
    ax: "Axes", row: float, start: float, end: float, colour: str, text: str
) -> float | None:
    """Draw what is visible of a bar, with its name if there is room; return its middle."""
    left, right = ax.get_xlim()
    start, end = max(start, left), min(end, right)
    if start >= end:
        return None
    ax.barh(row, end - start, _BAR, start, color=colour, ec=PAPER)
    middle = (start + end) / 2
    if text and end - start >= _CHARACTER * len(text) * (right - left):
        ax.text(
            middle, row, text,
            ha="center", va="center", color=PAPER, fontsize="small", fontweight="bold",
        )  # fmt: skip
    return middle


@dataclass(frozen=True)  # without slots, for the cached parts
class _HostAndGpu(Plot):
    record: Timeline
    names: tuple[str, ...]
    n_before: int

    @cached_property
    def calls(self) -> list[Span]:
        """The launches and waits of the host, without the wait that ends every timeline."""
        host_calls = [span for span in self.record.spans if span.kind in {"launch", "wait"}]
        ordered = sorted((x for x in host_calls if x.is_on_host), key=lambda span: span.end_s)
        return ordered[:-1] if ordered and ordered[-1].kind == "wait" else ordered

    @cached_property
    def work(self) -> list[Span]:
        """The kernels and copies, in the order of their starts."""
        return sorted((x for x in self.record.spans if x.is_work), key=lambda span: span.start_s)

    def __post_init__(self) -> None:
        if not self.calls or not self.work:
            raise InvalidOptionError(
                "the timeline has no launch with its kernel; record a program that uses the GPU"
            )
        if self.n_before >= len(self.calls):
            calls = counted(len(self.calls), "call")
            raise InvalidOptionError(
                f"n_before={self.n_before}, but the program makes {calls}; give a smaller number"
            )

    @property
    def returned_s(self) -> float:
        """Seconds at which the last call of the program returned."""
        return self.calls[-1].end_s

    @property
    def started_s(self) -> float:
        """Seconds at which the stopwatch starts."""
        return self.calls[self.n_before].start_s

    @property
    def title(self) -> str:
        if self.n_before:
            own = [each for each in self.work if each.correlation in self._timed]
            busy = format_time(sum(each.duration_s for each in own))
            return f"A stopwatch reads {format_time(self.reading_s)} for {busy} of work"
        late = {each.name for each in self.work if each.end_s > self.returned_s}
        done = [each for each in self.work if each.end_s <= self.returned_s]
        # One call may start several kernels: it is finished with the last of them.
        n_all, n_done = len(self.work), len(done)
        if self.names:
            n_all, n_done = len(self.names), len({each.name for each in done} - late)
        if n_all == 1:
            has = "has finished" if n_done else "has not finished"
            return f"The call has returned. The GPU {has} its work"
        every = "Both" if n_all == _TWO else f"All {spelled(n_all)}"
        finished = "all" if n_done == n_all else spelled(n_done)
        return f"{every} calls have returned. The GPU has finished {finished} of them"

    @property
    def _timed(self) -> set[int | None]:
        """The correlations of the calls that the stopwatch times."""
        return {each.correlation for each in self.calls[self.n_before :]}

    @property
    def reading_s(self) -> float:
        """What a stopwatch around the program, or the end of it, reads."""
        return self.returned_s - self.started_s

    @property
    def words(self) -> str:
        begin_s = min(span.start_s for span in self.calls)
        first, last = self.work[0], max(self.work, key=lambda span: span.end_s)
        # On hardware a library may call CUDA several times for one call of the program.
        named = {call.name for call in self.calls} if self.names else self.calls
        return (
            f"The host's {counted(len(named), 'call')} have returned after "
            f"{format_time(self.returned_s - begin_s)}. "
            f"The GPU works from {format_time(first.start_s - begin_s)} until "
            f"{format_time(last.end_s - begin_s)}."
        )

    @property
    def lanes(self) -> list[str]:
        """The streams with work, in the order of their numbers."""
        pairs = {(span.device or 0, span.stream or 0, span.lane) for span in self.work}
        return [lane for *_, lane in sorted(pairs)]

    @property
    def height_in(self) -> float:
        return _MARGIN_IN + _ROW_IN * (2 + len(self.lanes))

    def draw(self, ax: "Axes") -> "Axes":
        begin_s = self.calls[0].start_s
        end = (max(span.end_s for span in self.work) - begin_s) * _US
        start, stop = ((at - begin_s) * _US for at in (self.started_s, self.returned_s))
        ax.set_xlim(-0.01 * max(end, stop), 1.06 * max(end, stop))
        rows = {lane: -1 - index for index, lane in enumerate(self.lanes)}
        for span in (*self.calls, *self.work):
            row = 0 if span.is_on_host else rows[span.lane]
            first, last = ((at - begin_s) * _US for at in (span.start_s, span.end_s))
            # Without names of the reader, a launch would show the name of a function of CUDA.
            text = span.name if self.names or not span.is_on_host else ""
            text = "wait" if span.kind == "wait" else one_line(text)
            is_timed = not self.n_before or span.correlation in self._timed
            _bar(ax, row, first, last, look_of(span.kind).colour if is_timed else MUTED, text)
        for at in {start, stop} - {0.0}:
            ax.axvline(at, color=INK, linewidth=1.2, linestyle=":")
        _bracket(ax, (start, stop), 0.6, f"a stopwatch reads {format_time(self.reading_s)}")
        green, low = look_of("kernel").colour, -len(rows) - 0.55
        first = (self.work[0].start_s - begin_s) * _US
        ax.annotate("", (end, low), (first, low), arrowprops={**_ARROW, "color": green})
        text, middle = f"the GPU works until {format_time(end / _US)}", ((first + end) / 2, low)
        write_beside(ax, text, middle, (0, -5), color=green, fontweight="bold")
        lanes = ["GPU"] if len(rows) == 1 else [f"GPU, {lane}" for lane in rows]
        ax.set_yticks([0, *rows.values()], ["host", *lanes])
        ax.set_ylim(low - 0.45, 1.15)
        return finish(ax, "Timeline", "time (µs)", "", legend=False)


@typed
def host_and_gpu(
    record: Timeline,
    ax: "Axes | None" = None,
    *,
    names: Sequence[str] = (),
    n_before: int = 0,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw what the host launched, what the GPU did of it, and what a stopwatch reads.

    The wait with which :func:`gpulab.timeline` ends is not part of the program and not drawn.

    Parameters
    ----------
    record
        From :func:`gpulab.timeline`.
    ax
        Axes to draw on. None: return a figure.
    names
        Names for the calls, in their order, such as ``"abc"``, and for their kernels.
    n_before
        Number of calls before the stopwatch starts. They and their kernels are drawn in grey.

    Raises
    ------
    InvalidOptionError
        If the timeline has no kernel, or ``n_before`` is not less than the number of calls.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     s = torch.ones(1280, 1280, device="cuda")
    ...     record = gpulab.timeline(lambda: (s @ s, s @ s), n_warmup=3)
    >>> plots.host_and_gpu(record, names="ab").title
    'Both calls have returned. The GPU has finished none of them (virtual NVIDIA H200)'
    """
    TIMELINE.check(record=record)
    COUNT_OR_ZERO.check(n_before=n_before)
    kernel_names = checked_names(names)
    shown = named(record, kernel_names)
    is_named = shown is not record
    return show(_HostAndGpu(shown, kernel_names if is_named else (), n_before), ax, figure)


class _Pair(NamedTuple):
    """A timeline with two events: its spans in microseconds since the first event."""

    name: str
    spans: list[tuple[float, float, Span]]
    read: float

    @classmethod
    def of(cls, name: str, record: Timeline) -> "_Pair":
        events = sorted(span.start_s for span in record.spans if span.kind == "event")
        if len(events) < _TWO:
            raise InvalidOptionError(
                f"the timeline {name!r} has {counted(len(events), 'event')}; "
                "record a program with an event before its work and one after it"
            )
        zero_s, end_s = events[0], events[-1]
        spans = [((x.start_s - zero_s) * _US, (x.end_s - zero_s) * _US, x) for x in record.spans]
        return cls(name, sorted(spans, key=lambda each: each[:2]), (end_s - zero_s) * _US)

    @property
    def between(self) -> list[tuple[float, float]]:
        """The kernels and copies between the events."""
        return [
            (start, end)
            for start, end, span in self.spans
            if span.is_work and end > 0 and start < self.read
        ]

    @property
    def pauses(self) -> list[tuple[float, float]]:
        """The times between the events in which the GPU does nothing."""
        edges = [0.0, *(edge for times in self.between for edge in times), self.read]
        return [
            (start, end) for start, end in list(pairwise(edges))[::2] if end - start > _FLOOR_US
        ]


@dataclass(frozen=True, slots=True)
class _BetweenTwoEvents(Plot):
    record: list[Timeline]
    pairs: tuple[_Pair, ...]

    @property
    def title(self) -> str:
        several = len(self.pairs) > 1
        reads = [
            format_time(pair.read / _US) + (f" ({pair.name})" if several else "")
            for pair in self.pairs
        ]
        return f"The events are {', '.join(reads[:-1])}{' and ' * several}{reads[-1]} apart"

    @property
    def words(self) -> str:
        return "\n".join(
            f"{pair.name}: the events are {format_time(pair.read / _US)} apart, and the GPU works "
            f"for {format_time(sum(end - start for start, end in pair.between) / _US)} of it."
            for pair in self.pairs
        )

    @property
    def height_in(self) -> float:
        return _MARGIN_IN + 2.6 * _ROW_IN * len(self.pairs)

    def draw(self, ax: "Axes") -> "Axes":
        longest = max(pair.read for pair in self.pairs)
        ax.set_xlim(-_BEFORE * longest, 1.25 * longest)
        ticks: dict[float, str] = {}
        for index, pair in enumerate(self.pairs):
            row = -3.4 * index
            _draw_pair(ax, pair, row)
            ticks |= {row: "host", row - 1.2: pair.name}
            if index:
                ax.axhline(row + 0.95, color=MUTED, linewidth=0.8)
        ax.set_yticks(list(ticks), [shortened(text, _MOST_NAME) for text in ticks.values()])
        ax.set_ylim(min(ticks) - 1.2, 0.7)
        return finish(ax, "Timeline", "time since the first event (µs)", "", legend=False)


# What the host's calls are named in the picture, by a part of their name in CUDA.
_CALLS = {"EventRecord": "record", "Launch": "launch", "Memcpy": "copy"}


def _draw_pair(ax: "Axes", pair: _Pair, row: float) -> None:
    gpu = row - 1.2
    calls = [
        _bar(ax, row, start, end, look_of(span.kind).colour, text)
        for start, end, span in pair.spans
        if span.is_on_host and span.kind != "wait"
        for part, text in _CALLS.items()
        if part in span.name
    ]
    if not any(middle is not None for middle in calls):
        ax.text(ax.get_xlim()[0], row, " ← launched before", va="center", fontweight="bold")
    for start, end, span in pair.spans:
        if span.is_work:
            name = shortened(one_line(span.name), _MOST_NAME)
            is_between = end > 0 and start < pair.read
            colour = look_of(span.kind).colour if is_between else MUTED
            middle = _bar(ax, gpu, start, end, colour, "" if is_between else name)
            if is_between and middle is not None:
                _write_below(ax, name, middle, gpu, colour)
    for start, end in pair.pauses:
        colour = look_of("wait").colour
        ax.barh(gpu, end - start, _BAR, start, fc="none", ec=colour, hatch="//", lw=0)
        box: Any = {"facecolor": PAPER, "edgecolor": "none", "pad": 2}
        middle = (start + end) / 2
        ax.text(middle, gpu, "waits", ha="center", va="center", fontsize="small", bbox=box)
    for at, text in ((0.0, "start"), (pair.read, "end")):
        ax.plot([at, at], [gpu - 0.42, gpu + 0.72], color=INK, linewidth=3)
        _write_below(ax, text, at, gpu, INK)
    _bracket(ax, (0, pair.read), gpu + 0.6, format_time(pair.read / _US))


def _write_below(ax: "Axes", text: str, at: float, row: float, colour: str) -> None:
    write_beside(ax, text, (at, row - 0.4), (0, -4), fontsize="small", color=colour)


@typed
def between_two_events(
    record: Mapping[str, Timeline] | Timeline,
    ax: "Axes | None" = None,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw what happens between the first and the last event of a program, or of several.

    The bracket is the time between the events, pauses of the GPU are hatched, and work that is not
    between the events is grey.

    Parameters
    ----------
    record
        Timelines of programs with a pair of events, by name; or one timeline.
    ax
        Axes to draw on. None: return a figure.

    Raises
    ------
    InvalidOptionError
        If a timeline has less than two events.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab import plots
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.zeros(1024, device="cuda")
    ...     start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    ...     record = gpulab.timeline(lambda: (start.record(), x.add_(1), end.record()), n_warmup=3)
    >>> figure = plots.between_two_events(record)
    >>> figure.title
    'The events are 9.55 µs apart (virtual NVIDIA H200)'
    """
    timelines = dict(record.items()) if isinstance(record, Mapping) else {"GPU": record}
    if not timelines:
        raise InvalidOptionError("record={} has no timelines; give them by name")
    for each in timelines.values():
        TIMELINE.check(record=each)
    pairs = tuple(_Pair.of(one_line(str(name)), each) for name, each in timelines.items())
    return show(_BetweenTwoEvents(list(timelines.values()), pairs), ax, figure)
