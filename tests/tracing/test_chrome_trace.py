"""The exported trace follows the Trace Event Format, so that Perfetto opens it."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpulab.tracing import Timeline
from gpulab.tracing._counters import CounterSeries
from tests.support.spans import host, mark, work

TIMELINE = Timeline(
    (
        host("launch", 0, 5, 1, name='launch "a" <b>'),
        work(7, 9, 0, 1, size_bytes=64, engine="copy in"),
        work(8, 12, 0, 1),
        host("host", 13, 14, 2),
        mark("event", 15, 15, 0, 2),
        mark("wait", 8, 15, 1, 3, waits_for=2),
        host("wait", 6, 20, 4, waits_for=1),
        work(0, 1, 0, device=1),
    ),
    "virtual",
    "NVIDIA H200",
    (CounterSeries("memory", "B", 0, (0.0, 3e-6), (512.0, 0.0)),),
)
Event = dict[str, Any]


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    """Return the content of a written trace."""
    path = TIMELINE.to_chrome_trace(tmp_path / "trace.json")
    assert path == tmp_path / "trace.json"
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return read


@pytest.fixture
def events(content: dict[str, Any]) -> list[Event]:
    """Return the events of the trace."""
    found: list[Event] = content["traceEvents"]
    return found


def of(events: list[Event], phase: str) -> list[Event]:
    """Return the events of this phase."""
    return [event for event in events if event["ph"] == phase]


def test_processes_and_threads_are_named(events: list[Event]) -> None:
    """Host and devices are named processes in this order, and each row of a lane is a thread."""
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {
        1: "host",
        2: "cuda:0 (virtual NVIDIA H200)",
        3: "cuda:1 (virtual NVIDIA H200)",
    }
    threads = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
    assert threads == ["host", "host (2)", "stream 0", "stream 0 (2)", "stream 1", "stream 0"]
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    assert {(event["pid"], event["tid"]) for event in of(events, "X")} == named
    sorted_by = [e["args"]["sort_index"] for e in events if e["name"] == "process_sort_index"]
    assert sorted_by == [1, 2, 3]


def test_spans_are_complete_events(events: list[Event]) -> None:
    """Each span is a complete event with its time, duration and known details."""
    copy = of(events, "X")[1]
    assert (copy["name"], copy["cat"], copy["ts"], copy["dur"]) == ("copy", "copy", 7, 2)
    assert copy["args"] == {"stream": 0, "engine": "copy in", "correlation": 1, "size_bytes": 64}
    assert of(events, "X")[0]["name"] == 'launch "a" <b>'
    assert len(of(events, "X")) == len(TIMELINE.spans)


def test_moments_last_a_nanosecond(events: list[Event], tmp_path: Path) -> None:
    """Events last 1 ns, since a slice without length cannot have an arrow."""
    moments = [event for event in of(events, "X") if event["cat"] == "event"]
    assert [(event["ts"], event["dur"]) for event in moments] == [(14.999, 0.001)]
    first = Timeline((mark("event", 0, 0, 0, 1),), "virtual", "NVIDIA H200")
    (moment,) = of(
        json.loads(first.to_chrome_trace(tmp_path / "t.json").read_text())["traceEvents"], "X"
    )
    assert (moment["ts"], moment["dur"]) == (0, 0.001)
