"""Find work on the same memory whose order nothing fixes: vector clocks over streams and host.

Streams are the threads; the host is one more, whose program order precedes whatever it launches
afterwards. Each memory access is recorded with the epoch of its stream, not with a whole clock,
and only until a later access that is ordered after it replaces it: the idea of FastTrack
(Flanagan and Freund, PLDI 2009). An epoch ends when an event is recorded, since nothing else can
tell two operations of one stream apart.
"""

from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from gpulab.happens_before._accesses import Allocation, FreedMemory, MemoryAccess, RecordedAccess
from gpulab.happens_before._byte_ranges import Extent
from gpulab.happens_before._call_sites import Site
from gpulab.happens_before._hazard import HOST, Hazard, judge, kind_of
from gpulab.happens_before._vector_clocks import Clock, Snapshot, StreamKey, Thread, joined

__all__ = ["Checker"]


# Beyond it the oldest accesses to a memory are forgotten, and hazards with these are missed. So
# many are recorded only where as many different views are used and the host never waits.
MAX_RECORDED = 64
_COMPACTED_EVERY = 16


class Checker:
    """Follows a program as it launches work, and collects the hazards in it.

    The host's calls must be reported in the order in which the program makes them. When a hazard
    is found, the missing wait is taken as made, so that one mistake is one hazard and not one for
    everything after it.
    """

    def __init__(self) -> None:
        self._threads: dict[StreamKey, Thread] = {}
        self._host: Clock = {}
        self._outside = Thread(HOST)
        self._history: dict[Hashable, list[RecordedAccess]] = {}
        self._freed = FreedMemory()
        self._gone: deque[tuple[Hashable, Allocation, tuple[StreamKey, ...]]] = deque()
        self._hazards: dict[tuple[str, Site, Site], Hazard] = {}

    @property
    def hazards(self) -> tuple[Hazard, ...]:
        """The hazards found, one for each kind and pair of lines, in the order of discovery."""
        return tuple(self._hazards.values())

    @property
    def n_operations(self) -> int:
        """Number of kernels and copies seen."""
        return sum(thread.n_operations for thread in self._threads.values())

    @property
    def n_streams(self) -> int:
        """Number of streams that they were launched on."""
        return sum(thread.n_operations > 0 for thread in self._threads.values())

    @property
    def n_recorded(self) -> int:
        """Number of recorded memory accesses; it does not grow with the program's length."""
        self._settle()
        return sum(map(len, self._history.values())) + self._freed.n_recorded

    def launch(
        self, stream: StreamKey, name: str, accesses: Sequence[MemoryAccess], site: Site
    ) -> None:
        """Take note of a kernel or a copy.

        Parameters
        ----------
        stream
            Index of the device, and number of the stream on it; 0 is the default stream.
        name
            Of the operation.
        accesses
            What it reads and writes, pinned host memory included.
        site
            The line of the program that launches it.
        """
        thread = self._thread(stream)
        thread.n_operations += 1
        for access in accesses:
            self._access(thread, access, name, site)

    def record(self, stream: StreamKey) -> Snapshot:
        """Return what is done once an event is that is recorded on ``stream`` now."""
        return self._thread(stream).record()

    def stream_wait(self, stream: StreamKey, snapshot: Snapshot | None) -> None:
        """Order later work of ``stream`` after an event; None is one that was never recorded."""
        if snapshot is not None:
            self._settle()
            thread = self._thread(stream)
            thread.seen = joined(thread.seen, snapshot)

    def host_wait(self, snapshot: Snapshot | None) -> None:
        """Let the host wait for an event, or see that it is done."""
        if snapshot is not None:
            self._host = joined(self._host, snapshot)

    def host_wait_stream(self, stream: StreamKey) -> None:
        """Let the host wait for a stream, or see that it is idle."""
        self.host_wait(self.record(stream))

    def host_wait_device(self, device: int) -> None:
        """Let the host wait for all streams of the device of this index."""
        for stream in [stream for stream in self._threads if stream[0] == device]:
            self.host_wait_stream(stream)

    def host_access(self, access: MemoryAccess, name: str, site: Site) -> None:
        """Take note that the host itself reads or writes memory that streams use too."""
        history = self._history.get(access.memory)
        if history is None:
            return
        new = RecordedAccess(self._outside, access, name, site)
        for past in history:
            if not past.is_past(self._host) and past.conflicts(new.extent, is_write=new.is_write):
                self._report(past, new)
                self.host_wait_stream(past.thread.key)
        left = [past for past in history if not past.is_past(self._host)]
        if left:
            self._history[access.memory] = left
        else:
            self.forget(access.memory)

    def allocate(self, memory: Hashable, block: Allocation) -> None:
        """Take note that a storage gets a block, perhaps of one that was freed before."""
        self._settle()
        inherited = self._freed.claim(block)
        if inherited:
            self._history[memory] = inherited

    def free(
        self, memory: Hashable, block: Allocation, recorded_streams: Iterable[StreamKey] = ()
    ) -> None:
        """Take note that a storage is gone and its block may be handed out again.

        Parameters
        ----------
        memory, block
            The storage and what it held.
        recorded_streams
            The streams that ``record_stream`` was called for: what they have done by now, the
            allocator waits for.
        """
        # The garbage collector may come in the middle of anything, so it only leaves a note.
        self._gone.append((memory, block, tuple(recorded_streams)))

    def forget(self, memory: Hashable) -> None:
        """Drop host memory that is gone: its allocator waits for the copies that use it."""
        self._history.pop(memory, None)

    def clear(self) -> None:
        """Drop all memory, and keep what was found."""
        self._history.clear()
        self._freed = FreedMemory()

    def _settle(self) -> None:
        """Process what was freed, before its memory is reused or a stream waits for more."""
        while self._gone:
            memory, block, streams = self._gone.popleft()
            history = self._history.pop(memory, [])
            clocks = [self._host, *(self._thread(stream).clock() for stream in streams)]
            left = [past for past in history if not any(map(past.is_past, clocks))]
            self._freed.keep(block, left, self._host)

    def _thread(self, stream: StreamKey) -> Thread:
        thread = self._threads.get(stream)
        if thread is None:
            thread = self._threads[stream] = Thread(stream)
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
        # Most launches end here: the others in the list were compared with the last one already.
        if last.thread is thread and last.extent is extent and last.is_write is is_write:
            last.renew(access, name, site)
            return
        new = RecordedAccess(thread, access, name, site)
        left = []
        for past in history:
            if past.thread is thread or thread.seen.get(past.thread, 0) >= past.tick:
                # What conflicts with the old access later conflicts with the new one too.
                if (is_write or not past.is_write) and extent.covers(past.extent):
                    continue
            elif past.conflicts(extent, is_write=is_write):
                self._report(past, new)
                if past.lacks_record:
                    continue  # record_stream would have kept the two apart
                self.stream_wait(thread.key, self.record(past.thread.key))
            left.append(past)
        left.append(new)
        self._history[memory] = left if len(left) % _COMPACTED_EVERY else self._compacted(left)

    def _compacted(self, history: list[RecordedAccess]) -> list[RecordedAccess]:
        """Drop what the host has seen done, and join accesses to neighbouring bytes."""
        left: list[RecordedAccess] = []
        for past in history:
            if past.is_past(self._host):
                continue
            if left and left[-1].continues_in(past):
                last = left[-1].extent
                left[-1].extent = Extent(last.start, past.extent.stop - last.start)
            else:
                left.append(past)
        return left[-MAX_RECORDED:]

    def _report(self, earlier: RecordedAccess, later: RecordedAccess) -> None:
        key = (kind_of(earlier, later), earlier.site, later.site)
        known = self._hazards.get(key)
        self._hazards[key] = (
            judge(earlier, later) if known is None else replace(known, count=known.count + 1)
        )
