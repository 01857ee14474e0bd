"""Assign each span a lane and a row, so that overlapping spans are not drawn on one another."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpulab.tracing._spans import Span

HOST_LANE = "host"
# With many overlapping spans in one lane, the rest is drawn on top of one another in the last row,
# so that one lane cannot fill the whole picture.
_MAX_ROWS = 8


@dataclass(frozen=True, slots=True)
class Lane:
    """A thread of the host or a stream in the picture; it has several rows if its spans overlap.

    Its name is the ``lane`` of its spans, e.g. ``"stream 7"``; ``device`` is None for the host.
    Rows count from the top of the timeline.
    """

    name: str
    device: int | None
    first_row: int
    n_rows: int


@dataclass(frozen=True, slots=True)
class LaneLayout:
    """The lanes of a timeline, the host and then the streams of each GPU, and each span's row."""

    lanes: tuple[Lane, ...]
    rows: tuple[int, ...]


def layout(spans: Sequence[Span]) -> LaneLayout:
    """Return the lanes of a timeline and the row of each span.

    The host's main thread comes first, then its other threads, then the streams by device and
    number. In a lane, a span that overlaps another one gets the next row that is free, up to 8
    rows. Spans without duration, such as events, stay in the first row.
    """
    indices_by_lane: dict[tuple[int | None, str], list[int]] = {}
    for index, span in enumerate(spans):
        indices_by_lane.setdefault((_device_of(span), span.lane), []).append(index)
    rows = [0] * len(spans)
    lanes: list[Lane] = []
    first_row = 0
    for key in sorted(indices_by_lane, key=lambda key: _rank(spans[indices_by_lane[key][0]])):
        n_rows = _fill(spans, sorted(indices_by_lane[key], key=lambda p: spans[p].start_s), rows)
        for index in indices_by_lane[key]:
            rows[index] += first_row
        device, name = key
        lanes.append(Lane(name, device, first_row, n_rows))
        first_row += n_rows
    return LaneLayout(tuple(lanes), tuple(rows))


def _fill(spans: Sequence[Span], indices: list[int], rows: list[int]) -> int:
    """Write the row of each span of one lane into ``rows``, and return the number of rows."""
    # The end of the last span in each row; the first row is free from the start.
    ends_s = [float("-inf")]
    for index in indices:
        span = spans[index]
        # An event has no length and would open a new row for nothing.
        if span.start_s == span.end_s:
            continue
        row = next((row for row, end_s in enumerate(ends_s) if end_s <= span.start_s), len(ends_s))
        row = min(row, _MAX_ROWS - 1)
        if row == len(ends_s):
            ends_s.append(span.end_s)
        ends_s[row] = max(ends_s[row], span.end_s)
        rows[index] = row
    return len(ends_s)


def _rank(span: Span) -> tuple[int, int, str]:
    if span.is_on_host:
        return -1, 0, "" if span.lane == HOST_LANE else span.lane
    return span.device or 0, span.stream or 0, span.lane


def _device_of(span: Span) -> int | None:
    return None if span.is_on_host else span.device or 0
