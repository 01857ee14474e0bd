"""Share the multiprocessors (SMs) of a GPU among kernels that run at the same time."""

from collections import deque
from collections.abc import Callable
from functools import partial

from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._task import StreamTask

# CUDA's limit of resident kernels since compute capability 7.0.
N_CONCURRENT_KERNELS = 128


class Multiprocessors:
    """Shares the multiprocessors among kernels, in the order in which they arrive.

    Each kernel gets as many as it wants of those that earlier kernels leave free. It has them
    until its end, and gets more when others end. So two small kernels overlap, and two large ones
    run one after the other.
    """

    def __init__(
        self,
        event_queue: EventQueue,
        n_sms: int,
        *,
        begin: Callable[[StreamTask], int],
        finished: Callable[[StreamTask], None],
    ) -> None:
        self._event_queue = event_queue
        self._n_sms = n_sms
        self._begin = begin
        self._finished = finished
        self._running: list[StreamTask] = []
        self._waiting: deque[StreamTask] = deque()

    def add(self, task: StreamTask) -> None:
        """Start ``task`` when a multiprocessor is free; only then ``begin`` gives its duration."""
        if self._running:
            self._waiting.append(task)
            self._share_out()
        else:
            # The usual case, which needs no sharing out: no other kernel runs.
            self._start(task, self._n_sms)
            self._plan_end(task)

    def _free(self) -> int:
        return self._n_sms - sum(task.n_granted_sms for task in self._running)

    def _share_out(self) -> None:
        self._account()
        # Running kernels come first: on hardware their blocks start before those of a later one.
        for task in self._running:
            task.n_granted_sms += min(self._free(), task.n_wanted_sms - task.n_granted_sms)
        # The first in the queue starts on whatever is free, even on a single multiprocessor: on
        # hardware, too, the blocks of a kernel start one by one as there is room.
        while self._waiting and self._free() and len(self._running) < N_CONCURRENT_KERNELS:
            self._start(self._waiting.popleft(), self._free())
        for task in self._running:
            self._plan_end(task)

    def _start(self, task: StreamTask, n_free: int) -> None:
        task.start_ns = task.updated_ns = self._event_queue.now_ns
        task.remaining_ns = self._begin(task)
        task.n_granted_sms = task.n_wanted_sms if task.n_wanted_sms < n_free else n_free  # noqa: FURB136 # once a kernel, where a call of min is slow
        self._running.append(task)

    def _account(self) -> None:
        """Subtract the work that each kernel has done since the shares last changed.

        With half of the multiprocessors that it wants, a kernel is half as fast.
        """
        now_ns = self._event_queue.now_ns
        for task in self._running:
            # Rounded down, and the planned end up: a kernel may end a little late, never early.
            done_ns = (now_ns - task.updated_ns) * task.n_granted_sms // task.n_wanted_sms
            task.remaining_ns -= done_ns
            task.updated_ns = now_ns

    def _plan_end(self, task: StreamTask) -> None:
        # An event cannot be taken out of the queue. The new version makes ends that were planned
        # with an older share do nothing.
        task.version += 1
        # Rounded up, so that no work is left at the planned end.
        needed_ns = -(-task.remaining_ns * task.n_wanted_sms // task.n_granted_sms)
        end = partial(self._end, task, task.version)
        self._event_queue.at(self._event_queue.now_ns + needed_ns, end)

    def _end(self, task: StreamTask, version: int) -> None:
        if version != task.version:
            return
        self._running.remove(task)
        # First the others get its multiprocessors: ``finished`` may start further kernels.
        if self._running or self._waiting:
            self._share_out()
        self._finished(task)
