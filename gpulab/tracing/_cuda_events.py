"""Which events a program on a real GPU records and waits for, found among the driver's records.

The calls of ``torch.cuda`` are noted as the program makes them; name and time tell which of the
driver's calls each one is. A stream's number in the records is found by a kernel on that stream.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal

import torch

from gpulab import profiling
from gpulab.interrupts import contextmanager
from gpulab.profiling import HostCall
from gpulab.sanitizer import waits_reported_to
from gpulab.torch_private import spin

StreamHandle = tuple[int, int]  # device and address, as PyTorch has them
EventKind = Literal["event", "wait", "synchronize event", "synchronize stream"]

_NAMES: dict[EventKind, tuple[str, ...]] = {
    "event": ("cudaEventRecord", "cudaEventRecordWithFlags"),
    "wait": ("cudaStreamWaitEvent",),
    "synchronize event": ("cudaEventSynchronize",),
    "synchronize stream": ("cudaStreamSynchronize",),
}
# A call is noted when it is back in Python, and its time is read from another clock than CUPTI's.
# On an H200's host the two agreed within 2 µs; a call that is further away is another one.
_CLOCKS_NS = 5_000
# While the profiler watched, up to 16 µs had passed by then.
_BACK_IN_PYTHON_NS = 100_000


@dataclass(frozen=True, slots=True)
class EventCall:
    """One call of torch.cuda about an event, or one wait of the host.

    Attributes
    ----------
    kind
        ``"event"`` (one is recorded), ``"wait"`` (a stream waits for one), and the two waits of
        the host: ``"synchronize event"``, ``"synchronize stream"``.
    after_ns
        The host's time when it had returned, on the axis of the records.
    stream
        Device and handle of the stream; None for a wait for an event by the host.
    event
        The call that recorded what is waited for; None if there was none.
    """

    kind: EventKind
    after_ns: int
    stream: StreamHandle | None = None
    event: "EventCall | None" = None


@dataclass(frozen=True, slots=True)
class EventNote:
    """An event or a wait of the program, with the host's call in the records that made it.

    Attributes
    ----------
    kind
        As in :class:`EventCall`.
    correlation
        Of the host's call.
    stream
        Device and number of the stream, as the records count; None if it is not known.
    awaited
        Correlation of the record of the event that is waited for, or None.
    at_ns
        When the device reached the event, or went on after the wait; None if that is not known.
    """

    kind: EventKind
    correlation: int
    stream: tuple[int, int] | None = None
    awaited: int | None = None
    at_ns: int | None = None

    @property
    def is_on_device(self) -> bool:
        """Whether it takes its turn in a stream; the host's waits do not."""
        return self.kind in {"event", "wait"}


class EventListener:
    """Listens to a program's calls about events, and to its waits.

    Attributes
    ----------
    calls
        In the order of the program.
    streams
        The streams that occur in them, by device and handle.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.calls: list[EventCall] = []
        self.streams: dict[StreamHandle, torch.cuda.Stream] = {}
        self._clock = clock
        self._recorded: dict[torch.cuda.Event, EventCall] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note what the block does; several blocks add up."""
        with waits_reported_to(self, torch.cuda):
            yield

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Note that ``event`` was recorded after the work of ``stream``."""
        self._recorded[event] = self._add("event", stream)

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Note that later work of ``stream`` waits for ``event``."""
        if event in self._recorded:
            self._add("wait", stream, self._recorded[event])

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Note that the host may have waited for ``event``."""
        self._add("synchronize event", None, self._recorded.get(event))

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Note that the host may have waited for ``stream``."""
        self._add("synchronize stream", stream)

    def device_is_done(self, device: torch.device | str | int | None) -> None:
        """Leave it: a wait for the device tells all by itself."""

    def host_reads(self, tensor: torch.Tensor, name: str) -> None:
        """Leave it: reading memory is no call of CUDA."""

    def is_kept(self, tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        """Leave it: nothing waits here."""

    def backward(self) -> AbstractContextManager[None]:
        """Let autograd do what it does."""
        return nullcontext()

    def _add(
        self, kind: EventKind, stream: torch.cuda.Stream | None, event: EventCall | None = None
    ) -> EventCall:
        key = None
        if stream is not None:
            key = stream.device_index, stream.cuda_stream
            self.streams[key] = stream
        call = EventCall(kind, self._clock(), key, event)
        self.calls.append(call)
        return call


def event_notes(
    event_calls: Iterable[EventCall],
    calls: Iterable[HostCall],
    numbers: Mapping[StreamHandle, tuple[int, int]],
) -> list[EventNote]:
    """Find each call about an event among those of the records; what is not there is left out.

    Parameters
    ----------
    event_calls
        In the order of the program.
    calls
        What the host called by the records, by start.
    numbers
        Device and number of each stream, as the records count, by device and handle.
    """
    by_name = _calls_by_name(calls)
    pairs: list[tuple[EventCall, HostCall]] = []
    # From the last one back: the call right before one may belong to the one before it, but not
    # if a later one has it already.
    used: set[int] = set()
    for event_call in reversed(list(event_calls)):
        candidates = [call for name in _NAMES[event_call.kind] for call in by_name.get(name, ())]
        found = _nearest(event_call, candidates, used)
        if found is not None:
            used.add(found.correlation)
            pairs.append((event_call, found))
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
        # What is captured runs later, perhaps often, perhaps never.
        is_capturing = "BeginCapture" in call.name or (
            is_capturing and "EndCapture" not in call.name
        )
        if not is_capturing:
            by_name.setdefault(call.name, []).append(call)
    return by_name


def _nearest(event_call: EventCall, calls: list[HostCall], used: set[int]) -> HostCall | None:
    """Return the last unused call that had ended when it was noted, and not long before."""
    noted_ns = event_call.after_ns
    near = [
        call
        for call in calls
        if noted_ns - _BACK_IN_PYTHON_NS <= call.end_ns <= noted_ns + _CLOCKS_NS
        and call.correlation not in used
    ]
    return max(near, key=lambda call: call.end_ns, default=None)


def stream_numbers(
    streams: Mapping[StreamHandle, torch.cuda.Stream],
) -> dict[StreamHandle, tuple[int, int]]:
    """Return device and number of each stream as the records have them.

    A driver numbers streams by a count of its own and PyTorch knows them by their address, and
    nothing tells how the two belong together but a kernel of which both are known. So the
    shortest one is launched on each, in a session of the profiler of its own.

    Parameters
    ----------
    streams
        By device and address.
    """
    if not streams:
        return {}

    def launch() -> None:
        for stream in streams.values():
            with torch.cuda.stream(stream):
                spin(1)

    done = sorted(profiling.capture(launch).records, key=lambda record: record.correlation or 0)
    # Were one of them lost, nobody could tell which.
    if len(done) != len(streams):
        return {}
    found = ((record.device, record.stream) for record in done)
    return dict(zip(streams, found, strict=True))
