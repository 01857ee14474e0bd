"""Find pairs of events that time what lies between them, as ``start.elapsed_time(end)`` reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpulab.tracing._idle_causes import merged
from gpulab.tracing._spans import Span


@dataclass(frozen=True, slots=True)
class EventPair:
    """Two events of a stream's lane, one after the other, whose times are subtracted."""

    lane: str
    start_s: float
    end_s: float

    @property
    def times_s(self) -> tuple[float, float]:
        """When it begins and ends."""
        return self.start_s, self.end_s

    @property
    def duration_s(self) -> float:
        """What the pair reads; CUDA rounds it to the resolution of its events."""
        return self.end_s - self.start_s


def event_pairs(spans: Sequence[Span]) -> tuple[EventPair, ...]:
    """Return the pairs of events of each stream that time something.

    An event that a stream waits for orders work. A host that waits for the second event of a pair
    reads its time afterwards; one that waits for the first wants to know when it is reached.
    """
    ordering = {span.waits_for for span in spans if not span.is_on_host}
    awaited = {span.waits_for for span in spans if span.is_on_host}
    events: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        if span.kind == "event" and span.correlation not in ordering:
            events.setdefault(span.lane, []).append(span)
    return tuple(
        EventPair(lane, start.start_s, end.start_s)
        for lane, recorded in events.items()
        for start, end in zip(recorded[::2], recorded[1::2], strict=False)
        if start.correlation is None or start.correlation not in awaited
    )


def work_between(pair: EventPair, spans: Sequence[Span]) -> float:
    """Return the seconds between two events in which at least one kernel or copy ran."""
    clipped = [
        (max(span.start_s, pair.start_s), min(span.end_s, pair.end_s))
        for span in spans
        if span.is_work and span.start_s < pair.end_s and span.end_s > pair.start_s
    ]
    return sum(end_s - start_s for start_s, end_s in merged(clipped))


def shifted(pairs: Iterable[EventPair], spans: Sequence[Span]) -> list[EventPair]:
    """Return pairs in seconds since the first span began."""
    begin_s = min(span.start_s for span in spans)
    return [
        replace(pair, start_s=pair.start_s - begin_s, end_s=pair.end_s - begin_s) for pair in pairs
    ]
