"""Records of device and host become spans, and what they lack is derived."""

import pytest

from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing import Span
from gpulab.tracing._cuda_events import EventNote
from gpulab.tracing._from_activity import spans_of
from gpulab.tracing.profiling import Records

ZERO = 5_000_000


def call(  # noqa: PLR0913, PLR0917 # what a call consists of
    kind: str, name: str, start: int, end: int, number: int, thread: int = 0
) -> HostCall:
    """Return a host call; times are in ns from `ZERO`."""
    return HostCall(kind, name, ZERO + start, ZERO + end, thread, number)


def done(
    start: int, end: int, number: int | None, stream: int = 7, **more: object
) -> ActivityRecord:
    """Return a device record; times are in ns from `ZERO`."""
    kind, name = str(more.pop("kind", "kernel")), str(more.pop("name", "k"))
    return ActivityRecord(kind, name, ZERO + start, ZERO + end, stream, correlation=number, **more)  # type: ignore[arg-type]  # plain options


def made(
    records: list[ActivityRecord], calls: list[HostCall], *marks: EventNote
) -> tuple[Span, ...]:
    """Return the spans made from these records, calls and notes."""
    found = Records(tuple(records), tuple(calls), "measured", "NVIDIA H200")
    return spans_of(found, marks, lambda name: name)[0]


def ns(span: Span) -> tuple[int, int]:
    """Return start and end in whole nanoseconds."""
    return round(span.start_s * 1e9), round(span.end_s * 1e9)


LAUNCH = call("launch", "cudaLaunchKernel", 0, 50, 1)


@pytest.mark.parametrize(
    ("name", "kind", "engine"),
    [
        ("Memcpy HtoD (Pinned -> Device)", "copy", "copy in"),
        ("Memcpy DtoH (Device -> Pageable)", "copy", "copy out"),
        ("Memcpy PtoP (Device -> Device)", "copy", "copy between GPUs"),
        ("Memcpy DtoD (Device -> Device)", "copy", "compute"),
        ("copy in", "copy", "copy in"),
        ("copy out", "copy", "copy out"),
        ("copy between GPUs", "copy", "copy between GPUs"),
        ("Memset (Device)", "kernel", "compute"),
        ("my HtoD kernel", "kernel", "compute"),
    ],
)
def test_engines(name: str, kind: str, engine: str) -> None:
    """Copies are recognized by the names of driver and model; a fill counts as a kernel."""
    record_kind = "memcpy" if kind == "copy" else "kernel"
    (span,) = made([done(0, 5, None, kind=record_kind, name=name, size_bytes=64)], [])
    assert (span.kind, span.engine, span.size_bytes) == (kind, engine, 64)


def test_kinds_of_calls() -> None:
    """Calls other than launches and waits are host spans; queries are left out."""
    calls = [
        call("other", "cudaEventRecord", 0, 1, 1),
        call("wait", "cudaStreamSynchronize", 2, 3, 2),
        call("other", "cudaStreamIsCapturing", 4, 5, 3),
    ]
    assert [(span.kind, span.name) for span in made([], calls)] == [
        ("host", "cudaEventRecord"),
        ("wait", "cudaStreamSynchronize"),
    ]


def test_threads_of_the_host() -> None:
    """The thread of the final wait is the main one, and the others are numbered."""
    calls = [
        call("launch", "cudaLaunchKernel", 0, 1, 1, thread=33),
        call("launch", "cudaLaunchKernel", 2, 3, 2, thread=11),
        call("wait", "cudaDeviceSynchronize", 4, 5, 3, thread=11),
    ]
    assert [span.lane for span in made([], calls)] == ["host thread 2", "host", "host"]


def test_lanes_of_two_devices() -> None:
    """The same stream number on two devices gives two lanes."""
    spans = made([done(0, 1, None), done(2, 3, None, device=1)], [])
    assert [span.lane for span in spans] == ["cuda:0 stream 7", "cuda:1 stream 7"]


RECORD = call("other", "cudaEventRecord", 60, 62, 2)


def test_marks_without_a_stream_are_not_drawn() -> None:
    """An event on a stream whose number is unknown has no lane, so no span."""
    spans = made([done(70, 90, 1)], [LAUNCH, RECORD], EventNote("event", 2, None))
    assert [span.kind for span in spans] == ["launch", "host", "kernel"]


def awaited(name: str, *marks: EventNote, start: int = 80, before: int = 9) -> int | None:
    """Return what a wait of the host waited for, while streams 7 and 13 have work."""
    records = [done(70, 190, 1), done(100, 150, 5, stream=13), done(300, 400, 8)]
    calls = [
        LAUNCH,
        RECORD,
        call("launch", "cudaLaunchKernel", 66, 70, 5),
        call("wait", name, start, 200, before),
        call("launch", "cudaLaunchKernel", 250, 260, 12),
    ]
    spans = made(records, calls, *marks)
    (found,) = [span for span in spans if span.kind == "wait"]
    return found.waits_for


@pytest.mark.parametrize(
    ("name", "marks", "options", "number"),
    [
        # The device: what ends last of all earlier launches.
        ("cudaDeviceSynchronize", (), {"before": 7}, 1),
        ("cudaDeviceSynchronize", (), {"before": 9}, 8),
        # A stream: its last work, if the stream was noted; otherwise the latest launch.
        ("cudaStreamSynchronize", (EventNote("synchronize stream", 7, (0, 13)),), {}, 5),
        ("cudaStreamSynchronize", (EventNote("synchronize stream", 7, (0, 21)),), {}, None),
        ("cudaStreamSynchronize", (), {}, 5),
        # An event: its record.
        (
            "cudaEventSynchronize",
            (EventNote("event", 2, (0, 7)), EventNote("synchronize event", 7, awaited=2)),
            {},
            2,
        ),
        # Work that had ended before the call was not waited for.
        ("cudaDeviceSynchronize", (), {"start": 195}, None),
    ],
)
def test_what_the_host_waited_for(
    name: str, marks: tuple[EventNote, ...], options: dict[str, int], number: int | None
) -> None:
    """Each kind of wait names the work that ended it."""
    assert awaited(name, *marks, **({"before": 7} | options)) == number
