"""The layout of spans: lanes from top to bottom, and rows where spans overlap."""

from gpulab.tracing import Span
from gpulab.tracing._lanes import Lane, layout
from tests.support.spans import host, work


def test_host_is_on_top_and_streams_follow_by_device_and_number() -> None:
    """Lanes are the host first, then streams by device and number, in any order of spans."""
    spans = [
        Span("kernel", "k", "cuda:1 stream 0", 0, 1, 0, 1),
        work(0, 1, 13),
        work(0, 1, 7),
        Span("host", "h", "host thread 2", 0, 1),
        host("host", 0, 1),
    ]
    placed = layout(spans)
    assert [lane.name for lane in placed.lanes] == [
        *["host", "host thread 2", "stream 7", "stream 13", "cuda:1 stream 0"]
    ]
    assert placed.rows == (4, 3, 2, 1, 0)
    assert [lane.device for lane in placed.lanes] == [None, None, 0, 0, 1]
    assert sum(lane.n_rows for lane in placed.lanes) == 5


def test_what_overlaps_goes_down_a_row() -> None:
    """Overlapping spans use further rows, and a free row is used again."""
    placed = layout([work(0, 10), work(5, 8), work(8, 9), work(10, 11)])
    assert placed.rows == (0, 1, 1, 0)
    assert placed.lanes == (Lane("stream 0", 0, 0, 2),)


def test_rows_of_a_lane_are_limited() -> None:
    """A lane has at most eight rows; further spans are drawn over others."""
    placed = layout([work(n, 100) for n in range(12)])
    assert max(placed.rows) == 7
    assert sum(lane.n_rows for lane in placed.lanes) == 8
