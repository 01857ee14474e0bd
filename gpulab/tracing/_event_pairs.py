"""Find pairs of events that time what lies between them, as ``start.elapsed_time(end)`` reads."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpulab.tracing._idle_causes import merged
from gpulab.tracing._spans import Span


@dataclass(frozen=True, slots=True)
class EventPair:
    """Two events of a stream, one after the other, that no stream waits for.

    Attributes
    ----------
    lane
        The stream's lane.
    start_s, end_s
        When the stream reached each of them.
    """

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
    """Return the pairs of events of each stream; an event that a stream waits for orders work."""
    # A wait of the host orders nothing: it comes before the reading.
    awaited = {span.waits_for for span in spans if span.waits_for and not span.is_on_host}
    times_s: dict[str, list[float]] = {}
    for span in sorted(spans, key=lambda span: span.start_s):
        if span.kind == "event" and span.correlation not in awaited:
            times_s.setdefault(span.lane, []).append(span.start_s)
    return tuple(
        EventPair(lane, start_s, end_s)
        for lane, recorded_s in times_s.items()
        for start_s, end_s in zip(recorded_s[::2], recorded_s[1::2], strict=False)
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
