"""Convert activity records to spans, and compute the times of events and waits from them."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing._cuda_events import EventNote
from gpulab.tracing._lanes import HOST_LANE
from gpulab.tracing._spans import Span
from gpulab.tracing.profiling import Records

_HOST_KINDS = {"launch": "launch", "wait": "wait", "other": "host"}
_ENGINES = (
    (re.compile(r"HtoD|^copy in$"), "copy in"),
    (re.compile(r"DtoH|^copy out$"), "copy out"),
    (re.compile(r"PtoP|^copy between GPUs$"), "copy between GPUs"),
)
# Calls that only query a state. PyTorch makes them before most launches; they take less than a
# microsecond, and a timeline that shows them hides the calls that matter.
_QUESTIONS = re.compile(
    r"cuda(StreamIsCapturing|StreamGetCaptureInfo|DeviceGetAttribute|FuncGetAttributes|"
    r"PointerGetAttributes|Occupancy|GetLastError|PeekAtLastError|GetDevice)"
)
_NS = 1e-9

StreamNumber = tuple[int, int]


def spans_of(
    records: Records, notes: Sequence[EventNote], shorten: Callable[[str], str]
) -> tuple[tuple[Span, ...], int]:
    """Return the spans of one run, sorted by start, and the time in ns that is their zero.

    CUPTI does not record when a device reached an event or began to wait for one. Unless the note
    contains that time, it is taken to be the end of the work before it in the same stream, or the
    end of the host's call if that was later. A wait of the host is assigned to the last work that
    it can have waited for. The notes are in the order of the program; ``shorten`` returns a
    kernel's label.
    """
    calls = tuple(call for call in records.calls if not _QUESTIONS.match(call.name))
    records = replace(records, calls=calls)
    times_ns = [each.start_ns for group in (records.records, calls) for each in group]
    zero_ns = min(times_ns, default=0)
    maker = _Maker(records, notes, zero_ns)
    spans = [
        *maker.host_spans(),
        *(replace(span, name=shorten(span.name)) for span in maker.work_spans()),
        *maker.event_spans(),
    ]
    return tuple(sorted(spans, key=lambda span: (span.start_s, span.end_s))), zero_ns


class _Maker:
    """Makes the spans of one run from its records."""

    def __init__(self, records: Records, notes: Sequence[EventNote], zero_ns: int) -> None:
        self._records = records.records
        self._calls = {call.correlation: call for call in records.calls}
        self._zero_ns = zero_ns
        self._notes = sorted(notes, key=lambda note: note.correlation)
        self._threads = _threads(records.calls)
        self._has_several = len({record.device for record in self._records}) > 1
        # Correlation numbers grow from launch to launch, and a stream runs its work in the order
        # of launches. So each list is the queue of its stream.
        self._by_stream: dict[StreamNumber, list[ActivityRecord]] = defaultdict(list)
        for record in sorted(self._records, key=lambda record: record.correlation or 0):
            self._by_stream[record.device, record.stream].append(record)
        self._ends_ns: dict[int, int] = {}
        for record in self._records:
            self._note_end(record.correlation, record.end_ns)
        # In the order of the calls: each time depends on those of earlier events in the stream.
        self._reached = {note.correlation: self._times_of(note) for note in self._notes}

    def host_spans(self) -> Iterator[Span]:
        """Yield one span for each call of the host."""
        waits = {note.correlation: note for note in self._notes}
        for call in self._calls.values():
            yield Span(
                _HOST_KINDS[call.kind],
                call.name,
                self._threads[call.thread],
                self._s(call.start_ns),
                self._s(call.end_ns),
                correlation=call.correlation,
                waits_for=self._awaited(call, waits.get(call.correlation)),
            )

    def work_spans(self) -> Iterator[Span]:
        """Yield one span for each record."""
        for record in self._records:
            engine = _engine_of(record)
            yield Span(
                "copy" if record.kind == "memcpy" else "kernel",
                record.name,
                self._lane(record.device, record.stream),
                self._s(record.start_ns),
                self._s(record.end_ns),
                stream=record.stream,
                device=record.device,
                engine=engine,
                correlation=record.correlation,
                size_bytes=record.size_bytes,
            )

    def event_spans(self) -> Iterator[Span]:
        """Yield the events and waits of streams."""
        for note in self._notes:
            if note.stream is None or not note.is_on_device:
                continue
            device, stream = note.stream
            start_ns, end_ns = self._reached[note.correlation]
            yield Span(
                note.kind,
                "event" if note.kind == "event" else "wait for event",
                self._lane(device, stream),
                self._s(start_ns),
                self._s(end_ns),
                stream=stream,
                device=device,
                correlation=note.correlation,
                waits_for=note.awaited,
            )

    def _times_of(self, note: EventNote) -> tuple[int, int]:
        """Return when the device reached an event or a wait, and when it went on."""
        call = self._calls[note.correlation]
        if note.stream is None or not note.is_on_device:
            return call.end_ns, call.end_ns
        start_ns = max(call.end_ns, self._end_before(note.stream, note.correlation))
        if note.kind == "event":
            start_ns = end_ns = start_ns if note.at_ns is None else note.at_ns
        else:
            # Correlation 0 belongs to no call, so a wait for something unknown takes no time.
            awaited_ns = self._ends_ns.get(note.awaited or 0, 0)
            end_ns = max(start_ns, awaited_ns if note.at_ns is None else note.at_ns)
        self._note_end(note.correlation, end_ns)
        # The event joins its stream's queue, so that a later event cannot be placed before it.
        entry = ActivityRecord(
            "event", "", start_ns, end_ns, note.stream[1], correlation=note.correlation
        )
        queue = self._by_stream[note.stream]
        # At its place and not at the end: notes come in the order of calls, but the queue already
        # contains the work of later launches.
        queue.insert(_n_before(queue, note.correlation), entry)
        return start_ns, end_ns

    def _end_before(self, stream: StreamNumber, correlation: int) -> int:
        """Return the end in ns of the work launched on a stream before a call; 0 without any."""
        queue = self._by_stream[stream]
        n_before = _n_before(queue, correlation)
        return queue[n_before - 1].end_ns if n_before else 0

    def _awaited(self, call: HostCall, note: EventNote | None) -> int | None:
        """Return the correlation of the work that a call waited for; None if it did not wait."""
        if call.kind != "wait":
            return None
        number = self._last_of(call, note)
        # Work that had ended before the call began let nobody wait.
        is_late = number is not None and self._ends_ns.get(number, 0) > call.start_ns
        return number if is_late else None

    def _last_of(self, call: HostCall, note: EventNote | None) -> int | None:
        if note is not None and note.kind == "synchronize event":
            return note.awaited
        if note is not None and note.stream is not None:
            queue = self._by_stream[note.stream]
            n_before = _n_before(queue, call.correlation)
            return queue[n_before - 1].correlation if n_before else None
        before = [
            record for record in self._records if (record.correlation or 0) < call.correlation
        ]
        if "Stream" in call.name or "Event" in call.name:
            # torch.cuda did not make this wait, so no note belongs to it. PyTorch makes it inside
            # a blocking copy, and it waits for the last launch, the copy itself.
            last = max(before, key=lambda record: record.correlation or 0, default=None)
        else:
            last = max(before, key=lambda record: record.end_ns, default=None)
        return None if last is None else last.correlation

    def _note_end(self, correlation: int | None, end_ns: int) -> None:
        if correlation is not None:
            self._ends_ns[correlation] = max(end_ns, self._ends_ns.get(correlation, 0))

    def _lane(self, device: int, stream: int) -> str:
        return f"cuda:{device} stream {stream}" if self._has_several else f"stream {stream}"

    def _s(self, time_ns: int) -> float:
        return (time_ns - self._zero_ns) * _NS


def _n_before(queue: Sequence[ActivityRecord], correlation: int) -> int:
    return bisect_left(queue, correlation, key=lambda record: record.correlation or 0)


def _threads(calls: Iterable[HostCall]) -> dict[int, str]:
    """Return a name for each thread of the host; the main thread is ``"host"``."""
    # The main thread is the one that made the last call, the wait for the device at the end.
    threads = list(dict.fromkeys(call.thread for call in calls))
    if not threads:
        return {}
    main = max(calls, key=lambda call: call.end_ns).thread
    others = [thread for thread in threads if thread != main]
    names = {thread: f"{HOST_LANE} thread {n}" for n, thread in enumerate(others, start=2)}
    return {main: HOST_LANE, **names}


def _engine_of(record: ActivityRecord) -> str:
    if record.kind != "memcpy":
        return "compute"
    # A copy inside one GPU (DtoD) runs on the multiprocessors, not on a copy engine.
    return next((engine for shape, engine in _ENGINES if shape.search(record.name)), "compute")
