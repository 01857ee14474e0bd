"""Calls of torch.cuda that record or wait for events are noted and matched with host calls."""

import pytest
import torch

import gpulab
from gpulab.happens_before.activity import HostCall
from gpulab.tracing._cuda_events import EventCall, EventListener, EventNote, event_notes

SEVEN, SIDE = (0, 0), (0, 1234)
NUMBERS = {SEVEN: (0, 7), SIDE: (0, 13)}


def call(name: str, end_ns: int, number: int) -> HostCall:
    """Return a host call that took a microsecond."""
    return HostCall("other", name, end_ns - 1_000, end_ns, 0, number)


def test_notes_of_a_program() -> None:
    """Records and waits of streams and host are noted in order, with their times."""
    times = iter(range(100))
    with gpulab.virtual_gpu("H200"):
        listener = EventListener(lambda: next(times))
        side, event, unused = torch.cuda.Stream(), torch.cuda.Event(), torch.cuda.Event()
        with listener.listening():
            event.record()
            side.wait_event(event)
            side.wait_event(unused)
            event.synchronize()
            side.synchronize()
            torch.cuda.synchronize()
            unused.synchronize()
        event.record()
        main, other = (0, 0), (0, side.cuda_stream)
    recorded = EventCall("event", 0, main)
    assert listener.calls == [
        recorded,
        EventCall("wait", 1, other, recorded),
        EventCall("synchronize event", 2, None, recorded),
        EventCall("synchronize stream", 3, other),
        EventCall("synchronize event", 4),
    ]
    assert set(listener.streams) == {main, other}


def test_what_is_no_wait_is_not_noted() -> None:
    """Reading memory, keeping it alive and a backward pass make no note."""
    listener = EventListener(lambda: 0)
    listener.host_reads(torch.ones(1), "numpy")
    listener.is_kept(torch.ones(1), None)  # type: ignore[arg-type]  # not looked at
    with listener.backward():
        pass
    assert listener.calls == []


def test_calls_are_found_by_name_and_time() -> None:
    """A note is matched with the latest call of its kind that had ended by then."""
    first = EventCall("event", 11_000, SEVEN)
    calls_of_events = [
        first,
        EventCall("wait", 21_000, SIDE, first),
        EventCall("synchronize event", 31_000, None, first),
        EventCall("synchronize stream", 41_000, (0, 99)),
    ]
    calls = [
        call("cudaEventRecord", 5_000, 1),
        call("cudaEventRecordWithFlags", 10_000, 2),
        call("cudaLaunchKernel", 10_900, 3),
        call("cudaStreamWaitEvent", 20_000, 4),
        call("cudaEventSynchronize", 30_000, 5),
        call("cudaStreamSynchronize", 40_000, 6),
    ]
    assert event_notes(calls_of_events, calls, NUMBERS) == [
        EventNote("event", 2, (0, 7)),
        EventNote("wait", 4, (0, 13), awaited=2),
        EventNote("synchronize event", 5, awaited=2),
        EventNote("synchronize stream", 6),
    ]


@pytest.mark.parametrize(
    ("after_ns", "is_found"), [(4_999, False), (5_000, True), (110_000, True), (110_001, False)]
)
def test_a_call_is_found_near_its_note(after_ns: int, is_found: bool) -> None:  # noqa: FBT001 # from the table
    """It ended up to 5 µs after the note, as clocks differ, and at most 100 µs before it."""
    notes = event_notes(
        [EventCall("event", after_ns, SEVEN)], [call("cudaEventRecord", 10_000, 1)], NUMBERS
    )
    assert bool(notes) is is_found


def test_no_call_is_used_twice() -> None:
    """Two notes close together are matched with different calls."""
    calls_of_events = [EventCall("event", 11_000, SEVEN), EventCall("event", 12_000, SIDE)]
    calls = [call("cudaEventRecord", 10_000, 1), call("cudaEventRecord", 20_000, 2)]
    assert [note.correlation for note in event_notes(calls_of_events, calls, NUMBERS)] == [1]
    calls = [call("cudaEventRecord", 10_000, 1), call("cudaEventRecord", 11_900, 2)]
    assert event_notes(calls_of_events, calls, NUMBERS) == [
        EventNote("event", 1, (0, 7)),
        EventNote("event", 2, (0, 13)),
    ]


def test_what_is_captured_is_not_found() -> None:
    """Events recorded during graph capture are skipped, because they run only with the graph."""
    calls = [
        call("cudaStreamBeginCapture", 8_000, 1),
        call("cudaEventRecord", 10_000, 2),
        call("cudaStreamEndCapture", 30_000, 3),
        call("cudaEventRecord", 50_000, 4),
    ]
    calls_of_events = [EventCall("event", 11_000, SEVEN), EventCall("event", 51_000, SEVEN)]
    assert [note.correlation for note in event_notes(calls_of_events, calls, NUMBERS)] == [4]
