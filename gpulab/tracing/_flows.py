"""The arrows of a timeline: from launch to kernel, and from what was waited for to the wait."""

from collections.abc import Sequence
from typing import NamedTuple

from gpulab.tracing._spans import Span


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


def flows(spans: Sequence[Span]) -> list[Flow]:
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
