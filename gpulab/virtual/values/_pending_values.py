"""The log of values that are not computed yet."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple, Protocol, TypeVar

from gpulab.errors import VirtualGpuError
from gpulab.interrupts import opening
from gpulab.virtual.values._contents import BufferContents, ByteSpan, Piece
from gpulab.virtual.values._entries import Compute, LogEntry, Obligation

Value = TypeVar("Value")
# The allocator that PyTorch's RuntimeError names if it gets no memory.
_TORCHS_MEMORY_ERROR = "DefaultCPUAllocator"


class PendingLimits(NamedTuple):
    """How much may be pending; beyond that the oldest entries are computed.

    The estimates are the same on every machine and in every run, and so is what is computed.

    Attributes
    ----------
    n_entries
        The most entries. Each takes about 2 KiB.
    host_s
        The most time that the host needs for all of them, by estimate. A read after a long loop
        takes at most about as long.
    held_bytes
        The most host memory that they hold.

    Examples
    --------
    >>> PendingLimits().host_s
    5.0
    """

    n_entries: int = 16_384
    host_s: float = 5.0
    held_bytes: int = 64 << 20


class Simulation(Protocol):
    """What the log asks of the event queue, whose package imports this one."""

    def keep_failure(self, error: Exception) -> None:
        """Store the error of an entry for the next call that waits or reads."""

    def raise_failure(self) -> None:
        """Raise the error that is stored, if any."""

    def undisturbed(self, work: Callable[[], Value]) -> Value:
        """Call ``work`` while no simulated kernel ends."""


class PendingValues:
    """The log of a machine.

    Parameters
    ----------
    simulation
        The event queue of the machine.
    limits
        How much may be pending.

    Attributes
    ----------
    guard
        Called before values are computed. While its result exists, operators on the host are
        computed, and are not part of the program.

    Examples
    --------
    >>> import gpulab
    >>> values = gpulab.virtual_gpu("H200").machine.values
    >>> tensor, numbers = (BufferContents(), 0, 512), []
    >>> for number in range(3):  # each overwrites the result before it
    ...     _ = values.append(lambda number=number: numbers.append(number), [], [tensor], "")
    >>> values.settle(tensor)
    >>> numbers
    [2]
    """

    def __init__(
        self,
        simulation: Simulation,
        limits: PendingLimits = PendingLimits(),  # noqa: B008 # a tuple, which cannot change
    ) -> None:
        self.limits = limits
        self._simulation = simulation
        self.guard: Callable[[], object] = object
        self._numbers = count(1)
        # By number, the oldest first. From a plain dictionary the oldest could not be removed
        # again and again without a search.
        self._entries: OrderedDict[int, LogEntry] = OrderedDict()
        self._host_s = 0.0
        self._held_bytes = 0
        self._obliged: list[LogEntry] = []
        self._released: list[BufferContents] = []
        self._is_computing = False
        # Whether a change has begun and not ended; a MemoryError may leave one half done.
        self._is_torn = False

    def __len__(self) -> int:
        return len(self._entries)

    def append(  # noqa: PLR0913 # what an entry consists of
        self,
        compute: Compute,
        reads: Sequence[ByteSpan],
        writes: Sequence[ByteSpan],
        what: object,
        *,
        key: Hashable = None,
        host_s: float = 0.0,
        held_bytes: int = 0,
        obligation: Obligation | None = None,
    ) -> LogEntry | None:
        """Append what a kernel writes; return None if those bytes are there already.

        Parameters
        ----------
        compute
            Writes it.
        reads
            The bytes that it reads, and those of which it writes only a part.
        writes
            The bytes that it writes.
        what
            What the kernel is, for the note of an error.
        key
            The operator and its arguments, if the result depends on nothing but them and on what
            it reads.
        host_s, held_bytes
            About how long ``compute`` takes, and the host memory that it holds.
        obligation
            What must be done before the program goes on, even if nobody reads.
        """
        self._require_whole()
        self._is_torn = True
        self.drop_released()
        read = [(first, contents.covering(first, end)) for contents, first, end in reads]
        if key is not None:
            key = key, [(piece.name, piece.first - at) for at, pieces in read for piece in pieces]
        entry = None
        if key is None or not self._is_known(key, writes):
            entry = LogEntry(
                next(self._numbers),
                compute,
                what,
                key=key,
                host_s=host_s,
                held_bytes=held_bytes,
                obligation=obligation,
            )
            self._add(entry, [piece for _, pieces in read for piece in pieces], writes)
            self._note_user(entry.number, (*reads, *writes))
        self._is_torn = False
        return entry

    def write(
        self, compute: Compute, reads: Sequence[ByteSpan], span: ByteSpan, what: object
    ) -> None:
        """Write bytes at once that no pending entry uses."""
        entry = self.append(compute, reads, (span,), what)
        if entry is not None:
            self._compute(entry)

    def undisturbed(self, work: Callable[[], Value]) -> Value:
        """Call ``work`` while no simulated kernel ends, and return its result."""
        return self._simulation.undisturbed(work)

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
        while self._simulation.undisturbed(compute):
            pass
        self._simulation.raise_failure()

    def fulfil_one(self) -> bool:
        """Do a part of what must be done before the program goes on; return whether there was any.

        That is an obligation, or to compute the oldest entry if too much is pending.
        """
        if self._is_computing:
            return False
        if self._obliged:
            self._fulfil(self._obliged[0])
            return True
        limits = self.limits
        if (
            len(self._entries) > limits.n_entries
            or self._host_s > limits.host_s
            or self._held_bytes > limits.held_bytes
        ):
            return self._compute_oldest(self._oldest())
        return False

    def fulfil(self) -> None:
        """Fulfil all obligations."""
        while self._obliged and self.fulfil_one():
            pass

    def is_used(self, span: ByteSpan) -> bool:
        """Return whether a pending entry writes or reads any of these bytes."""
        oldest = self._oldest()
        contents, first, end = span
        return any(
            piece.last_reader >= oldest or (piece.writer is not None and piece.writer.compute)
            for piece in contents.over(first, end)
        )

    def release(self, contents: BufferContents) -> bool:
        """Forget the content of a buffer that the program cannot read any more.

        Returns
        -------
        bool
            Whether no pending entry needs its bytes.
        """
        # Only noted: Python's garbage collector may call this in the middle of a change.
        self._released.append(contents)
        return contents.last_user < self._oldest()

    def drop_released(self) -> None:
        """Drop the entries whose results are in buffers that the program cannot read any more."""
        while self._released:
            self._drop_unused(self._released.pop().clear())

    def _fulfil(self, entry: LogEntry) -> None:
        obligation = entry.obligation
        if entry.compute is None or obligation is None:
            # It was computed meanwhile, because a later one had to be.
            del self._obliged[0]
        elif obligation.first is None:
            self._compute_oldest(entry.number)
        elif not self._compute_oldest(self._last_writer(obligation.first)):
            self._decide(entry, obligation)

    def _decide(self, entry: LogEntry, obligation: Obligation) -> None:
        """Fulfil an obligation after the bytes that it asks for were computed."""
        if obligation.check is None:
            self._compute(entry)
        elif self.guarded(obligation.check):
            entry.obligation = None
            self._drop_unused([entry])
        else:
            entry.obligation = Obligation(None)

    def _add(self, entry: LogEntry, read: list[Piece], writes: Sequence[ByteSpan]) -> None:
        self._entries[entry.number] = entry
        self._host_s += entry.host_s
        self._held_bytes += entry.held_bytes
        for piece in read:
            piece.last_reader = entry.number
            writer = piece.writer
            if writer is not None and writer.compute is not None:
                writer.n_uses += 1
                entry.needs.append(writer)
        for index, (contents, first, end) in enumerate(writes):
            self._drop_unused(contents.replace(first, end, entry, index))
        if entry.obligation is not None:
            self._obliged.append(entry)

    def _note_user(self, number: int, spans: Sequence[ByteSpan]) -> None:
        for contents, _, _ in spans:
            contents.last_user = number
            if contents.is_crowded:
                contents.forget_computed(self._oldest())

    def _is_known(self, key: Hashable, writes: Sequence[ByteSpan]) -> bool:
        """Return whether the last writer of all these bytes was a call with the same key."""
        writers = {
            contents.writer_with(key, first, end, index)
            for index, (contents, first, end) in enumerate(writes)
        }
        return len(writers) == 1 and None not in writers

    def _last_writer(self, spans: Sequence[ByteSpan]) -> int:
        """Return the number of the last pending entry that writes any of these bytes, or 0."""
        return max(
            (
                piece.writer.number
                for contents, first, end in spans
                for piece in contents.over(first, end)
                if piece.writer is not None and piece.writer.compute is not None
            ),
            default=0,
        )

    def _oldest(self) -> int:
        """Return the number of the oldest pending entry, or one that no entry has yet."""
        return next(iter(self._entries), sys.maxsize)

    def _compute_oldest(self, last: int) -> bool:
        """Compute the oldest entry, unless it is younger than number ``last``."""
        self._require_whole()
        if self._is_computing or self._oldest() > last:
            return False
        self._compute(next(iter(self._entries.values())))
        return True

    def _compute(self, entry: LogEntry) -> None:
        """Compute an entry: the oldest, or one that touches no bytes that another one needs."""
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
                error.add_note(
                    "This computer has no memory left, so values are missing from now on; restart "
                    "the kernel."
                )
            self._simulation.keep_failure(error)
        finally:
            self._is_computing = before
            self._is_torn = True
            self._end(entry)
            self._is_torn = False

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
