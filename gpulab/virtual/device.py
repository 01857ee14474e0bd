"""The device side of the virtual GPU: streams, engines, the cache, and when each task runs."""

from collections import deque
from dataclasses import dataclass

from gpulab.gpus import GpuSpec
from gpulab.virtual import costs
from gpulab.virtual.cache import L2
from gpulab.virtual.engine import Engine
from gpulab.virtual.scheduler import Multiprocessors
from gpulab.virtual.task import Fixed, Kind, Task

DEFAULT_STREAM = 0
_N_SPANS_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Gaps:
    """Pauses between consecutive tasks of a stream, in nanoseconds, as seen on an H200.

    An empty pair of events reads 1.28 µs; a pair round one kernel reads 3.1 µs more than the
    kernel, whatever its length; a further kernel adds 0.9 µs to its own duration.
    """

    mark_to_mark_ns: int = 1_280
    mark_to_work_ns: int = 1_500
    work_to_mark_ns: int = 1_600
    work_to_work_ns: int = 900

    def between(self, before: Kind, after: Kind) -> int:
        """Return the pause from the end of one task to the start of the next."""
        if before is Kind.MARK:
            return self.mark_to_mark_ns if after is Kind.MARK else self.mark_to_work_ns
        return self.work_to_mark_ns if after is Kind.MARK else self.work_to_work_ns


@dataclass(slots=True)
class _Stream:
    queue: deque[Task]
    last: Task | None = None  # the youngest task submitted, done or not
    previous: Task | None = None  # the task that ended last


class Device:
    """Streams of tasks, advanced only as far as somebody looks.

    The host is the only source of work and its clock never goes back, so what the device did
    up to the host's time can be computed late: nothing submitted afterwards can change it.

    Attributes
    ----------
    n_pending
        Tasks submitted and not yet done.
    finished
        The last tasks done, in order of their end.
    """

    def __init__(self, spec: GpuSpec, gaps: Gaps | None = None) -> None:
        self.spec = spec
        self.engine = Engine()
        self.gaps = gaps or Gaps()
        self.cache = L2(spec.l2_bytes)
        self.n_pending = 0
        self.finished: deque[Task] = deque(maxlen=_N_SPANS_KEPT)
        self._streams: list[_Stream] = []
        self._blocked: dict[Task, list[int]] = {}
        self._copying: dict[Kind, deque[Task]] = {Kind.COPY_IN: deque(), Kind.COPY_OUT: deque()}
        self._sms = Multiprocessors(self.engine, spec.n_sms, self._retire)
        self.add_stream()

    def add_stream(self) -> int:
        """Make a stream and return its number; 0 is the default stream."""
        self._streams.append(_Stream(deque()))
        return len(self._streams) - 1

    @property
    def n_streams(self) -> int:
        """Number of streams, the default one included."""
        return len(self._streams)

    def last_task(self, stream: int) -> Task | None:
        """Return the youngest task submitted to ``stream``."""
        return self._streams[stream].last

    def submit(self, task: Task, visible_ns: int) -> None:
        """Put ``task`` behind the work of its stream; the device sees it at ``visible_ns``."""
        stream = self._streams[task.stream]
        task.visible_ns = visible_ns
        stream.queue.append(task)
        stream.last = task
        self.n_pending += 1
        if len(stream.queue) == 1:
            self._try_next(task.stream)

    def advance(self, time_ns: int) -> None:
        """Let the device run up to ``time_ns``."""
        self.engine.advance(time_ns)

    def finish(self, task: Task) -> int:
        """Let the device run until ``task`` is done and return its end in nanoseconds."""
        self.engine.run_until(lambda: task.end_ns is not None)
        return task.end_ns or 0

    def drain_to(self, n_pending: int) -> int:
        """Let the device run until at most ``n_pending`` tasks are left; return the time."""
        return self.engine.run_until(lambda: self.n_pending <= n_pending)

    def _try_next(self, number: int) -> None:
        """Start the first task of a stream, or arrange to be asked again when it may start."""
        stream = self._streams[number]
        if not stream.queue or stream.queue[0].start_ns is not None:
            return
        task = stream.queue[0]
        for other in task.waits_for:
            if not other.is_done:
                self._blocked.setdefault(other, []).append(number)
                return
        ready_ns = self._ready_ns(stream, task)
        if ready_ns > self.engine.now_ns:
            self.engine.at(ready_ns, lambda: self._try_next(number))
            return
        self._start(task)

    def _ready_ns(self, stream: _Stream, task: Task) -> int:
        before = stream.previous
        if before is None or before.end_ns is None:
            return task.visible_ns
        return max(task.visible_ns, before.end_ns + self.gaps.between(before.kind, task.kind))

    def _start(self, task: Task) -> None:
        # Set at once, so that the task is not started a second time while it waits for an engine.
        task.start_ns = self.engine.now_ns
        if task.kind is Kind.MARK:
            self._retire(task)
        elif task.kind is Kind.KERNEL:
            self._start_kernel(task)
        else:
            queue = self._copying[task.kind]
            queue.append(task)
            if len(queue) == 1:
                self._start_copy(task)

    def _start_kernel(self, task: Task) -> None:
        demand = task.demand
        if isinstance(demand, Fixed):
            task.n_wanted_sms = demand.n_sms
            self._sms.add(task, lambda: demand.duration_ns)
            return
        task.n_wanted_sms = costs.n_sms(demand.work, self.spec)
        self._sms.add(
            task,
            lambda: costs.duration_ns(demand.work, self.cache.serve(demand.accesses), self.spec),
        )

    def _start_copy(self, task: Task) -> None:
        task.start_ns = self.engine.now_ns
        duration_ns = task.demand.duration_ns if isinstance(task.demand, Fixed) else 0
        self.engine.at(self.engine.now_ns + duration_ns, lambda: self._end_copy(task))

    def _end_copy(self, task: Task) -> None:
        queue = self._copying[task.kind]
        queue.popleft()
        self._retire(task)
        if queue:
            self._start_copy(queue[0])

    def _retire(self, task: Task) -> None:
        task.end_ns = self.engine.now_ns
        stream = self._streams[task.stream]
        stream.queue.popleft()
        stream.previous = task
        self.n_pending -= 1
        self.finished.append(task)
        if task.payload is not None:
            payload, task.payload = task.payload, None
            payload()
        # What was waited for is no longer needed; a chain of tasks would keep every one alive.
        task.waits_for = ()
        for number in (task.stream, *self._blocked.pop(task, ())):
            self._try_next(number)
