"""Where each span is drawn: lanes from top to bottom, and rows where spans of a lane overlap."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpulab.tracing._spans import Span

HOST_LANE = "host"
_MAX_ROWS = 8  # of one lane; what overlaps more than that is drawn on top of one another


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the timeline, or several where its spans overlap.

    Attributes
    ----------
    name
        As the spans name it.
    device
        Index of the GPU; None for the host.
    first_row, n_rows
        The rows that it takes, counted from the top of the timeline.
    """

    name: str
    device: int | None
    first_row: int
    n_rows: int


@dataclass(frozen=True, slots=True)
class LaneLayout:
    """The places of all spans.

    Attributes
    ----------
    lanes
        From top to bottom: the host, then the streams of each GPU.
    rows
        The row of each span, in the order of the spans.
    """

    lanes: tuple[Lane, ...]
    rows: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """Rows of all lanes together."""
        return sum(lane.n_rows for lane in self.lanes)


def layout(spans: Sequence[Span]) -> LaneLayout:
    """Place spans so that no two of them lie on one another.

    The host's lane comes first, then further threads of the host, then the streams by device and
    number. In a lane, what overlaps goes down a row; events take no time and stay in the first.
    """
    places: dict[tuple[int | None, str], list[int]] = {}
    for place, span in enumerate(spans):
        places.setdefault((_device_of(span), span.lane), []).append(place)
    rows = [0] * len(spans)
    lanes: list[Lane] = []
    first_row = 0
    for key in sorted(places, key=lambda key: _rank(spans[places[key][0]])):
        n_rows = _fill(spans, sorted(places[key], key=lambda p: spans[p].start_s), rows)
        for place in places[key]:
            rows[place] += first_row
        device, name = key
        lanes.append(Lane(name, device, first_row, n_rows))
        first_row += n_rows
    return LaneLayout(tuple(lanes), tuple(rows))


def _fill(spans: Sequence[Span], places: list[int], rows: list[int]) -> int:
    """Give each span of one lane its row, and return how many rows they need."""
    ends_s = [float("-inf")]
    for place in places:
        span = spans[place]
        if span.start_s == span.end_s:
            continue
        row = next((row for row, end_s in enumerate(ends_s) if end_s <= span.start_s), len(ends_s))
        row = min(row, _MAX_ROWS - 1)
        if row == len(ends_s):
            ends_s.append(span.end_s)
        ends_s[row] = max(ends_s[row], span.end_s)
        rows[place] = row
    return len(ends_s)


def _rank(span: Span) -> tuple[int, int, str]:
    if span.is_on_host:
        return -1, 0, "" if span.lane == HOST_LANE else span.lane
    return span.device or 0, span.stream or 0, span.lane


def _device_of(span: Span) -> int | None:
    return None if span.is_on_host else span.device or 0
