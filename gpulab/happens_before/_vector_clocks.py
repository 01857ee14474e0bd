"""Vector clocks of streams: which work of the others each stream, and the host, comes after."""

from collections.abc import Mapping
from typing import NamedTuple

# Index of the device, and number of the stream on it; 0 is the default stream.
StreamKey = tuple[int, int]
Clock = Mapping["Thread", int]


class Thread:
    """A stream, as something that does one thing after the other.

    Attributes
    ----------
    tick
        The epoch that its next operation belongs to.
    seen
        Up to which epoch it comes after the other streams; replaced and never changed.
    host
        The host's clock when it was last looked at.
    """

    __slots__ = ("host", "key", "n_operations", "seen", "tick")

    def __init__(self, key: StreamKey) -> None:
        self.key = key
        self.tick = 1
        self.seen: Clock = {}
        self.host: Clock = self.seen
        self.n_operations = 0

    def follow(self, host: Clock) -> None:
        """Order what comes next after all that the host has seen done."""
        self.host = host
        self.seen = _later(self.seen, host)

    def record(self) -> "Snapshot":
        """End the epoch, and return what is done once it is."""
        snapshot = Snapshot(self, self.tick, self.seen)
        self.tick += 1
        return snapshot

    def clock(self) -> Clock:
        """Return what comes before the stream's next work, its own work included."""
        return {**self.seen, self: self.tick}


class Snapshot(NamedTuple):
    """What is done once an event is: it belongs to one record of the event."""

    thread: Thread
    tick: int
    seen: Clock


def joined(clock: Clock, snapshot: Snapshot) -> Clock:
    """Return ``clock`` with all that ``snapshot`` stands for."""
    # Each record ends an epoch, so a clock that includes it includes what came before it too.
    if clock.get(snapshot.thread, 0) >= snapshot.tick:
        return clock
    return {**_later(clock, snapshot.seen), snapshot.thread: snapshot.tick}


def _later(one: Clock, other: Clock) -> Clock:
    later = dict(one)
    for thread, tick in other.items():
        if later.get(thread, 0) < tick:
            later[thread] = tick
    return later
