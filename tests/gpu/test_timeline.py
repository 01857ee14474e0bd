"""Timelines of a program show the same on a real GPU and on the virtual one."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest
import torch

import gpulab
from gpulab.tracing import Timeline, timeline
from gpulab.tracing._flows import flows

pytestmark = pytest.mark.gpu
LONG = 20_000_000  # cycles; about ten milliseconds


@pytest.fixture(params=["real", "virtual"])
def gpu(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test on the GPU of this machine, if there is one, and on the virtual H200."""
    if request.param == "real" and not torch.cuda.is_available():
        pytest.skip("no CUDA GPU: only the virtual one runs here")
    with nullcontext() if request.param == "real" else gpulab.virtual_gpu("H200"):
        yield request.param


def lane_of(shown: Timeline, kind: str) -> str:
    """Return the lane of the device's only span of a kind."""
    (span,) = [span for span in shown.spans if span.kind == kind and not span.is_on_host]
    return span.lane


def test_events_and_waits_are_on_the_lanes_of_their_streams(gpu: str) -> None:
    """An event and a wait are on their streams' lanes, and the wait ends with the event."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    host, target = torch.empty(1 << 20).pin_memory(), torch.empty(1 << 20, device="cuda")

    def work() -> None:
        torch.cuda._sleep(LONG)
        done.record()
        side.wait_event(done)
        with torch.cuda.stream(side):
            target.copy_(host, non_blocking=True)
        side.synchronize()

    shown = timeline(work)
    assert shown.source == {"real": "measured", "virtual": "virtual"}[gpu]
    assert lane_of(shown, "event") == lane_of(shown, "kernel")
    assert lane_of(shown, "wait") == lane_of(shown, "copy") != lane_of(shown, "kernel")
    found = [(shown.spans[flow.source], shown.spans[flow.target]) for flow in flows(shown.spans)]
    assert any(event.kind == "event" and wait.lane == lane_of(shown, "copy")
               and event.end_s <= wait.end_s for event, wait in found)  # fmt: skip
    assert shown.summary().devices[0].overlap_s == 0


@pytest.mark.usefixtures("gpu")
def test_streams_that_do_not_wait_overlap() -> None:
    """Sleeps on two streams that do not wait overlap by more than 90 %."""
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]

    def work() -> None:
        for stream in streams:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(LONG)

    (share,) = timeline(work).summary().devices
    assert share.overlap_achieved is not None
    assert share.overlap_achieved > 0.9


@pytest.mark.usefixtures("gpu")
def test_nodes_of_a_graph_belong_to_its_launch() -> None:
    """All kernels of a graph's replay have the correlation of its one launch."""
    graph, x = torch.cuda.CUDAGraph(), torch.ones(1024, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        x.relu_()
        x.relu_()
    shown = timeline(graph.replay)
    (launch,) = [span for span in shown.spans if span.kind == "launch"]
    kernels = [span for span in shown.spans if span.kind == "kernel"]
    assert [span.correlation for span in kernels] == [launch.correlation] * 2


@pytest.mark.usefixtures("gpu")
def test_memory_rises_and_falls() -> None:
    """The timeline's memory rises and falls by the block that the work allocates and frees."""

    def work() -> None:
        torch.empty(1 << 20, device="cuda").fill_(1)

    (memory,) = timeline(work).memory
    assert max(memory.values) - memory.values[-1] == 4 << 20
