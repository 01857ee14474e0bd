"""Record by hand who was busy when, host and device on one axis, through torch.cuda alone."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from gpulab import device
from gpulab.timing import new_event
from gpulab.tracing._spans import Span
from gpulab.tracing._timeline import Timeline

__all__ = ["Recorder"]


_HOST_LANE = "host"


@dataclass(frozen=True, slots=True)
class _Marked:
    """A stretch of a stream between two events, not read yet."""

    kind: str
    name: str
    stream: int
    start: torch.cuda.Event
    end: torch.cuda.Event


class Recorder:
    """Collects spans of the host and of streams, and makes a timeline of them.

    The zero of both clocks is taken when the recorder is made: an event is recorded on the
    idle device, and the host's clock is read as soon as that call returns. The device reaches
    the event a few microseconds sooner or later, so its lanes are shifted that much against
    the host's, and differences of less than ten microseconds across the two mean nothing.
    The spans of one clock, compared with one another, are as exact as that clock.

    Examples
    --------
    >>> from gpulab import virtual_gpu
    >>> with virtual_gpu("H200"):
    ...     recorder = Recorder()
    ...     with recorder.host("launch", kind="launch"), recorder.kernel("ones"):
    ...         ones = torch.ones(1024, device="cuda")
    ...     with recorder.host("synchronize", kind="wait"):
    ...         torch.cuda.synchronize()
    ...     timeline = recorder.timeline()
    >>> [span.lane for span in timeline.spans]
    ['host', 'stream 0', 'host']
    """

    def __init__(self) -> None:
        self._spans: list[Span] = []
        self._marked: list[_Marked] = []
        self._streams: list[torch.cuda.Stream] = [torch.cuda.default_stream()]
        self._zero = new_event()
        self._zero.record()  # the driver makes an event at its first record
        torch.cuda.synchronize()
        self._zero.record()
        self._zero_s = time.perf_counter()

    @contextmanager
    def host(self, name: str, *, kind: str = "host") -> Iterator[None]:
        """Take the block's time on the host as a span, also if it raises.

        Parameters
        ----------
        name
            What the host does.
        kind
            ``"host"``, ``"launch"`` or ``"wait"``.
        """
        start_s = time.perf_counter()
        try:
            yield
        finally:
            end_s = time.perf_counter()
            self._spans.append(
                Span(kind, name, _HOST_LANE, start_s - self._zero_s, end_s - self._zero_s)
            )

    @contextmanager
    def kernel(
        self, name: str, stream: torch.cuda.Stream | None = None, *, kind: str = "kernel"
    ) -> Iterator[None]:
        """Take what the block enqueues on a stream as one span of the device.

        The span runs from the moment when the stream reaches the block to the moment when it
        has done it. On an idle stream it begins before the work does, by its launch; and it
        contains what the stream waits for meanwhile.

        Parameters
        ----------
        name
            What the stream does.
        stream
            Whose work it is; None for the stream that is current. It is not made current.
        kind
            ``"kernel"``, ``"copy"`` or ``"wait"``.
        """
        stream = torch.cuda.current_stream() if stream is None else stream
        start, end = new_event(), new_event()
        start.record(stream)
        try:
            yield
        finally:
            end.record(stream)
            self._marked.append(_Marked(kind, name, self._number(stream), start, end))

    def timeline(self) -> Timeline:
        """Wait for the device and return all spans so far, in seconds since the recorder began.

        Returns
        -------
        Timeline
            The spans in the order of their starts. Lane ``"stream 0"`` is the default stream;
            the others are numbered as they first appeared.
        """
        torch.cuda.synchronize()  # events can be read only when they are done
        spans = self._spans + [self._read(marked) for marked in self._marked]
        spans.sort(key=lambda span: span.start_s)
        in_use = device.current()
        return Timeline(tuple(spans), in_use.source, in_use.name)

    def _number(self, stream: torch.cuda.Stream) -> int:
        if stream not in self._streams:
            self._streams.append(stream)
        return self._streams.index(stream)

    def _read(self, marked: _Marked) -> Span:
        return Span(
            marked.kind,
            marked.name,
            f"stream {marked.stream}",
            self._zero.elapsed_time(marked.start) * 1e-3,
            self._zero.elapsed_time(marked.end) * 1e-3,
            stream=marked.stream,
        )
