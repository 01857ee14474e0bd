"""Counters over the time of a timeline: engines in use, launches in the queue, bytes in use."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpulab.core.errors import InvalidOptionError
from gpulab.tracing._flows import callers_of
from gpulab.tracing._spans import ENGINES, MOST_S, Span


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """A quantity that changes in steps: each value is valid until the next time.

    The unit is ``"B"`` for bytes, otherwise the noun that is counted, e.g. ``"launches"``. The
    times count from the start of the timeline and ascend. If they go back, a value is not finite,
    or there are not as many values, this raises `InvalidOptionError`.
    """

    name: str
    unit: str
    device: int
    times_s: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times_s) != len(self.values):
            raise InvalidOptionError(
                f"{len(self.times_s)} times and {len(self.values)} values; "
                "a series has one value for each time"
            )
        for time_s in self.times_s:
            if not -MOST_S <= time_s <= MOST_S:
                raise InvalidOptionError(
                    f"times_s has {time_s}; it must be finite seconds, at most {MOST_S:.0e}"
                )
        for value in self.values:
            if not math.isfinite(value):
                raise InvalidOptionError(f"values has {value}; it must be a finite number")
        for before_s, after_s in zip(self.times_s, self.times_s[1:], strict=False):
            # Not "before_s > after_s": that comparison is False if one of them is nan.
            if not before_s <= after_s:
                raise InvalidOptionError(
                    f"times_s goes from {before_s} to {after_s}; give the readings in the order "
                    "of their times"
                )

    @property
    def largest(self) -> float:
        """The greatest value; 0 without readings."""
        return max(self.values, default=0.0)


def counter_series(
    spans: Sequence[Span], memory: Sequence[CounterSeries]
) -> tuple[CounterSeries, ...]:
    """Return the series to draw below the lanes: engines, queue and memory, sorted by device."""
    every_series = [*engine_use(spans), *queue_depth(spans), *memory]
    return tuple(sorted(every_series, key=lambda series: series.device))


def engine_use(spans: Sequence[Span]) -> tuple[CounterSeries, ...]:
    """Return how many kernels or copies each engine of each device ran at once, where known."""
    intervals: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for span in spans:
        if span.engine is not None:
            key = (span.device or 0, span.engine)
            intervals.setdefault(key, []).append((span.start_s, span.end_s))
    return tuple(
        CounterSeries(engine, "at once", device, *at_once(intervals[device, engine]))
        for device, engine in sorted(intervals, key=lambda key: (key[0], ENGINES.index(key[1])))
    )


def queue_depth(spans: Sequence[Span]) -> tuple[CounterSeries, ...]:
    """Return how many launches of each device were not finished, over time.

    A launch counts from the moment when its call returned, or from the start of its work if
    that came first, until all of its work was done. A CUDA graph is one launch. CUDA's own queue,
    which blocks the host when it is full, also counts events and waits.
    """
    callers = callers_of(spans)
    pending: dict[tuple[int, int], tuple[float, float]] = {}
    for span in spans:
        if not span.is_work or span.correlation is None or span.correlation not in callers:
            continue
        returned_s = spans[callers[span.correlation]].end_s
        # All work of a CUDA graph has the correlation of its one launch.
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
    # Only the changes are sorted, which takes n log n steps however many intervals overlap.
    change: dict[float, int] = defaultdict(int)
    for start_s, end_s in intervals:
        change[start_s] += 1
        change[end_s] -= 1
    times_s, counts, count = [], [], 0
    for time_s in sorted(change):
        # Where one interval ends and another starts at the same time, the count does not change.
        if change[time_s]:
            count += change[time_s]
            times_s.append(time_s)
            counts.append(float(count))
    return tuple(times_s), tuple(counts)
