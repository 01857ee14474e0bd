"""The arrows of a timeline: from launch to kernel, and from awaited work to the wait for it."""

from collections.abc import Sequence
from typing import NamedTuple

from gpulab.tracing._spans import Span


class Flow(NamedTuple):
    """An arrow from one span of a timeline to another, by their indices.

    In a ``"launch"`` the source is the call that launched the target. In a ``"record"`` it is the
    call that put the target, an event or a wait, into a stream. In a ``"wait"`` the target waited
    for it.
    """

    kind: str
    source: int
    target: int


def flows(spans: Sequence[Span]) -> list[Flow]:
    """Return the arrows of a timeline, launches first.

    A launch has one arrow to each kernel or copy that it started; a CUDA graph starts many. A wait
    has one arrow, from the work that ended last among all that it waited for.
    """
    launched, recorded, awaited = [], [], []
    callers = callers_of(spans)
    done = last_ends(spans)
    for index, span in enumerate(spans):
        if not span.is_on_host and span.correlation in callers:
            caller = callers[span.correlation]
            if span.is_work:
                launched.append(Flow("launch", caller, index))
            else:
                recorded.append(Flow("record", caller, index))
        # A wait without a source is one for work that was launched before the recording began.
        if span.waits_for in done:
            awaited.append(Flow("wait", done[span.waits_for], index))
    return launched + recorded + awaited


def callers_of(spans: Sequence[Span]) -> dict[int | None, int]:
    """Return the index of the host's call for each correlation number."""
    return {
        span.correlation: index
        for index, span in enumerate(spans)
        if span.is_on_host and span.correlation is not None
    }


def last_ends(spans: Sequence[Span]) -> dict[int | None, int]:
    """Return the index of the span on a device that ended last, for each correlation number."""
    # All kernels of a CUDA graph share one correlation, and a wait for the graph waits for the
    # last of them.
    last: dict[int | None, int] = {}
    for index, span in enumerate(spans):
        if span.is_on_host or span.correlation is None:
            continue
        other = last.get(span.correlation)
        if other is None or spans[other].end_s < span.end_s:
            last[span.correlation] = index
    return last
