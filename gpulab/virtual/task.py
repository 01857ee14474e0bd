"""One unit of device work: a kernel, a copy or a mark in a stream."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from gpulab.virtual.cache import Access
from gpulab.virtual.costs import Work


class Kind(Enum):
    """Which engine of the GPU a task needs."""

    KERNEL = "kernel"
    COPY_IN = "copy in"
    COPY_OUT = "copy out"
    MARK = "mark"


@dataclass(frozen=True, slots=True)
class Fixed:
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
class Priced:
    """A demand whose duration depends on what the cache holds when it starts.

    Attributes
    ----------
    work
        What must be computed.
    accesses
        Which storages are touched, reads first.
    """

    work: Work
    accesses: tuple[Access, ...]


class Task:
    """Something in a stream.

    A task is *submitted* (``visible_ns`` is set: the device may see it from then on), then
    *started*, then *done*. Times are integer nanoseconds; ``None`` means not yet.

    Attributes
    ----------
    payload
        Called when the task is done: computes the values that the real kernel would leave.
    """

    __slots__ = (
        "demand",
        "end_ns",
        "kind",
        "n_granted_sms",
        "n_wanted_sms",
        "name",
        "payload",
        "remaining_ns",
        "start_ns",
        "stream",
        "updated_ns",
        "version",
        "visible_ns",
        "waits_for",
    )

    def __init__(  # noqa: PLR0913 # a plain record with slots; keyword-only after the first two
        self,
        kind: Kind,
        stream: int,
        *,
        name: str,
        demand: Fixed | Priced = Fixed(0, 0),
        waits_for: Iterable["Task"] = (),
        payload: Callable[[], None] | None = None,
    ) -> None:
        self.kind = kind
        self.stream = stream
        self.name = name
        self.demand = demand
        self.waits_for = tuple(waits_for)
        self.payload = payload
        self.visible_ns = 0
        self.start_ns: int | None = None
        self.end_ns: int | None = None
        self.n_wanted_sms = self.n_granted_sms = 0
        self.remaining_ns = self.updated_ns = self.version = 0

    @property
    def is_done(self) -> bool:
        """Whether the device has finished it."""
        return self.end_ns is not None
