"""Find unordered work on the same memory, with vector clocks of the streams and the host.

In the terms of race detection each stream is a thread, and so is the host: what the host has seen
done happens before everything that it launches afterwards. A memory access is recorded with the
epoch of its stream instead of a whole clock, and only until a later access that is ordered after
it replaces it. This is the idea of FastTrack (Flanagan and Freund, PLDI 2009). An epoch ends when
an event is recorded, because other streams can wait for events only.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from gpulab.happens_before._accesses import Allocation, FreedMemory, MemoryAccess, RecordedAccess
from gpulab.happens_before._byte_ranges import Extent
from gpulab.happens_before._call_sites import Site
from gpulab.happens_before._hazard import HOST, Hazard, judge, kind_of
from gpulab.happens_before._vector_clocks import Clock, Snapshot, StreamKey, Thread, joined

# At most this many accesses to one storage are kept. The oldest are dropped, and hazards with
# them are missed. This happens only in programs that use this many different views of a storage
# while the host never waits.
MAX_RECORDED = 64
# Compacting reads the whole list, so it runs only at each 16th length.
_COMPACTED_EVERY = 16


class Checker:
    """Collects the hazards of a program, from reports of what it launches and waits for.

    Report the host's calls in the order in which the program makes them. After a hazard the
    checker goes on as if the program had made the missing wait. So one mistake gives one hazard,
    and not another one at each later use of the memory.
    """

    def __init__(self) -> None:
        self._threads: dict[StreamKey, Thread] = {}
        self._host: Clock = {}
        # Only a name for the host's own accesses: what orders them is self._host.
        self._outside = Thread(HOST)
        self._history: dict[Hashable, list[RecordedAccess]] = {}
        self._freed = FreedMemory()
        self._gone: deque[tuple[Hashable, Allocation, tuple[StreamKey, ...]]] = deque()
        self._hazards: dict[tuple[str, Site, Site], Hazard] = {}

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards, one for each kind and pair of lines, in the order of discovery."""
        return tuple(self._hazards.values())

    @property
    def operations(self) -> Counter[StreamKey]:
        """Number of kernels and copies seen, by the streams that they were launched on."""
        threads = self._threads.items()
        return Counter(
            {key: thread.n_operations for key, thread in threads if thread.n_operations}
        )

    @property
    def n_recorded(self) -> int:
        """Number of recorded memory accesses; it does not grow with the program's length."""
        self._settle()
        return sum(map(len, self._history.values())) + self._freed.n_recorded

    def launch(
        self, stream: StreamKey, name: str, accesses: Sequence[MemoryAccess], site: Site
    ) -> None:
        """Compare the accesses of a kernel or a copy with earlier ones, and record them.

        They include pinned host memory. A stream is the index of the device and the stream's
        number, 0 for the default one. ``site`` is the line of the program that launches.
        """
        thread = self._thread(stream)
        thread.n_operations += 1
        for access in accesses:
            self._access(thread, access, name, site)

    def record(self, stream: StreamKey) -> Snapshot:
        """Record an event on ``stream`` now; return the work that is done when the event is."""
        return self._thread(stream).record()

    def stream_wait(self, stream: StreamKey, snapshot: Snapshot | None) -> None:
        """Order later work of ``stream`` after an event; None is one that was never recorded."""
        if snapshot is not None:
            # First, or memory that was freed before this wait would count as freed after it.
            self._settle()
            thread = self._thread(stream)
            # Replaced and not updated: snapshots of earlier events share the old clock.
            thread.before = joined(thread.before, snapshot)

    def host_wait(self, snapshot: Snapshot | None) -> None:
        """Note that the host has waited for an event, or has seen that it is done."""
        if snapshot is not None:
            # A new object if anything changed: by its identity, _thread sees that the host has
            # waited.
            self._host = joined(self._host, snapshot)

    def host_wait_stream(self, stream: StreamKey) -> None:
        """Note that the host has waited for a stream, or has seen that it is idle."""
        self.host_wait(self.record(stream))

    def host_wait_device(self, device: int) -> None:
        """Note that the host has waited for all streams of the device with this index."""
        for stream in [stream for stream in self._threads if stream[0] == device]:
            self.host_wait_stream(stream)

    def host_access(self, access: MemoryAccess, name: str, site: Site) -> None:
        """Check a read or a write by the host itself, of memory that streams use, too.

        The access is not recorded: later work of a stream always comes after it.
        """
        # Only copies by streams are recorded, so most of the host's memory is unknown here.
        history = self._history.get(access.memory)
        if history is None:
            return
        new = RecordedAccess(self._outside, access, name, site)
        for past in history:
            if not past.is_past(self._host) and past.conflicts(new.extent, is_write=new.is_write):
                self._report(past, new)
                # As for streams: from here on the missing wait counts as made.
                self.host_wait_stream(past.thread.key)
        remaining = [past for past in history if not past.is_past(self._host)]
        if remaining:
            self._history[access.memory] = remaining
        else:
            self.forget(access.memory)

    def allocate(self, memory: Hashable, block: Allocation) -> None:
        """Note that a storage gets a block; earlier owners of its bytes may not be done."""
        self._settle()
        inherited = self._freed.claim(block)
        if inherited:
            self._history[memory] = inherited

    def free(
        self, memory: Hashable, block: Allocation, recorded_streams: Iterable[StreamKey] = ()
    ) -> None:
        """Note that a storage is gone, so that its block may be handed out again.

        If ``record_stream`` was called for streams, the allocator waits for their present work
        before it reuses the block.
        """
        # Python's garbage collector may call this in the middle of any other method, so it only
        # leaves a note. ``_settle`` does the work at a moment when nothing is half changed.
        self._gone.append((memory, block, tuple(recorded_streams)))

    def forget(self, memory: Hashable) -> None:
        """Drop host memory that is gone; PyTorch reuses it only after the copies are done."""
        self._history.pop(memory, None)

    def clear(self) -> None:
        """Drop all records of memory; the hazards stay."""
        self._history.clear()
        self._freed = FreedMemory()

    def _settle(self) -> None:
        """Process the notes that :meth:`free` has left."""
        while self._gone:
            memory, block, streams = self._gone.popleft()
            history = self._history.pop(memory, [])
            # A new owner follows these without any further wait: what the host has seen done, and
            # the work of the streams that the allocator waits for.
            clocks = [self._host, *(self._thread(stream).clock() for stream in streams)]
            remaining = [past for past in history if not any(map(past.is_past, clocks))]
            self._freed.keep(block, remaining, self._host)

    def _thread(self, stream: StreamKey) -> Thread:
        thread = self._threads.get(stream)
        if thread is None:
            thread = self._threads[stream] = Thread(stream)
        # Clocks are replaced and never changed, so identity says whether the host has waited.
        if thread.host is not self._host:
            thread.follow(self._host)
        return thread

    def _access(self, thread: Thread, access: MemoryAccess, name: str, site: Site) -> None:
        memory, extent, is_write, _ = access
        history = self._history.get(memory)
        if history is None:
            self._history[memory] = [RecordedAccess(thread, access, name, site)]
            return
        last = history[-1]
        # Most launches end here. The last access was compared with all others, and this one has
        # the same stream, bytes and direction, so nothing new can conflict.
        if last.thread is thread and last.extent is extent and last.is_write is is_write:
            last.renew(access, name, site)
            return
        new = RecordedAccess(thread, access, name, site)
        remaining = []
        for past in history:
            if past.thread is thread or thread.before.get(past.thread, 0) >= past.tick:
                # Whatever conflicts with the old access later conflicts with the new one, too.
                if (is_write or not past.is_write) and extent.covers(past.extent):
                    continue
            elif past.conflicts(extent, is_write=is_write):
                self._report(past, new)
                if past.lacks_record:
                    continue  # a wait would not help here, only record_stream
                # From here on the missing wait counts as made: one mistake is one hazard.
                self.stream_wait(thread.key, self.record(past.thread.key))
            remaining.append(past)
        remaining.append(new)
        self._history[memory] = (
            remaining if len(remaining) % _COMPACTED_EVERY else self._compacted(remaining)
        )

    def _compacted(self, history: list[RecordedAccess]) -> list[RecordedAccess]:
        """Drop the accesses that the host knows to be done, and join neighbouring ones."""
        remaining: list[RecordedAccess] = []
        for past in history:
            if past.is_past(self._host):
                continue
            if remaining and remaining[-1].continues_in(past):
                last = remaining[-1].extent
                remaining[-1].extent = Extent(last.start, past.extent.stop - last.start)
            else:
                remaining.append(past)
        return remaining[-MAX_RECORDED:]

    def _report(self, earlier: RecordedAccess, later: RecordedAccess) -> None:
        key = (kind_of(earlier, later), earlier.site, later.site)
        reported = self._hazards.get(key)
        self._hazards[key] = (
            judge(earlier, later)
            if reported is None
            else replace(reported, count=reported.count + 1)
        )
