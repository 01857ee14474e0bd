"""Which number the driver's records give to a stream of torch.cuda: found by a kernel on each.

Which events a program on a real GPU records and waits for: noted as it calls torch.cuda.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch

from gpulab import profiling
from gpulab.profiling import HostCall
from gpulab.sanitizer import told
from gpulab.torch_private import spin

Key = tuple[int, int]


def numbers_of(streams: Mapping[Key, torch.cuda.Stream]) -> dict[Key, Key]:
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


_NAMES = {
    "event": ("cudaEventRecord", "cudaEventRecordWithFlags"),
    "wait": ("cudaStreamWaitEvent",),
    "host waits for event": ("cudaEventSynchronize",),
    "host waits for stream": ("cudaStreamSynchronize",),
}
# A note is made as soon as the call is back in Python, and read from another clock than CUPTI's.
# On an H200's host the two agreed within 2 µs; a call that is further away is another one.
_CLOCKS_NS = 5_000
# While the profiler watched, up to 16 µs had passed by then.
_BACK_IN_PYTHON_NS = 100_000


@dataclass(frozen=True, slots=True)
class Note:
    """One call of torch.cuda about an event, or one wait of the host.

    Attributes
    ----------
    what
        ``"event"``, ``"wait"`` (of a stream), ``"host waits for event"`` or
        ``"host waits for stream"``.
    after_ns
        The host's time when the call had returned, on the axis of the records.
    stream
        Device and handle of the stream; None for a wait for an event by the host.
    event
        The note of the record that is waited for; None if there was none.
    """

    what: str
    after_ns: int
    stream: tuple[int, int] | None = None
    event: "Note | None" = None


@dataclass(frozen=True, slots=True)
class EventNote:
    """A note that was found among the host's calls.

    Attributes
    ----------
    what
        As in :class:`Note`.
    correlation
        Of the host's call.
    stream
        Device and number of the stream, as the records count; None if it is not known.
    awaited
        Correlation of the record of the event that is waited for, or None.
    at_ns
        When the device reached the event, or went on after the wait; None if that is not known.
    """

    what: str
    correlation: int
    stream: tuple[int, int] | None = None
    awaited: int | None = None
    at_ns: int | None = None


class Notes:
    """Listens to a program's waits.

    Attributes
    ----------
    notes
        In the order of the program.
    streams
        The streams that occur in them, by device and handle.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self.notes: list[Note] = []
        self.streams: dict[tuple[int, int], torch.cuda.Stream] = {}
        self._clock = clock
        self._recorded: dict[torch.cuda.Event, Note] = {}

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Note what the block does; several blocks add up."""
        with told(self, torch.cuda):
            yield

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Note that ``event`` stands behind the work of ``stream``."""
        self._recorded[event] = self._add("event", stream)

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Note that later work of ``stream`` waits for ``event``."""
        if event in self._recorded:
            self._add("wait", stream, self._recorded[event])

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Note that the host may have waited for ``event``."""
        self._add("host waits for event", None, self._recorded.get(event))

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Note that the host may have waited for ``stream``."""
        self._add("host waits for stream", stream)

    def device_is_done(self, device: torch.device | str | int | None) -> None:
        """Leave it: a wait for the device tells all by itself."""

    def host_reads(self, tensor: torch.Tensor, name: str) -> None:
        """Leave it: reading memory is no call of CUDA."""

    def is_kept(self, tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        """Leave it: nothing waits here."""

    def backward(self) -> AbstractContextManager[None]:
        """Let autograd do what it does."""
        return nullcontext()

    def _add(self, what: str, stream: torch.cuda.Stream | None, event: Note | None = None) -> Note:
        key = None
        if stream is not None:
            key = stream.device_index, stream.cuda_stream
            self.streams[key] = stream
        note = Note(what, self._clock(), key, event)
        self.notes.append(note)
        return note


def marks(
    notes: Iterable[Note],
    calls: Iterable[HostCall],
    numbers: Mapping[tuple[int, int], tuple[int, int]],
) -> list[EventNote]:
    """Find each note's call among those of the host; notes without one are left out.

    Parameters
    ----------
    notes
        In the order of the program.
    calls
        What the host called, by start.
    numbers
        Device and number of each stream, as the records count, by device and handle.
    """
    by_name: dict[str, list[HostCall]] = {}
    is_capturing = False
    for call in calls:
        # What is captured runs later, perhaps often, perhaps never.
        is_capturing = "BeginCapture" in call.name or (
            is_capturing and "EndCapture" not in call.name
        )
        if not is_capturing:
            by_name.setdefault(call.name, []).append(call)
    pairs: list[tuple[Note, HostCall]] = []
    # From the last one back: the call right before a note may be that of the note before it, but
    # not if a later note has it already.
    used: set[int] = set()
    for note in reversed(list(notes)):
        candidates = [call for name in _NAMES[note.what] for call in by_name.get(name, ())]
        found = _nearest(note, candidates, used)
        if found is not None:
            used.add(found.correlation)
            pairs.append((note, found))
    numbers_of_notes = {id(note): call.correlation for note, call in pairs}
    return [
        EventNote(
            note.what,
            call.correlation,
            None if note.stream is None else numbers.get(note.stream),
            None if note.event is None else numbers_of_notes.get(id(note.event)),
        )
        for note, call in reversed(pairs)
    ]


def _nearest(note: Note, calls: list[HostCall], used: set[int]) -> HostCall | None:
    """Return the last unused call that had ended by the time of the note, and not long ago."""
    first_ns, last_ns = note.after_ns - _BACK_IN_PYTHON_NS, note.after_ns + _CLOCKS_NS
    near = [
        call
        for call in calls
        if first_ns <= call.end_ns <= last_ns and call.correlation not in used
    ]
    return max(near, key=lambda call: call.end_ns, default=None)
