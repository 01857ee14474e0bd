"""Arrows from launches to what they started, and from what was waited for; the queue."""

from gpulab.tracing import Flow, Span, links
from gpulab.tracing._flows import at_once, queue_depth
from tests.support.spans import US, host, mark, work

SPANS = [
    host("launch", 0, 5, 1),  # 0
    work(7, 9, 0, 1),  # 1
    work(9, 12, 0, 1),  # 2: a second node of the same graph
    host("host", 13, 14, 2),  # 3
    mark("event", 15, 15, 0, 2),  # 4
    mark("wait", 8, 15, 1, 3, waits_for=2),  # 5
    host("wait", 14, 20, 4, waits_for=1),  # 6
]


def test_arrows() -> None:
    """A graph has an arrow to each node, a wait one from what ended last."""
    assert links(SPANS) == [
        Flow("launch", 0, 1),
        Flow("launch", 0, 2),
        Flow("record", 3, 4),
        Flow("wait", 4, 5),
        Flow("wait", 2, 6),
    ]


def test_no_arrow_without_its_other_end() -> None:
    """Work whose call was not seen, and a wait for what was not seen, stand alone."""
    assert links([work(0, 1, 0, 7), work(0, 1), host("wait", 0, 1, 2, waits_for=8)]) == []


def test_last_of_a_graph_is_the_one_that_ends_last() -> None:
    """The order in which the spans are listed does not matter."""
    spans = [SPANS[0], SPANS[2], SPANS[1], SPANS[6]]
    assert links(spans)[-1] == Flow("wait", 1, 3)


def test_queue_holds_what_was_launched_and_is_not_done() -> None:
    """It counts from the return of the call to the end of its last work; a graph counts once."""
    (series,) = queue_depth([*SPANS, host("launch", 6, 8, 9), work(12, 13, 0, 9)])
    assert (series.name, series.unit, series.device) == ("queue depth", "launches", 0)
    assert series.times_s == (5 * US, 8 * US, 12 * US, 13 * US)
    assert series.values == (1, 2, 1, 0)


def test_nodes_of_a_graph_may_come_in_any_order() -> None:
    """The last to end decides."""
    (series,) = queue_depth([SPANS[0], SPANS[2], SPANS[1]])
    assert series.times_s == (5 * US, 12 * US)


def test_work_that_starts_before_its_call_returns_is_in_the_queue() -> None:
    """On an idle device a kernel may even end before that."""
    (series,) = queue_depth([host("launch", 0, 5, 1), work(3, 4, 0, 1)])
    assert series.times_s == (3 * US, 4 * US)


def test_each_device_has_a_queue() -> None:
    """A work without a known call is in none."""
    spans = [host("launch", 0, 1, 1), work(2, 3, 0, 1, device=1), work(5, 6)]
    assert [series.device for series in queue_depth(spans)] == [1]


def test_a_device_that_is_not_known_counts_as_the_first() -> None:
    """Who records by hand names no device."""
    unknown = Span("kernel", "k", "stream 0", 2 * US, 3 * US, 0, correlation=1)
    (series,) = queue_depth([host("launch", 0, 1, 1), unknown])
    assert series.device == 0


def test_counting_what_overlaps() -> None:
    """Where one ends as another begins nothing changes."""
    assert at_once([(0.0, 1.0), (1.0, 2.0), (0.5, 1.5)]) == ((0.0, 0.5, 1.5, 2.0), (1, 2, 1, 0))
