"""Arrows go from launches to the kernels they started, and from events to waits."""

from gpulab.tracing._flows import Flow, flows
from tests.support.spans import host, mark, work

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
    """A graph launch has an arrow to each node, and a wait has one from what ended last."""
    assert flows(SPANS) == [
        Flow("launch", 0, 1),
        Flow("launch", 0, 2),
        Flow("record", 3, 4),
        Flow("wait", 4, 5),
        Flow("wait", 2, 6),
    ]


def test_no_arrow_without_its_other_end() -> None:
    """Work without a known call and a wait for something unknown have no arrow."""
    assert flows([work(0, 1, 0, 7), work(0, 1), host("wait", 0, 1, 2, waits_for=8)]) == []
