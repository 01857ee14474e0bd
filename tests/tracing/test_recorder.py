"""Host and streams on one axis: who was busy, who waited, and for whom."""

from collections.abc import Callable, Iterator

import pytest
import torch

import gpulab
from gpulab.gpus import gpu
from gpulab.tracing import Recorder, Span
from gpulab.virtual import Gaps, VirtualGpu
from gpulab.virtual.simulator import HostCosts

HOST = HostCosts()
GAPS = Gaps()
CYCLES_PER_US = gpu("H200").boost_clock_mhz
TICK_S = 33e-9


def sleep_us(duration_us: int) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(duration_us * CYCLES_PER_US)


@pytest.fixture(autouse=True)
def h200() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 whose context exists already."""
    with gpulab.virtual_gpu("H200", first_use=False) as virtual:
        yield virtual


def ns(span: Span) -> int:
    """Return the length of a span in whole nanoseconds."""
    return round((span.end_s - span.start_s) * 1e9)


def test_timeline_says_whose_it_is() -> None:
    """An empty timeline still names its device and its source."""
    timeline = Recorder().timeline()
    assert (timeline.spans, timeline.source) == ((), "virtual")
    assert timeline.device_name == "NVIDIA H200"


def test_host_span_is_the_time_of_the_block() -> None:
    """A launch keeps the host for its own cost and a look at the clock, from the zero on."""
    recorder = Recorder()
    with recorder.host("launch", kind="launch"):
        sleep_us(100)
    (span,) = recorder.timeline().spans
    assert (span.kind, span.name, span.lane, span.stream) == ("launch", "launch", "host", None)
    assert ns(span) == HOST.sleep_launch_ns + HOST.clock_read_ns
    assert span.start_s == pytest.approx(HOST.clock_read_ns * 1e-9, abs=1e-9)


def test_host_span_of_a_block_that_raises_is_kept() -> None:
    """The error goes on; the span stands."""
    recorder = Recorder()
    with pytest.raises(ValueError, match=r"^mine$"), recorder.host("fails"):
        raise ValueError("mine")
    assert [span.name for span in recorder.timeline().spans] == ["fails"]


def test_device_span_is_the_time_between_its_events() -> None:
    """Behind queued work a kernel's span is its own time and the floor of an event pair."""
    recorder = Recorder()
    sleep_us(100)
    with recorder.kernel("k"):
        sleep_us(50)
    (span,) = recorder.timeline().spans
    assert (span.kind, span.name, span.lane, span.stream) == ("kernel", "k", "stream 0", 0)
    floor_ns = GAPS.mark_to_work_ns + GAPS.work_to_mark_ns
    assert ns(span) == pytest.approx(50_000 + floor_ns, abs=32)


def test_device_span_stands_in_the_stream_that_is_given() -> None:
    """Another stream's work, before and inside the block, is not in the span."""
    recorder = Recorder()
    side = torch.cuda.Stream()
    sleep_us(1_000)
    with recorder.kernel("k", side):
        sleep_us(1_000)
        with torch.cuda.stream(side):
            sleep_us(50)
    (span,) = recorder.timeline().spans
    assert span.end_s < 200e-6


def test_device_span_of_a_block_that_raises_is_kept() -> None:
    """What was enqueued before the error is on the device, so it is on the timeline."""
    recorder = Recorder()

    def enqueue_and_fail() -> None:
        with recorder.kernel("fails"):
            sleep_us(100)
            raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$"):
        enqueue_and_fail()
    (span,) = recorder.timeline().spans
    assert ns(span) > 100_000


def test_both_clocks_have_one_zero() -> None:
    """The device's lanes are off by the way of one launch to the device, 3.4 µs here."""
    recorder = Recorder()
    with recorder.host("wait", kind="wait"), recorder.kernel("k"):
        sleep_us(100)
    with recorder.host("synchronize"):
        torch.cuda.synchronize()
    spans = {span.name: span for span in recorder.timeline().spans}
    host_end_s, device_end_s = spans["synchronize"].end_s, spans["k"].end_s
    late_s = (HOST.wake_ns + HOST.clock_read_ns + HOST.launch_latency_ns) * 1e-9
    assert host_end_s - device_end_s == pytest.approx(late_s, abs=TICK_S + 100e-9)


def test_streams_are_numbered_as_they_appear() -> None:
    """The default stream is 0; a stream that is given, or current, takes the next number."""
    recorder = Recorder()
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    for _ in range(2):
        with recorder.kernel("on the second", second, kind="wait"):
            pass
    with torch.cuda.stream(first), recorder.kernel("on the first"):
        sleep_us(10)
    with recorder.kernel("on the default"):
        sleep_us(10)
    lanes = {span.name: (span.lane, span.stream) for span in recorder.timeline().spans}
    assert lanes == {
        "on the second": ("stream 1", 1),
        "on the first": ("stream 2", 2),
        "on the default": ("stream 0", 0),
    }
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_spans_are_in_the_order_of_their_starts() -> None:
    """Host and device spans are merged by time, not by the order in which they ended."""
    recorder = Recorder()
    sleep_us(100)
    with recorder.kernel("late"):
        sleep_us(10)
    with recorder.host("outer"), recorder.host("inner"):
        pass
    assert [span.name for span in recorder.timeline().spans] == ["outer", "inner", "late"]


def test_timeline_can_be_asked_for_again() -> None:
    """A second timeline holds the old spans and the new ones."""
    recorder = Recorder()
    with recorder.host("a"):
        pass
    recorder.timeline()
    with recorder.host("b"):
        pass
    assert [span.name for span in recorder.timeline().spans] == ["a", "b"]


WAITS: dict[str, Callable[[torch.cuda.Stream, torch.cuda.Event], None]] = {
    "torch.cuda.synchronize": lambda _side, _done: torch.cuda.synchronize(),
    "stream.synchronize": lambda side, _done: side.synchronize(),
    "event.synchronize": lambda _side, done: done.synchronize(),
    "stream.wait_event": lambda _side, done: torch.cuda.current_stream().wait_event(done),
    "stream.wait_stream": lambda side, _done: torch.cuda.current_stream().wait_stream(side),
}


@pytest.mark.parametrize("wait", WAITS)
def test_who_blocks_in_the_five_waits(wait: str) -> None:
    """Three of the waits hold up the host, two only the stream; none lets the work overlap."""
    recorder = Recorder()
    side, done = torch.cuda.Stream(), torch.cuda.Event()
    with torch.cuda.stream(side), recorder.kernel("before"):
        sleep_us(1_000)
    done.record(side)
    with recorder.host(wait, kind="wait"):
        WAITS[wait](side, done)
    with recorder.kernel("after"):
        sleep_us(100)
    spans = {span.name: span for span in recorder.timeline().spans}
    if "synchronize" in wait:
        assert ns(spans[wait]) > 900_000
    else:
        assert ns(spans[wait]) < 20_000
    assert spans["after"].start_s >= spans["before"].end_s
