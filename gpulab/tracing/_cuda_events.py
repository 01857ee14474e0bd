"""Find the events and waits of a program on a CUDA GPU among the driver's records.

gpulab notes each call of ``torch.cuda`` about an event when the program makes it. Its name and its
time identify the driver's record of the same call. A stream's number in the records is found by a
kernel launched on that stream.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import spin
from gpulab.happens_before.activity import HostCall
from gpulab.tracing import profiling
from gpulab.tracing._cuda_waits import WaitListener, waits_reported_to

StreamHandle = tuple[int, int]  # device and address, as PyTorch has them
EventKind = Literal["event", "wait", "synchronize event", "synchronize stream"]

_NAMES: dict[EventKind, tuple[str, ...]] = {
    "event": ("cudaEventRecord", "cudaEventRecordWithFlags"),
    "wait": ("cudaStreamWaitEvent",),
    "synchronize event": ("cudaEventSynchronize",),
    "synchronize stream": ("cudaStreamSynchronize",),
}
# Python's clock and CUPTI's may differ by this much. On an H200's host they agreed within 2 µs, so
# a record that ends later than this after the note belongs to another call.
_CLOCKS_NS = 5_000
# The longest time from the end of a call in the driver to the note of it in Python. With the
# profiler active it was at most 16 µs.
_BACK_IN_PYTHON_NS = 100_000


@dataclass(frozen=True, slots=True)
class EventCall:
    """One call of torch.cuda about an event, or one wait of the host.

    In an ``"event"`` the program records it; in a ``"wait"`` a stream waits for it. The host's
    waits are ``"synchronize event"``, which has no stream, and ``"synchronize stream"``.
    ``after_ns`` is the host's time after the call returned, on the axis of the records. ``event``
    is the call that recorded the event which is waited for; None if no call did.
    """

    kind: EventKind
    after_ns: int
    stream: StreamHandle | None = None
    event: "EventCall | None" = None


@dataclass(frozen=True, slots=True)
class EventNote:
    """An event or a wait of the program, with the correlation number of its call in the records.

    The kinds are those of :class:`EventCall`. ``stream`` has device and number in the records.
    ``awaited`` is the correlation number of the call that recorded the event which is waited for,
    and ``at_ns`` when the device reached the event, or went on after the wait. None is not known.
    """

    kind: EventKind
    correlation: int
    stream: tuple[int, int] | None = None
    awaited: int | None = None
    at_ns: int | None = None

    @property
    def is_on_device(self) -> bool:
        """Whether it is in the queue of a stream, unlike the waits of the host."""
        return self.kind in {"event", "wait"}


class EventListener(WaitListener):
    """Notes a program's calls about events, and its waits, in the order of the program.

    ``streams`` has those that occur in the calls, by device and handle. The wait for a whole
    device needs no note: the driver's record of it is complete.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.calls: list[EventCall] = []
        self.streams: dict[StreamHandle, torch.cuda.Stream] = {}
        self._clock = clock
        self._recorded: dict[torch.cuda.Event, EventCall] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note the calls made inside the block; a second block adds to the first."""
        with waits_reported_to(self, torch.cuda):
            yield

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Note that ``event`` was recorded after the work of ``stream``."""
        # Recorded again, an event means its last record, as in CUDA.
        self._recorded[event] = self._add("event", stream)

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Note that later work of ``stream`` waits for ``event``."""
        # CUDA lets a wait pass if its event was not recorded yet, so it orders nothing.
        if event in self._recorded:
            self._add("wait", stream, self._recorded[event])

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Note that the host may have waited for ``event``."""
        self._add("synchronize event", None, self._recorded.get(event))

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Note that the host may have waited for ``stream``."""
        self._add("synchronize stream", stream)

    def _add(
        self, kind: EventKind, stream: torch.cuda.Stream | None, event: EventCall | None = None
    ) -> EventCall:
        key = None
        if stream is not None:
            key = stream.device_index, stream.cuda_stream
            self.streams[key] = stream
        # Noted after the call, when the driver's record of it has ended: matching relies on that.
        call = EventCall(kind, self._clock(), key, event)
        self.calls.append(call)
        return call


def event_notes(
    event_calls: Iterable[EventCall],
    calls: Iterable[HostCall],
    numbers: Mapping[StreamHandle, tuple[int, int]],
) -> list[EventNote]:
    """Return a note for each call about an event that is among the driver's records.

    The program's calls are in its order, and the host's in the records sorted by start.
    ``numbers`` has device and number of each stream in the records, by device and handle.
    """
    by_name = _calls_by_name(calls)
    pairs: list[tuple[EventCall, HostCall]] = []
    # From last to first: the nearest record before a note is the right one unless a later note
    # has it. From first to last, an early note could take the record of the next call.
    used: set[int] = set()
    for event_call in reversed(list(event_calls)):
        candidates = [call for name in _NAMES[event_call.kind] for call in by_name.get(name, ())]
        nearest = _nearest(event_call, candidates, used)
        if nearest is not None:
            used.add(nearest.correlation)
            pairs.append((event_call, nearest))
    correlations = {id(event_call): call.correlation for event_call, call in pairs}
    return [
        EventNote(
            event_call.kind,
            call.correlation,
            None if event_call.stream is None else numbers.get(event_call.stream),
            None if event_call.event is None else correlations.get(id(event_call.event)),
        )
        for event_call, call in reversed(pairs)
    ]


def _calls_by_name(calls: Iterable[HostCall]) -> dict[str, list[HostCall]]:
    by_name: dict[str, list[HostCall]] = {}
    is_capturing = False
    for call in calls:
        # A captured event is recorded when the graph runs, perhaps often, perhaps never.
        is_capturing = "BeginCapture" in call.name or (
            is_capturing and "EndCapture" not in call.name
        )
        if not is_capturing:
            by_name.setdefault(call.name, []).append(call)
    return by_name


def _nearest(event_call: EventCall, calls: list[HostCall], used: set[int]) -> HostCall | None:
    """Return the last unused call that ended shortly before ``event_call`` was noted, or None."""
    noted_ns = event_call.after_ns
    near = [
        call
        for call in calls
        if noted_ns - _BACK_IN_PYTHON_NS <= call.end_ns <= noted_ns + _CLOCKS_NS
        and call.correlation not in used
    ]
    # The latest one: an earlier candidate belongs to an earlier note.
    return max(near, key=lambda call: call.end_ns, default=None)


def stream_numbers(
    streams: Mapping[StreamHandle, torch.cuda.Stream],
) -> dict[StreamHandle, tuple[int, int]]:
    """Return device and number of each stream in the records, by device and address.

    The driver numbers the streams, PyTorch knows their addresses, and no call converts one into
    the other. So a very short kernel is launched on each stream, in a separate session of the
    profiler: its record contains the number.
    """
    if not streams:
        return {}

    def launch() -> None:
        for stream in streams.values():
            with torch.cuda.stream(stream):
                spin(1)

    done = sorted(profiling.capture(launch).records, key=lambda record: record.correlation or 0)
    # If a record is missing, the others cannot be assigned: the order is all that is known.
    if len(done) != len(streams):
        return {}
    numbers = ((record.device, record.stream) for record in done)
    return dict(zip(streams, numbers, strict=True))
