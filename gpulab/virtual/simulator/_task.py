"""Streams and their tasks: a kernel, a copy, or the mark of an event."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from gpulab.virtual.simulator._l2_cache import CacheAccess
from gpulab.virtual.simulator._thermal import REST
from gpulab.virtual.simulator.costs import KernelWork

if TYPE_CHECKING:
    from gpulab.virtual.simulator._device import SimulatedDevice


class Kind(Enum):
    """Which engine of the GPU a task needs."""

    KERNEL = "kernel"
    COPY_IN = "copy in"
    COPY_OUT = "copy out"
    COPY_PEER = "copy between GPUs"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Gaps:
    """Pauses between consecutive tasks of a stream, in nanoseconds, as measured on an H200.

    A pair of events with nothing between them shows 1.25 µs. A pair around one kernel shows 2.6 µs
    more than the kernel takes, whatever its duration: 1.25 before it and 1.35 after it. Each
    further kernel adds its own duration and about 1 µs.
    """

    mark_to_mark_ns: int = 1_250
    mark_to_work_ns: int = 1_250
    work_to_mark_ns: int = 1_350
    work_to_work_ns: int = 1_000

    def between(self, before: Kind, after: Kind) -> int:
        """Return the pause from the end of one task to the start of the next."""
        if before is Kind.MARK:
            return self.mark_to_mark_ns if after is Kind.MARK else self.mark_to_work_ns
        return self.work_to_mark_ns if after is Kind.MARK else self.work_to_work_ns


class SimulatedStream:
    """A queue of tasks that run one after another."""

    __slots__ = ("device", "gaps", "last", "number", "previous", "queue")

    def __init__(self, device: "SimulatedDevice", number: int, gaps: Gaps) -> None:
        self.device = device
        self.number = number
        self.gaps = gaps
        self.queue: deque[StreamTask] = deque()
        self.last: StreamTask | None = None
        self.previous: StreamTask | None = None

    @property
    def key(self) -> tuple[int, int]:
        """Index of the device and number of the stream."""
        return self.device.index, self.number


@dataclass(frozen=True, slots=True)
class FixedDuration:
    """The demand of a task whose duration is known before it starts, such as a copy."""

    duration_ns: int
    n_sms: int = 1


@dataclass(frozen=True, slots=True)
class HostCopy(FixedDuration):
    """The demand of a copy between host and device."""

    is_pinned: bool = False
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SpinCycles:
    """The demand of a kernel that spins for clock cycles: it takes longer at a lower clock."""

    cycles: int


# Made for each launch, and a named tuple is quicker to make than a dataclass.
class ModelledKernel(NamedTuple):
    """The demand of a kernel, whose duration depends on the cache and the clock at its start."""

    work: KernelWork
    accesses: tuple[CacheAccess, ...]


class StreamTask:
    """A kernel, a copy or the mark of an event, in a stream.

    A task is *submitted* (the device sees it from ``visible_ns`` on), then *started*
    (``start_ns``), then *done* (``end_ns``). Times are integer nanoseconds; None means not yet.

    Attributes
    ----------
    kind, name, demand
        Its engine, its name in records, and what it must do.
    waits_for
        Tasks of other streams that must be done before it starts.
    payload
        Called with ``seed`` at the end of the task: computes the values of the real kernel.
    draw
        Called at the launch of a task that draws random numbers; returns its seed.
    load
        The power that it draws while it runs.
    waiting
        The streams whose first task waits for this one.
    is_in_launch_queue
        Whether it counts in the launch queue; the nodes of a graph share one entry.
    n_wanted_sms, n_granted_sms
        How many multiprocessors it can use, and how many it has now.
    remaining_ns, updated_ns
        How long it would still take on all that it wants, and when this was computed.
    version
        Counts the plans for its end; only the latest is valid.
    """

    # Slots, because a program makes a task for each launch, and thousands may be pending.
    __slots__ = (
        "demand",
        "draw",
        "end_ns",
        "is_in_launch_queue",
        "kind",
        "load",
        "n_granted_sms",
        "n_wanted_sms",
        "name",
        "payload",
        "remaining_ns",
        "seed",
        "start_ns",
        "stream",
        "updated_ns",
        "version",
        "visible_ns",
        "waiting",
        "waits_for",
    )

    def __init__(  # noqa: PLR0913 # a plain record with slots; keyword-only after the first two
        self,
        kind: Kind,
        stream: SimulatedStream,
        *,
        name: str,
        # One object for all marks, which is safe because it cannot change.
        demand: FixedDuration | SpinCycles | ModelledKernel = FixedDuration(0, 0),
        waits_for: Iterable["StreamTask"] = (),
        payload: Callable[[int], None] | None = None,
        draw: Callable[[], int] | None = None,
        is_in_launch_queue: bool = True,
    ) -> None:
        self.kind = kind
        self.stream = stream
        self.name = name
        self.demand = demand
        self.waits_for = tuple(waits_for)
        self.payload = payload
        self.draw = draw
        self.is_in_launch_queue = is_in_launch_queue
        # The device sets the load when a kernel starts: it depends on the cache. Copies have none.
        self.load = REST
        self.waiting: tuple[SimulatedStream, ...] = ()
        self.seed = 0
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.version = 0
        # Set when the task is submitted, and when a kernel starts.
        self.visible_ns: int
        self.n_wanted_sms: int
        self.n_granted_sms: int
        self.remaining_ns: int
        self.updated_ns: int

    @property
    def is_done(self) -> bool:
        """Whether the device has finished it."""
        return self.end_ns is not None
