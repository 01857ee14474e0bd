"""Who made whom run, and who waited for whom: found from the numbers that spans share."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpulab.tracing._spans import CounterSeries, Span


class Flow(NamedTuple):
    """An arrow between two spans, given by their places in the timeline.

    Attributes
    ----------
    kind
        ``"launch"``: the first made the second run. ``"record"``: the first put the second, an
        event or a wait, into a stream. ``"wait"``: the second waited for the first.
    source, target
        Places of the two spans.
    """

    kind: str
    source: int
    target: int


def links(spans: Sequence[Span]) -> list[Flow]:
    """Return the arrows of a timeline, launches first.

    A launch has one arrow to each thing that it made a device do; for a graph these are many. A
    wait has one arrow, from what ended last of all that it waited for.
    """
    launched, recorded, awaited = [], [], []
    callers = callers_of(spans)
    done = last_ends(spans)
    for place, span in enumerate(spans):
        if not span.is_on_host and span.correlation in callers:
            caller = callers[span.correlation]
            if span.is_work:
                launched.append(Flow("launch", caller, place))
            else:
                recorded.append(Flow("record", caller, place))
        if span.waits_for in done:
            awaited.append(Flow("wait", done[span.waits_for], place))
    return launched + recorded + awaited


def callers_of(spans: Sequence[Span]) -> dict[int | None, int]:
    """Return the place of the host's call for each correlation."""
    return {
        span.correlation: place
        for place, span in enumerate(spans)
        if span.is_on_host and span.correlation is not None
    }


def last_ends(spans: Sequence[Span]) -> dict[int | None, int]:
    """Return for each correlation the place of what a device did last for it."""
    last: dict[int | None, int] = {}
    for place, span in enumerate(spans):
        if span.is_on_host or span.correlation is None:
            continue
        other = last.get(span.correlation)
        if other is None or spans[other].end_s < span.end_s:
            last[span.correlation] = place
    return last


def queue_depth(spans: Sequence[Span]) -> tuple[CounterSeries, ...]:
    """Return how many launches each device had before it, or in work, at each time.

    A launch counts from the moment when its call returned, or from the start of its work if
    that came first, until all of its work was done. A graph is one launch. CUDA's own queue,
    which blocks the host when it is full, counts otherwise: it holds events and waits, too.
    """
    callers = callers_of(spans)
    pending: dict[tuple[int, int], tuple[float, float]] = {}
    for span in spans:
        if not span.is_work or span.correlation is None or span.correlation not in callers:
            continue
        returned_s = spans[callers[span.correlation]].end_s
        key = (span.device or 0, span.correlation)
        start_s, end_s = pending.get(key, (returned_s, span.end_s))
        pending[key] = (min(start_s, span.start_s), max(end_s, span.end_s))
    by_device = defaultdict(list)
    for (device, _), interval in pending.items():
        by_device[device].append(interval)
    return tuple(
        CounterSeries("queue depth", "launches", device, *at_once(intervals))
        for device, intervals in sorted(by_device.items())
    )


def at_once(
    intervals: Iterable[tuple[float, float]],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the times at which a count of overlapping intervals changes, and the counts."""
    change: dict[float, int] = defaultdict(int)
    for start_s, end_s in intervals:
        change[start_s] += 1
        change[end_s] -= 1
    times_s, counts, count = [], [], 0
    for time_s in sorted(change):
        if change[time_s]:
            count += change[time_s]
            times_s.append(time_s)
            counts.append(float(count))
    return tuple(times_s), tuple(counts)
