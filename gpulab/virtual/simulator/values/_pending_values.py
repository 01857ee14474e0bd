"""The log of values that are not computed yet."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TypeVar

from gpulab.core.errors import VirtualGpuError
from gpulab.core.interrupts import opening
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator.values._contents import BufferContents, ByteSpan, Piece
from gpulab.virtual.simulator.values._entries import LogEntry

# If more is pending, the oldest entries are computed. An entry takes about 3 KiB.
MOST_ENTRIES = 2_048
# By estimate, so that every machine computes the same. A read after a long loop takes about as
# long, too.
MOST_HOST_S = 5.0
MOST_HELD_BYTES = 16 << 20
# The allocator that PyTorch's RuntimeError names if it gets no memory.
_TORCHS_MEMORY_ERROR = "DefaultCPUAllocator"

Value = TypeVar("Value")


class PendingValues:
    """The log of a machine.

    Attributes
    ----------
    event_queue
        The event queue of the machine.
    guard
        Called before values are computed. While its result exists, operators on the host are
        computed, and are not part of the program.
    """

    def __init__(self, event_queue: EventQueue) -> None:
        self.event_queue = event_queue
        self.guard: Callable[[], object] = object
        self._numbers = count(1)
        # By number, the oldest first. From a plain dictionary the oldest could not be removed
        # again and again without a search.
        self._entries: OrderedDict[int, LogEntry] = OrderedDict()
        self._host_s = 0.0
        self._held_bytes = 0
        self._due: list[LogEntry] = []
        self._released: list[BufferContents] = []
        self._is_computing = False
        # Whether a change has begun and not ended; a MemoryError may leave one half done.
        self._is_torn = False

    def append(
        self, entry: LogEntry, reads: Sequence[ByteSpan], writes: Sequence[ByteSpan]
    ) -> None:
        """Append an entry, unless the bytes that it writes are there already.

        ``reads`` include the bytes of which it writes only a part.
        """
        self._require_whole()
        self._is_torn = True
        self.drop_released()
        read = [(first, contents.covering(first, end)) for contents, first, end in reads]
        if entry.key is not None:
            names = [(piece.name, piece.first - at) for at, pieces in read for piece in pieces]
            entry.key = entry.key, names
        if entry.key is None or not self._is_known(entry, writes):
            self._add(entry, [piece for _, pieces in read for piece in pieces], writes)
            for contents, _, _ in (*reads, *writes):
                contents.last_user = entry.number
        self._is_torn = False

    def compute(self, entry: LogEntry) -> None:
        """Compute an entry: the oldest, or one that touches no bytes that another one needs."""
        self._is_torn = True
        before, compute = self._is_computing, entry.compute
        try:
            self._is_computing = True
            # Python's garbage collector may run inside, and free the memory that is written.
            entry.n_uses += 1
            if compute is not None:
                self.guarded(compute)
        except Exception as error:  # noqa: BLE001 # the call that waits or reads raises it
            # The result is not there, so the same call must be computed again.
            entry.key = None
            error.add_note(f"The error comes from {entry.what}, which was launched earlier.")
            if isinstance(error, MemoryError) or _TORCHS_MEMORY_ERROR in str(error):
                error.add_note("Values are missing from now on; restart the kernel.")
            self.event_queue.keep_failure(error)
        finally:
            self._is_computing = before
            self._end(entry)
            self._is_torn = False

    def guarded(self, compute: Callable[[], Value]) -> Value:
        """Call ``compute``; its operators are not those of the program, and take no time."""
        guard = self.guard()
        try:
            return compute()
        finally:
            del guard

    @opening  # Ctrl-C may stop the computing between two entries
    def settle(self, span: ByteSpan) -> None:
        """Compute what these bytes contain, and raise the error of an entry if there was one."""
        compute = partial(self._compute_oldest, self._last_writer([span]))
        while self.event_queue.undisturbed(compute):
            pass
        self.event_queue.raise_failure()

    def do_more(self) -> bool:
        """Do a part of what must be done before the program goes on; return whether there was any.

        That is to compute an entry that is due, or the oldest if too much is pending.
        """
        if self._is_computing:
            return False
        if self._due:
            self._compute_due(self._due[0])
            return True
        is_too_much = (
            len(self._entries) > MOST_ENTRIES
            or self._host_s > MOST_HOST_S
            or self._held_bytes > MOST_HELD_BYTES
        )
        return is_too_much and self._compute_oldest(self._oldest())

    def compute_due(self) -> None:
        """Compute all entries that are due."""
        while self._due and self.do_more():
            pass

    def is_used(self, contents: BufferContents) -> bool:
        """Return whether a pending entry may read or write bytes of a buffer."""
        return contents.last_user >= self._oldest()

    def has_room(self, size_bytes: int) -> bool:
        """Return whether an entry may hold so many bytes of the host's memory."""
        return self._held_bytes + size_bytes <= MOST_HELD_BYTES

    def compute_users(self, contents: BufferContents) -> None:
        """Compute the entries that read or write bytes of a buffer, and what is before them."""
        while self._compute_oldest(contents.last_user):
            pass

    def release(self, contents: BufferContents) -> None:
        """Note that the program cannot read a buffer any more."""
        # Only noted, because Python's garbage collector may call this in the middle of a change.
        self._released.append(contents)

    def drop_released(self) -> None:
        """Drop the entries whose results are in buffers that the program cannot read any more."""
        while self._released:
            self._drop_unused(self._released.pop().clear())

    def _is_known(self, entry: LogEntry, writes: Sequence[ByteSpan]) -> bool:
        """Return whether a call with the same key has left its results in all these bytes."""
        for index, (contents, first, end) in enumerate(writes):
            if not contents.contains(first, end, entry.key, index):
                return False
        return True

    def _add(self, entry: LogEntry, read: list[Piece], writes: Sequence[ByteSpan]) -> None:
        entry.number = next(self._numbers)
        self._entries[entry.number] = entry
        self._host_s += entry.host_s
        self._held_bytes += entry.held_bytes
        for piece in read:
            writer = piece.writer
            if writer is not None and writer.compute is not None:
                writer.n_uses += 1
                entry.needs.append(writer)
        for index, (contents, first, end) in enumerate(writes):
            self._drop_unused(contents.replace(first, end, entry, index))
        if entry.is_due:
            self._due.append(entry)

    def _compute_due(self, entry: LogEntry) -> None:
        """Compute an entry that is due, or one of those that it needs first."""
        if entry.compute is None or not entry.is_due:
            del self._due[0]
        elif entry.checked is None:
            self._compute_oldest(entry.number)
        elif self._compute_oldest(self._last_writer(entry.checked)):
            pass
        elif entry.check is None:
            self.compute(entry)
        elif self.guarded(entry.check):
            entry.is_due = False
            self._drop_unused([entry])
        else:
            entry.checked = None

    def _last_writer(self, spans: Sequence[ByteSpan]) -> int:
        """Return the number of the last pending entry that writes any of these bytes, or 0."""
        pieces = [piece for contents, *span in spans for piece in contents.over(*span)]
        writers = [piece.writer for piece in pieces if piece.writer is not None]
        return max([each.number for each in writers if each.compute is not None], default=0)

    def _oldest(self) -> int:
        """Return the number of the oldest pending entry, or one that no entry has yet."""
        return next(iter(self._entries), sys.maxsize)

    def _compute_oldest(self, last: int) -> bool:
        """Compute the oldest entry, unless it is younger than number ``last``."""
        self._require_whole()
        entry = next(iter(self._entries.values()), None)
        if entry is None or entry.number > last or self._is_computing:
            return False
        self.compute(entry)
        return True

    def _drop_unused(self, entries: list[LogEntry]) -> None:
        """Drop those entries that nobody will ever read, and what only they need."""
        while entries:
            entry = entries.pop()
            if entry.is_unused:
                needs = entry.needs
                self._end(entry)
                for other in needs:
                    other.n_uses -= 1
                entries += needs

    def _end(self, entry: LogEntry) -> None:
        """Remove an entry that was computed or dropped."""
        entry.compute = None
        # What it refers to could otherwise be freed only with the entries that it needs.
        entry.needs = []
        del self._entries[entry.number]
        self._held_bytes -= entry.held_bytes
        # Not by subtraction alone, whose rounding errors would add up.
        self._host_s = self._host_s - entry.host_s if self._entries else 0.0

    def _require_whole(self) -> None:
        if self._is_torn:
            raise VirtualGpuError(
                "this computer ran out of memory while the virtual GPU noted what a kernel "
                "writes, so its values are lost; restart the kernel"
            )
