"""Vector clocks: which work of the other streams a stream, or the host, comes after."""

from collections.abc import Mapping
from typing import NamedTuple

# Index of the device, and number of the stream on it; 0 is the default stream.
StreamKey = tuple[int, int]
# The last epoch of each other stream that is known to be done.
Clock = Mapping["Thread", int]


class Thread:
    """A stream, whose operations run one after another; its key has device index and number.

    ``tick`` is the epoch of its next operation. ``before`` has, for each other stream, the last
    epoch that this stream comes after; it is replaced and never changed, because snapshots share
    it. It contains the host's clock ``host`` already.
    """

    __slots__ = ("before", "host", "key", "n_operations", "tick")

    def __init__(self, key: StreamKey) -> None:
        self.key = key
        self.tick = 1
        self.before: Clock = {}
        # Not the checker's clock, so that the first use of the stream takes that one over.
        self.host: Clock = self.before
        self.n_operations = 0

    def follow(self, host: Clock) -> None:
        """Order later work after everything that the host has seen done."""
        self.host = host
        self.before = _later(self.before, host)

    def record(self) -> "Snapshot":
        """End the epoch; return the work that is done once an event recorded now is done."""
        # The present epoch belongs to the event: everything launched so far comes before it.
        snapshot = Snapshot(self, self.tick, self.before)
        self.tick += 1
        return snapshot

    def clock(self) -> Clock:
        """Return what comes before the stream's next operation, its own work included."""
        return {**self.before, self: self.tick}


class Snapshot(NamedTuple):
    """The work that is done once an event is done; each record of an event has its own."""

    thread: Thread
    tick: int
    before: Clock


def joined(clock: Clock, snapshot: Snapshot) -> Clock:
    """Return a clock that comes after both ``clock`` and the event of ``snapshot``."""
    # A stream's epochs are in order, so a clock with this epoch has all that came before it.
    if clock.get(snapshot.thread, 0) >= snapshot.tick:
        return clock
    return {**_later(clock, snapshot.before), snapshot.thread: snapshot.tick}


def _later(first: Clock, second: Clock) -> Clock:
    later = dict(first)
    for thread, tick in second.items():
        if later.get(thread, 0) < tick:
            later[thread] = tick
    return later
