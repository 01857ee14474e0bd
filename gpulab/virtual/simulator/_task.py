"""Streams and their tasks: a kernel, a copy, or the mark of an event."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

from gpulab.gpus import GpuSpec
from gpulab.happens_before import NOWHERE
from gpulab.virtual.simulator._l2_cache import CacheAccess
from gpulab.virtual.simulator._thermal import REST
from gpulab.virtual.simulator.costs import KernelWork


class Kind(Enum):
    """Which engine of the GPU a task needs."""

    KERNEL = "kernel"
    COPY_IN = "copy in"
    COPY_OUT = "copy out"
    COPY_PEER = "copy between GPUs"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Gaps:
    """Pauses between consecutive tasks of a stream, in nanoseconds, as seen on an H200.

    An empty pair of events reads 1.25 µs; a pair round one kernel reads 2.6 µs more than the
    kernel, whatever its length; a further kernel adds about 1 µs to its own duration.
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


class StreamOwner(Protocol):
    """The device of a stream, as those see it who hold only the stream."""

    index: int
    n_pending: int
    spec: GpuSpec

    def add_stream(self, gaps: Gaps | None = None) -> "SimulatedStream":
        """Make a further stream."""

    def submit(self, task: "StreamTask", visible_ns: int) -> None:
        """Put a task behind the work of its stream."""

    def finish(self, task: "StreamTask") -> int:
        """Run until a task is done."""

    def drain_to(self, n_pending: int) -> int:
        """Run until at most so many tasks are left."""

    def resume(self, stream: "SimulatedStream") -> None:
        """Start the first task of a stream, if it may start."""


class SimulatedStream:
    """A queue of tasks that run one after another.

    Attributes
    ----------
    number
        Its number among the streams of its device; 0 is the default stream.
    queue
        Tasks submitted and not done.
    last
        The youngest task submitted, done or not.
    previous
        The task that ended last.
    """

    __slots__ = ("device", "gaps", "last", "number", "previous", "queue")

    def __init__(self, device: StreamOwner, number: int, gaps: Gaps) -> None:
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
    """A demand whose duration is known beforehand, such as a copy or a spinning kernel.

    Attributes
    ----------
    duration_ns
        Duration in nanoseconds.
    n_sms
        Multiprocessors that it occupies; copies and marks occupy none.
    """

    duration_ns: int
    n_sms: int = 1


@dataclass(frozen=True, slots=True)
class SpinCycles:
    """A demand of so many clock cycles on one multiprocessor: it takes longer at a lower clock."""

    cycles: int


class ModelledKernel(NamedTuple):  # made for each launch, and quicker than a dataclass
    """A demand whose duration depends on what the cache holds when it starts.

    Attributes
    ----------
    work
        What must be computed.
    accesses
        Which memory is touched, reads first.
    """

    work: KernelWork
    accesses: tuple[CacheAccess, ...]


class StreamTask:
    """Something in a stream.

    A task is *submitted* (``visible_ns`` is set: the device may see it from then on), then
    *started*, then *done*. Times are integer nanoseconds; ``None`` means not yet.

    Attributes
    ----------
    payload
        Called with ``seed`` when the task is done: computes the values that the real kernel
        would leave.
    draw
        Gives the seed of a task that draws random numbers, at its launch.
    load
        How it heats the GPU while it runs.
    waiting
        Streams whose first task waits for this one.
    takes_room
        Whether it counts in the launch queue; the nodes of a graph share one entry.
    site
        The line of the program that has it wait for others.
    """

    __slots__ = (
        "demand",
        "draw",
        "end_ns",
        "kind",
        "load",
        "n_granted_sms",
        "n_wanted_sms",
        "name",
        "payload",
        "remaining_ns",
        "seed",
        "site",
        "start_ns",
        "stream",
        "takes_room",
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
        demand: FixedDuration | SpinCycles | ModelledKernel = FixedDuration(0, 0),
        waits_for: Iterable["StreamTask"] = (),
        payload: Callable[[int], None] | None = None,
        draw: Callable[[], int] | None = None,
        takes_room: bool = True,
    ) -> None:
        self.kind = kind
        self.stream = stream
        self.name = name
        self.demand = demand
        self.waits_for = tuple(waits_for)
        self.payload = payload
        self.draw = draw
        self.takes_room = takes_room
        # Only kernels heat the GPU, and what they draw is known when they start.
        self.load = REST
        self.waiting: list[SimulatedStream] = []
        self.site = NOWHERE
        self.seed = 0
        self.visible_ns = 0
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.n_wanted_sms = self.n_granted_sms = 0
        self.remaining_ns = self.updated_ns = self.version = 0

    @property
    def is_done(self) -> bool:
        """Whether the device has finished it."""
        return self.end_ns is not None
