"""The timeline of a piece of work on the virtual GPU, exact to the nanosecond."""

from collections.abc import Callable, Iterator

import pytest
import torch

import gpulab
from gpulab.core.errors import ProfilerBusyError
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing import Span, Timeline, _capture, profiling, timeline
from gpulab.tracing._cuda_events import EventCall
from gpulab.tracing.profiling import Records
from gpulab.virtual import VirtualGpu


@pytest.fixture
def virtual() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 with two devices, whose contexts exist already."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False) as entered:
        yield entered


def named(shown: Timeline, name: str) -> Span:
    """Return the only span with this name."""
    (span,) = [span for span in shown.spans if span.name == name]
    return span


@pytest.mark.usefixtures("virtual")
def test_spans_of_a_two_stream_program() -> None:
    """Launch, kernel, copy, event and both kinds of wait appear, each linked to its cause."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    host = torch.empty(1 << 20).pin_memory()
    target = torch.empty(1 << 20, device="cuda")

    def work() -> None:
        torch.cuda._sleep(1_000_000)
        done.record()
        side.wait_event(done)
        with torch.cuda.stream(side):
            target.copy_(host, non_blocking=True)
        side.synchronize()

    shown = timeline(work)
    kernel, copy, event, wait = (
        named(shown, name) for name in ("sleep", "copy in", "event", "wait for event")
    )
    assert (shown.source, shown.device_name) == ("virtual", "NVIDIA H200")
    assert kernel.end_s < event.start_s == wait.end_s < copy.start_s
    assert wait.waits_for == event.correlation
    assert (copy.lane, copy.engine) == (f"stream {side.stream_id}", "copy in")
    assert named(shown, "cudaStreamSynchronize").waits_for == copy.correlation
    assert shown.spans[0].start_s == 0
    assert shown.summary().devices[0].overlap_s == 0


@pytest.mark.usefixtures("virtual")
def test_captured_events_are_left_out() -> None:
    """An event recorded during a capture is reached only when the graph runs."""
    graph, event, x = torch.cuda.CUDAGraph(), torch.cuda.Event(), torch.ones(4, device="cuda")

    def work() -> None:
        with torch.cuda.graph(graph):
            x.relu_()
            event.record()

    assert "event" not in {span.kind for span in timeline(work, n_warmup=0).spans}


def test_program_is_as_fast_as_without(virtual: VirtualGpu) -> None:
    """Recording a timeline takes no virtual time."""
    x = torch.ones(1024, device="cuda")

    def work() -> None:
        x.add_(1)
        torch.cuda.Event().record()
        torch.cuda.synchronize()

    work()
    start_ns = virtual.machine.host.now_ns
    work()
    alone_ns = virtual.machine.host.now_ns - start_ns
    calls = [span for span in timeline(work).spans if span.is_on_host]
    assert round((calls[-2].end_s - calls[0].start_s) * 1e9) == alone_ns


WAITS: dict[str, Callable[[torch.cuda.Stream, torch.cuda.Event], None]] = {
    "torch.cuda.synchronize": lambda _side, _done: torch.cuda.synchronize(),
    "stream.synchronize": lambda side, _done: side.synchronize(),
    "event.synchronize": lambda _side, done: done.synchronize(),
    "stream.wait_event": lambda _side, done: torch.cuda.current_stream().wait_event(done),
    "stream.wait_stream": lambda side, _done: torch.cuda.current_stream().wait_stream(side),
}


@pytest.mark.usefixtures("virtual")
@pytest.mark.parametrize("wait", WAITS)
def test_who_blocks_in_the_five_waits(wait: str) -> None:
    """Three of the waits block the host, two only the stream, and none lets the work overlap."""
    side, done = torch.cuda.Stream(), torch.cuda.Event()

    def work() -> None:
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
        done.record(side)
        WAITS[wait](side, done)
        torch.cuda._sleep(200_000)

    spans = timeline(work).spans
    before, after = (span for span in spans if span.name == "sleep")
    waits_of_host = [span for span in spans if span.is_on_host and span.kind == "wait"]
    waits_of_stream = [span for span in spans if span.name == "wait for event"]
    assert before.end_s <= after.start_s
    if "synchronize" in wait:
        assert len(waits_of_host) == 2  # its own, and the one at the end
        assert waits_of_host[0].duration_s > 900e-6
        assert waits_of_stream == []
    else:
        assert len(waits_of_host) == 1
        (waited,) = waits_of_stream
        assert waited.duration_s > 900e-6
        assert waited.lane == after.lane


@pytest.mark.usefixtures("virtual")
@pytest.mark.parametrize("n_warmup", [0, 2])
def test_calls_of_the_work(n_warmup: int) -> None:
    """The work is called `n_warmup` times and once more for the timeline."""
    calls: list[None] = []
    timeline(lambda: calls.append(None), n_warmup=n_warmup)
    assert len(calls) == n_warmup + 1


@pytest.mark.usefixtures("virtual")
def test_warmup_is_not_shown() -> None:
    """Kernels of the warm-up are absent, even those still running when the recorded call began."""
    shown = timeline(lambda: torch.cuda._sleep(10_000_000), n_warmup=2)
    assert [span.name for span in shown.spans if span.is_work] == ["sleep"]
    assert named(shown, "sleep").start_s < 50e-6


@pytest.mark.usefixtures("virtual")
def test_timeline_inside_a_timeline() -> None:
    """A timeline inside another is refused on every GPU, and the next one works."""
    with pytest.raises(ProfilerBusyError) as error:
        timeline(lambda: timeline(lambda: None))
    assert str(error.value) == (
        "a timeline is being recorded, and there can be only one; take timeline() out of the "
        "work of the outer one, or call them one after the other"
    )
    assert len(timeline(lambda: None).spans) == 1


def test_error_of_the_work(virtual: VirtualGpu) -> None:
    """An error of the work reaches the caller and leaves no method patched."""
    with pytest.raises(ZeroDivisionError):
        timeline(lambda: 1 / 0, n_warmup=0)
    assert "mark" not in vars(virtual.machine)
    assert "hand_out" not in vars(virtual.machine.gpu.memory.usage)
    assert len(timeline(lambda: None).spans) == 1


def test_events_of_a_real_gpu_come_from_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """On CUDA, calls of torch.cuda are noted and matched with the records by their time."""
    call = HostCall("other", "cudaEventRecord", 4_000, 5_000, 0, 2)
    launch = HostCall("launch", "cudaLaunchKernel", 1_000, 2_000, 0, 1)
    kernel = ActivityRecord(
        "kernel", "void at::native::fill<4>(int)", 3_000, 9_000, 7, correlation=1
    )
    found = Records((kernel,), (launch, call), "measured", "NVIDIA H200", 1)
    made = EventCall("event", 5_500, (0, 0))
    monkeypatch.setattr(profiling, "capture", lambda _work: found)
    monkeypatch.setattr(_capture, "stream_numbers", lambda _streams: {(0, 0): (0, 7)})
    seen = _recorded_on_a_real_gpu(monkeypatch, made)
    assert [note.stream for note in seen.notes] == [(0, 7)]
    assert seen.records is found


def _recorded_on_a_real_gpu(
    monkeypatch: pytest.MonkeyPatch, made: EventCall
) -> _capture._Recorded:
    """Run nothing as if on a CUDA GPU, with this noted call."""

    class Heard(_capture.EventListener):
        def __init__(self, clock: object) -> None:
            super().__init__(clock)  # type: ignore[arg-type]  # passed on
            self.calls.append(made)

    monkeypatch.setattr(_capture, "EventListener", Heard)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", lambda: True, raising=False)
    return _capture._recorded(lambda: None, None)
