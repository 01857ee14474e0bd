"""The shapes that a timeline is drawn with, and how too many are thinned."""

import pytest

from gpulab.tracing import Timeline
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._geometry import drawing
from tests.support.spans import US, host, work


def timeline(*spans: object, memory: tuple[CounterSeries, ...] = ()) -> Timeline:
    """Return a timeline with these spans."""
    return Timeline(tuple(spans), "virtual", "NVIDIA H200", memory)  # type: ignore[arg-type]  # they are spans


def test_neighbours_become_one() -> None:
    """Short spans that begin in the same piece of time are drawn as one bar."""
    spans = [work(n, n + 0.5) for n in range(100)] + [work(200, 300, name="long")]
    shown = drawing(timeline(*spans), max_bars=30)
    assert shown.note == (
        "101 spans, drawn as 11 bars: neighbours shorter than 10.0 µs are drawn as one."
    )
    first = shown.bars
    assert first.name[0] == "10 spans, mostly kernel"
    assert (first.start_s[0], first.end_s[0]) == (0, pytest.approx(9.5 * US))
    assert first.busy_s[0] == pytest.approx(5 * US)
    assert first.name[-1] == "long"
    assert first.count.tolist() == [10] * 10 + [1]


def test_long_series_keep_their_peaks() -> None:
    """Thinning a series keeps the maximum of each group of neighbours."""
    values = [0.0] * 1000
    values[777] = 5.0
    memory = CounterSeries("memory", "B", 0, tuple(n * US for n in range(1000)), tuple(values))
    shown = drawing(timeline(host("host", 0, 1000), memory=(memory,)), max_bars=10)
    (series,) = shown.series
    assert len(series.values) == 10
    assert series.values[7] == 5
    assert series.times_s[1] == pytest.approx(100 * US)
