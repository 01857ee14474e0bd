"""The shapes that a timeline is drawn with, and how too many are thinned."""

import numpy as np
import pytest

from gpulab.tracing import Timeline
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._flows import Flow
from gpulab.tracing._geometry import drawing
from gpulab.tracing._spans import SPAN_KINDS
from tests.support.spans import US, host, work


def timeline(*spans: object, memory: tuple[CounterSeries, ...] = ()) -> Timeline:
    """Return a timeline with these spans."""
    return Timeline(tuple(spans), "virtual", "NVIDIA H200", memory)  # type: ignore[arg-type]  # they are spans


def test_all_is_drawn_when_there_is_room() -> None:
    """Bars are sorted by row and start, and time begins with the first span."""
    shown = drawing(
        timeline(work(108, 110, 0, 1, size_bytes=5), work(104, 106), host("launch", 100, 105, 1)),
        max_bars=3,
    )
    bars = shown.bars
    assert tuple(bars.name) == ("launch", "kernel", "kernel")
    assert bars.start_s == pytest.approx([0, 4 * US, 8 * US])
    assert bars.busy_s == pytest.approx([5 * US, 2 * US, 2 * US])
    assert bars.row.tolist() == [0, 1, 1]
    assert [SPAN_KINDS[kind] for kind in bars.kind] == ["launch", "kernel", "kernel"]
    assert np.isnan(bars.size_bytes).tolist() == [True, True, False]
    assert shown.arrows == (Flow("launch", 0, 2),)
    assert (shown.note, shown.length_s) == ("", pytest.approx(10 * US))


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


def test_nothing_is_lost_by_thinning() -> None:
    """For any limit the bars' counts add up to all spans, and rows stay separate."""
    spans = [
        span for n in range(500) for span in (work(n, n + 0.5, n % 2), host("host", n, n + 0.1))
    ]
    for limit in (5, 40, 333):
        shown = drawing(timeline(*spans), max_bars=limit)
        assert shown.bars.count.sum() == 1000
        assert len(shown.bars) <= limit
        assert set(shown.bars.row.tolist()) == {0, 1, 2}


def test_bars_never_get_fewer_than_rows() -> None:
    """Each row has at least one bar, even above the limit."""
    spans = [work(n, n + 0.5, n % 2) for n in range(10)]
    assert len(drawing(timeline(*spans), max_bars=1).bars) == 2


def test_arrows_of_groups_are_left_out() -> None:
    """An arrow from inside a group is left out, and the others get new indices."""
    short = [host("launch", n, n + 0.5, n) for n in range(1, 50)]
    works = [work(n + 60, n + 60.4, 0, n) for n in range(1, 50)]
    long = [host("launch", 200, 300, 99), work(300, 400, 0, 99)]
    shown = drawing(timeline(*works, *long, *short), max_bars=20)
    (arrow,) = shown.arrows
    assert [shown.bars.count[place] for place in (arrow.source, arrow.target)] == [1, 1]
    assert shown.bars.name[arrow.source] == "launch"
    assert shown.bars.end_s[arrow.source] == pytest.approx(299 * US)


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
