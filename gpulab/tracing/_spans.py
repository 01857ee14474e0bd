"""Spans, the elements of a timeline: calls, kernels, copies, events and waits."""

from dataclasses import dataclass

from gpulab.core.errors import InvalidOptionError, UnknownNameError

SPAN_KINDS = ("host", "launch", "kernel", "copy", "event", "wait")
ENGINES = ("compute", "copy in", "copy out", "copy between GPUs")
MOST_S = 1e12  # thirty thousand years; larger times overflow when matplotlib draws them
_WORK = frozenset({"kernel", "copy"})


@dataclass(frozen=True, slots=True)
class Span:
    """A call, kernel, copy, event or wait on a timeline, with its start and end.

    Attributes
    ----------
    kind
        One of ``"host"``, ``"launch"``, ``"kernel"``, ``"copy"``, ``"event"``, ``"wait"``.
    name
        Name of the kernel, the copy or the call.
    lane
        Lane of the timeline in which it is drawn, e.g. ``"host"`` or ``"stream 7"``.
    start_s, end_s
        Seconds from the start of the timeline; equal for an event.
    stream
        Number of the stream; None on the host.
    device
        Index of the GPU, as in ``cuda:0``; None on the host, or if not known.
    engine
        Part of the GPU that it used: ``"compute"``, ``"copy in"``, ``"copy out"`` or
        ``"copy between GPUs"``; None if it used none, as for calls, events and waits.
    correlation
        Number that a call of the host shares with the kernels, copies and events it launched.
    waits_for
        Correlation of the work that a wait waited for; None if it is not a wait.
    size_bytes
        Bytes that a copy moved; None for other kinds.

    Raises
    ------
    UnknownNameError
        If the kind is not one of the six, or the engine not one of the four.
    InvalidOptionError
        If a time is not finite or larger than 1e12 s, or the end is before the start.

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
        """Seconds from start to end, including any waiting in between."""
        return self.end_s - self.start_s

    @property
    def is_work(self) -> bool:
        """Whether it is a kernel or a copy, which makes a device busy."""
        return self.kind in _WORK

    @property
    def is_on_host(self) -> bool:
        """Whether it is a call or a wait of the host."""
        return self.stream is None
