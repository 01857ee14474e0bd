"""Spans, of which a timeline is made: calls, kernels, copies, events and waits."""

from dataclasses import dataclass

from gpulab.errors import InvalidOptionError, UnknownNameError

SPAN_KINDS = ("host", "launch", "kernel", "copy", "event", "wait")
ENGINES = ("compute", "copy in", "copy out", "copy between GPUs")
MOST_S = 1e12  # thirty thousand years; larger times overflow where they are drawn
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
        If a time is not finite or absurd, or the end lies before the start.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     (kernel,) = (s for s in gpulab.timeline(lambda: a @ a).spans if s.kind == "kernel")
    >>> kernel.name, kernel.is_on_host, kernel.duration_s == kernel.end_s - kernel.start_s
    ('mm', False, True)
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
        if not -MOST_S <= self.start_s <= self.end_s <= MOST_S:
            raise InvalidOptionError(
                f"start_s={self.start_s}, end_s={self.end_s}; "
                f"both must be finite seconds, at most {MOST_S:.0e}, and the end not before the "
                "start"
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
