"""Simulate one GPU: when each task of its streams runs, on which engine, and for how long."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

from gpulab.gpus import GpuSpec
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._l2_cache import L2Cache
from gpulab.virtual.simulator._scheduler import Multiprocessors
from gpulab.virtual.simulator._task import (
    FixedDuration,
    Gaps,
    HostCopy,
    Kind,
    ModelledKernel,
    SimulatedStream,
    StreamTask,
)
from gpulab.virtual.simulator._thermal import SimulatedRegime, power_draw
from gpulab.virtual.simulator.costs import duration_ns, n_sms, sleep_ns

# The last 100,000 took 20 MiB in every process, and a timeline took 0.3 s instead of 0.4 ms to
# find its own among them. ``keeping_records`` serves those who need more. A notebook keeps each
# GPU that it has shown, with these.
_N_TASKS_KEPT = 100


class TaskRecord(NamedTuple):
    """A finished task: its kind, its stream, its times in nanoseconds, and a copy's bytes."""

    kind: Kind
    name: str
    stream: int
    visible_ns: int
    start_ns: int
    end_ns: int
    size_bytes: int | None = None


class SimulatedDevice:
    """One GPU with its streams; it is simulated only up to the time that someone asks for.

    Only the host submits work, and its clock never goes back. So the simulation of the device may
    be behind the host: work that is submitted later cannot change what was before.

    Attributes
    ----------
    n_pending
        Number of launches that are submitted and not done.
    streams
        All streams; the first is the default stream.
    """

    def __init__(
        self,
        spec: GpuSpec,
        *,
        gaps: Gaps | None = None,
        event_queue: EventQueue | None = None,
        index: int = 0,
    ) -> None:
        self.spec = spec
        self.index = index
        self.event_queue = event_queue or EventQueue()
        self.gaps = gaps or Gaps()
        self.cache = L2Cache(spec.l2_bytes)
        self.regime = SimulatedRegime(spec)
        self.n_pending = 0
        # Plain tuples of numbers and texts, because the garbage collector stops tracking these.
        # Only the last tasks are stored; ``keeping_records`` stores all of them.
        self._finished: deque[tuple[Any, ...]] = deque(maxlen=_N_TASKS_KEPT)
        self._keepers: list[deque[tuple[Any, ...]] | list[tuple[Any, ...]]] = [self._finished]
        self.streams: list[SimulatedStream] = []
        # Each direction has an engine of its own, so copies in and out overlap, as on hardware.
        self._copying: dict[Kind, deque[StreamTask]] = {
            kind: deque() for kind in (Kind.COPY_IN, Kind.COPY_OUT, Kind.COPY_PEER)
        }
        self._sms = Multiprocessors(
            self.event_queue,
            spec.n_sms,
            # A kernel whose model fails takes no time. The simulation goes on, because the error
            # is raised only when the program waits.
            begin=partial(self._computed, self._begin_kernel, otherwise=0),
            finished=self._retire,
        )
        self.add_stream()

    def add_stream(self, gaps: Gaps | None = None) -> SimulatedStream:
        """Add a stream and return it; the first one is the default stream."""
        self.streams.append(SimulatedStream(self, len(self.streams), gaps or self.gaps))
        return self.streams[-1]

    def submit(self, task: StreamTask, visible_ns: int) -> None:
        """Append ``task`` to its stream; the device sees it from ``visible_ns`` on."""
        stream = task.stream
        task.visible_ns = visible_ns
        stream.queue.append(task)
        stream.last = task
        self.n_pending += task.is_in_launch_queue
        if len(stream.queue) == 1:
            self.resume(stream)

    def records(self) -> list[TaskRecord]:
        """Return the last hundred finished tasks, in the order in which they ended."""
        return _as_records(self._finished)

    @contextmanager
    def keeping_records(self) -> Iterator[Callable[[], list[TaskRecord]]]:
        """Store the records of all tasks that end inside the block; yield a function for them."""
        rows: list[tuple[Any, ...]] = []
        self._keepers.append(rows)
        try:
            yield lambda: _as_records(rows)
        finally:
            # By identity: ``remove`` compares, and would take another list with equal records.
            self._keepers = [keeper for keeper in self._keepers if keeper is not rows]

    def forget_records(self) -> None:
        """Drop the records of all finished tasks."""
        self._finished.clear()

    def finish(self, task: StreamTask) -> int:
        """Simulate the device until ``task`` is done; return its end in nanoseconds."""
        self.event_queue.run_until(lambda: task.end_ns is not None)
        return task.end_ns or 0

    def drain_to(self, n_pending: int) -> int:
        """Simulate the device until at most ``n_pending`` tasks are left; return the time."""
        # This may run ahead of the host's clock. The host is blocked until then, so it can launch
        # nothing that would have come earlier.
        return self.event_queue.run_until(lambda: self.n_pending <= n_pending)

    def resume(self, stream: SimulatedStream) -> None:
        """Start the first task of a stream, or arrange its start for when it is ready."""
        if not stream.queue:
            return
        task = stream.queue[0]
        for other in task.waits_for:
            if not other.is_done:
                # One at a time: when ``other`` ends it resumes this stream, which asks again.
                other.waiting = (*other.waiting, stream)
                return
        ready_ns = _ready_ns(stream, task)
        if ready_ns > self.event_queue.now_ns:
            # The start needs no second check: nothing can go before a stream's first task, and
            # all that it waits for is done.
            self.event_queue.at(ready_ns, partial(self._start, task))
            return
        self._start(task)

    def _start(self, task: StreamTask) -> None:
        if task.kind is Kind.MARK:
            task.start_ns = self.event_queue.now_ns
            self._retire(task)
        elif task.kind is Kind.KERNEL:
            self._sms.add(task)
        else:
            queue = self._copying[task.kind]
            queue.append(task)
            if len(queue) == 1:
                self._start_copy(task)

    def _computed(
        self, compute: Callable[[StreamTask], int], task: StreamTask, otherwise: int
    ) -> int:
        """Call the cost model; an error in it is stored for the next call that waits."""
        try:
            return compute(task)
        except MemoryError:
            # Not a mistake of the model.
            raise
        except Exception as error:  # noqa: BLE001 # the call that waits raises it
            note = f"The error is in gpulab's model of {task.name}, which was launched earlier."
            error.add_note(note)
            self.event_queue.keep_failure(error)
            return otherwise

    def _begin_kernel(self, task: StreamTask) -> int:
        """Return the duration of a kernel that starts now, and count its power from now on."""
        now_ns = self.event_queue.now_ns
        demand = task.demand
        task.n_wanted_sms = 1
        if isinstance(demand, ModelledKernel):
            work = demand.work
            task.n_wanted_sms = n_sms(work, self.spec)
            # Now and not at the launch: earlier kernels have changed the cache since then.
            traffic = self.cache.serve(demand.accesses)
            burst_ns = duration_ns(work, traffic, self.spec)
            # The whole kernel keeps this clock, which takes 25 ms to change: most are far shorter.
            stretch = self.regime.stretch(work.arithmetic, now_ns)
            # Without either the kernel draws almost no power.
            if work.flops or traffic.miss_bytes:
                # With the burst's duration: the regime itself lowers the power with the clock.
                task.load = power_draw(
                    work.arithmetic, work.flops, traffic.miss_bytes, burst_ns, self.spec
                )
            self.regime.start(now_ns, task.load)
            if stretch == 1:
                return burst_ns
            return duration_ns(work, traffic, self.spec, stretch)
        self.regime.start(now_ns, task.load)
        if isinstance(demand, FixedDuration):
            task.n_wanted_sms = demand.n_sms
            return demand.duration_ns
        # A spin counts cycles, so a lower clock makes it longer. Float32 runs at the boost clock
        # in a burst, as the cycles of ``sleep_ns`` do.
        stretch = self.regime.stretch("float32", now_ns)
        return round(sleep_ns(demand.cycles, self.spec) * stretch)

    def _start_copy(self, task: StreamTask) -> None:
        task.start_ns = self.event_queue.now_ns
        end_ns = task.start_ns + cast("FixedDuration", task.demand).duration_ns
        self.event_queue.at(end_ns, lambda: self._end_copy(task))

    def _end_copy(self, task: StreamTask) -> None:
        queue = self._copying[task.kind]
        # Each direction has one copy engine, which runs copies in the order of their arrival.
        queue.popleft()
        if queue:
            self._start_copy(queue[0])
        self._retire(task)

    def _retire(self, task: StreamTask) -> None:
        task.end_ns = self.event_queue.now_ns
        stream = task.stream
        stream.queue.popleft()
        stream.previous = task
        self.n_pending -= task.is_in_launch_queue
        if task.kind is Kind.KERNEL:
            self.regime.end(self.event_queue.now_ns, task.load)
        record = (
            task.kind.value,
            task.name,
            stream.number,
            task.visible_ns,
            task.start_ns,
            task.end_ns,
            task.demand.size_bytes if isinstance(task.demand, HostCopy) else None,
        )
        for keeper in self._keepers:
            keeper.append(record)
        # Each task waits for an earlier one, so without this no task would ever be freed.
        task.waits_for = ()
        # The values appear now. A host that reads too early sees the old bytes, as on hardware.
        # The payload is dropped, because an event may hold the task for long, and so the values.
        payload, task.payload = task.payload, None
        if payload is not None:
            try:
                payload(task.seed)
            except Exception as error:  # noqa: BLE001 # the call that waits raises it
                self.event_queue.keep_failure(error)
        waiting, task.waiting = task.waiting, ()
        self.resume(stream)
        for other in waiting:
            other.device.resume(other)


def _as_records(rows: Iterable[tuple[Any, ...]]) -> list[TaskRecord]:
    return [TaskRecord(Kind(kind), *rest) for kind, *rest in rows]


def _ready_ns(stream: SimulatedStream, task: StreamTask) -> int:
    before = stream.previous
    if before is None or before.end_ns is None:
        return task.visible_ns
    return max(task.visible_ns, before.end_ns + stream.gaps.between(before.kind, task.kind))
