"""A double buffer recorded on an H200 shows what must be true for real timelines."""

from pathlib import Path

import pytest

from gpulab.tracing import Timeline, timeline_plot
from gpulab.tracing._page import content

COPIES, KERNELS = 6, 12


@pytest.fixture(scope="module")
def recorded() -> Timeline:
    """Return the timeline of six steps, each with a copy and two matmuls on two streams."""
    path = Path(__file__).parents[1] / "data" / "timeline-h200.json"
    return Timeline.from_json(path.read_text("utf-8"))


def test_summary_of_the_double_buffer(recorded: Timeline) -> None:
    """The summary gives busy share, overlap and the cause of the longest gaps."""
    summary = recorded.summary()
    (share,) = summary.devices
    assert share.busy_s / summary.window_s == pytest.approx(0.954, abs=0.001)
    assert share.overlap_achieved == pytest.approx(0.83, abs=0.01)
    assert {(gap.cause, gap.detail) for gap in summary.gaps[:4]} == {
        ("event", "waited for an event of stream 7")
    }


def test_pictures_show_the_same(recorded: Timeline) -> None:
    """Widget and picture have the same lanes and series, and name the source."""
    names = ["host", "stream 7", "stream 17", "queue depth", "memory"]
    sent = content(recorded)
    assert [one["name"] for one in (*sent["lanes"], *sent["series"])] == names
    description = timeline_plot(recorded).figure().description
    assert f"the rows {', '.join(names[:3])}, between events, queue depth (≤ " in description
    assert "NVIDIA H200, recorded" in description
