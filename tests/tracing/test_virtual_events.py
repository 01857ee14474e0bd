"""Events of the virtual GPU have the simulator's own times, and recording them is free."""

from collections.abc import Callable

import torch

from gpulab.tracing._cuda_events import EventNote
from gpulab.tracing._virtual_events import MachineWatch
from gpulab.tracing.profiling import Records, _capture
from gpulab.virtual import VirtualGpu


def watched(gpu: VirtualGpu, work: Callable[[], object]) -> tuple[Records, list[EventNote]]:
    """Return the records of the work, and the notes about its events."""
    watch = MachineWatch(gpu.machine)
    with watch.watching():
        found = _capture.capture(work)
    return found, watch.event_notes(found.calls)


def test_event_and_wait(gpu: VirtualGpu) -> None:
    """An event has the time at which the device passed it, and the wait knows the event."""
    side, event = torch.cuda.Stream(), torch.cuda.Event()

    def work() -> None:
        torch.cuda._sleep(1_000_000)
        event.record()
        side.wait_event(event)

    found, (first, second) = watched(gpu, work)
    names = {call.correlation: call.name for call in found.calls}
    assert (first.kind, names[first.correlation]) == ("event", "cudaEventRecordWithFlags")
    assert (second.kind, names[second.correlation]) == ("wait", "cudaStreamWaitEvent")
    assert (first.stream, second.stream) == ((0, 0), (0, side.core.number))  # type: ignore[attr-defined]  # ours
    assert second.awaited == first.correlation
    gap_ns = gpu.machine.gpu.device.gaps.work_to_mark_ns
    assert first.at_ns == second.at_ns == found.records[0].end_ns + gap_ns


def test_captured_events_are_left_out(gpu: VirtualGpu) -> None:
    """Events recorded during capture are left out, because they run only with the graph."""
    graph, event, x = torch.cuda.CUDAGraph(), torch.cuda.Event(), torch.ones(4, device="cuda")

    def work() -> None:
        with torch.cuda.graph(graph):
            x.relu_()
            event.record()

    _, marks = watched(gpu, work)
    assert {mark.kind for mark in marks} <= {"synchronize event"}
