"""Convert a timeline to Chrome's trace format, which Perfetto and chrome://tracing open."""

from collections.abc import Iterator, Sequence

from gpulab.core.foreign_text import visible
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._flows import flows
from gpulab.tracing._lanes import LaneLayout, layout
from gpulab.tracing._spans import Span

TraceEvent = dict[str, object]

_HOST_PROCESS = 1  # some viewers do not show process 0
# A viewer draws no arrow at a span without length, so an event becomes a slice of one nanosecond.
# The event is the end of that slice: as its start, the slice would begin after a wait that ended
# at the same time, and the arrow between them would go back.
_LEAST_US = 0.001


def trace(
    spans: Sequence[Span], series: Sequence[CounterSeries], device_label: str, device_name: str
) -> dict[str, object]:
    """Return the content of a trace file, ready for ``json.dumps``.

    The host is one process and each device another; lanes are threads. Times are microseconds from
    the start of the timeline, rounded to nanoseconds. The format is Google's "Trace Event Format":
    metadata (``M``), complete events (``X``), flow events (``s`` and ``f``) and counters (``C``).
    An arrow's ends must lie inside the spans that it joins, so the arrow of a wait ends at the
    later start of the two spans.
    """
    placed = layout(spans)
    events = [
        *_names(placed, device_label),
        *(_complete(span, row) for span, row in zip(spans, placed.rows, strict=True)),
        *_flows(spans, placed),
        *_counters(series),
    ]
    return {
        "traceEvents": events,
        # The times themselves are microseconds, whatever is written here.
        "displayTimeUnit": "ns",
        "otherData": {"device": visible(device_name), "place": device_label},
    }


def _names(placed: LaneLayout, device_label: str) -> Iterator[TraceEvent]:
    processes = set()
    for lane in placed.lanes:
        process = _process(lane.device)
        if process not in processes:
            processes.add(process)
            name = "host" if lane.device is None else f"cuda:{lane.device} ({device_label})"
            yield _metadata(process, 0, "process_name", {"name": name})
            # Puts the host above the devices, whatever their names are.
            yield _metadata(process, 0, "process_sort_index", {"sort_index": process})
        for row in range(lane.first_row, lane.first_row + lane.n_rows):
            number = row - lane.first_row + 1
            name = visible(lane.name if number == 1 else f"{lane.name} ({number})")
            yield _metadata(process, row + 1, "thread_name", {"name": name})
            yield _metadata(process, row + 1, "thread_sort_index", {"sort_index": row})


def _metadata(process: int, thread: int, name: str, args: TraceEvent) -> TraceEvent:
    return {"ph": "M", "pid": process, "tid": thread, "name": name, "ts": 0, "args": args}


def _complete(span: Span, row: int) -> TraceEvent:
    args = {
        name: value
        for name in ("stream", "engine", "correlation", "waits_for", "size_bytes")
        if (value := getattr(span, name)) is not None
    }
    start_us, end_us = _slice(span)
    return {
        "ph": "X",
        "cat": span.kind,
        "name": visible(span.name),
        **_thread(span, row),
        "ts": start_us,
        "dur": round(end_us - start_us, 3),
        "args": args,
    }


def _flows(spans: Sequence[Span], placed: LaneLayout) -> Iterator[TraceEvent]:
    for number, flow in enumerate(flows(spans), start=1):
        source, target = spans[flow.source], spans[flow.target]
        start_us = _slice(source)[0]
        first_us, last_us = _slice(target)
        meeting_us = max(start_us, first_us)
        if meeting_us >= last_us:
            continue  # the wait ended before the work began, and no arrow may go back in time
        common = {"cat": flow.kind, "name": flow.kind, "id": number}
        ends = (
            ({"ph": "s"}, source, start_us, flow.source),
            # "bp": "e" binds the end to the span around it, and not to the next one.
            ({"ph": "f", "bp": "e"}, target, meeting_us, flow.target),
        )
        for phase, span, time_us, index in ends:
            yield {**phase, **common, **_thread(span, placed.rows[index]), "ts": time_us}


def _counters(series: Sequence[CounterSeries]) -> Iterator[TraceEvent]:
    for each in series:
        for time_s, value in zip(each.times_s, each.values, strict=True):
            yield {
                "ph": "C",
                "pid": _process(each.device),
                "tid": 0,
                "name": visible(each.name),
                "ts": _us(time_s),
                "args": {visible(each.unit): value},
            }


def _thread(span: Span, row: int) -> TraceEvent:
    # A span of a hand-made timeline may have no device; it is drawn on the first one.
    device = None if span.is_on_host else span.device or 0
    return {"pid": _process(device), "tid": row + 1}


def _process(device: int | None) -> int:
    return _HOST_PROCESS if device is None else _HOST_PROCESS + 1 + device


def _slice(span: Span) -> tuple[float, float]:
    """Return start and end in microseconds, at least a nanosecond apart."""
    start_us, end_us = _us(span.start_s), _us(span.end_s)
    if end_us - start_us >= _LEAST_US:
        return start_us, end_us
    start_us = max(0.0, round(end_us - _LEAST_US, 3))
    return start_us, max(end_us, _LEAST_US)


def _us(time_s: float) -> float:
    # Whole nanoseconds: further digits come from floating point and make the file longer.
    return round(time_s * 1e6, 3)
