"""What a timeline is made of: spans, which have a start and an end, and series of readings."""

import math
from dataclasses import dataclass

from gpulab.errors import InvalidOptionError, UnknownNameError

SPAN_KINDS = ("host", "launch", "kernel", "copy", "event", "wait")
ENGINES = ("compute", "copy in", "copy out", "copy between GPUs")
_WORK = frozenset({"kernel", "copy"})


@dataclass(frozen=True, slots=True)
class Span:
    """Something that had a start and an end.

    Attributes
    ----------
    kind
        One of ``"host"``, ``"launch"``, ``"kernel"``, ``"copy"``, ``"event"``, ``"wait"``.
    name
        Of the kernel, the copy, the call.
    lane
        Row of the timeline that it belongs to, e.g. ``"host"`` or ``"stream 7"``.
    start_s, end_s
        Seconds from the start of the timeline; equal for something without duration.
    stream
        Number of the stream; None on the host.
    device
        Index of the GPU, as in ``cuda:0``; None on the host, or where it is not known.
    engine
        Which part of the GPU was busy with it, one of ``"compute"``, ``"copy in"``,
        ``"copy out"``, ``"copy between GPUs"``; None for what keeps no part busy.
    correlation
        Number that a call of the host shares with all that it made the device do.
    waits_for
        The correlation of what a wait waited for.
    size_bytes
        Bytes that a copy moved.

    Raises
    ------
    UnknownNameError
        If the kind is not one of the six, or the engine not one of the four.
    InvalidOptionError
        If a time is not finite, or the end lies before the start.
    """

    kind: str
    name: str
    lane: str
    start_s: float
    end_s: float
    stream: int | None = None
    device: int | None = None
    engine: str | None = None
    correlation: int | None = None
    waits_for: int | None = None
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in SPAN_KINDS:
            raise UnknownNameError("span kind", self.kind, SPAN_KINDS)
        if self.engine is not None and self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)
        if not -math.inf < self.start_s <= self.end_s < math.inf:
            raise InvalidOptionError(
                f"start_s={self.start_s}, end_s={self.end_s}; "
                "both must be finite seconds, and the end not before the start"
            )

    @property
    def duration_s(self) -> float:
        """Seconds from start to end, waiting inside included."""
        return self.end_s - self.start_s

    @property
    def is_work(self) -> bool:
        """Whether a device was busy with it: a kernel or a copy."""
        return self.kind in _WORK

    @property
    def is_on_host(self) -> bool:
        """Whether the host did it, or waited."""
        return self.stream is None


@dataclass(frozen=True, slots=True)
class CounterSeries:
    """A quantity that changes in steps: each value holds until the next time.

    Attributes
    ----------
    name
        What it is, e.g. ``"memory"``.
    unit
        ``"B"`` for bytes, else the word that is counted, e.g. ``"launches"``.
    device
        Index of the GPU that it is about.
    times_s
        Seconds from the start of the timeline, in ascending order.
    values
        As many as times.

    Raises
    ------
    InvalidOptionError
        If there are not as many values as times, or the times go back.
    """

    name: str
    unit: str
    device: int
    times_s: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.times_s) != len(self.values):
            raise InvalidOptionError(
                f"{len(self.times_s)} times and {len(self.values)} values; "
                "a series has one value for each time"
            )
        for before_s, after_s in zip(self.times_s, self.times_s[1:], strict=False):
            if not before_s <= after_s:
                raise InvalidOptionError(
                    f"times_s goes from {before_s} to {after_s}; give the readings in the order "
                    "of their times"
                )

    @property
    def largest(self) -> float:
        """The greatest value; 0 without readings."""
        return max(self.values, default=0.0)
