"""Share the multiprocessors (SMs) of a GPU among kernels that run at the same time."""

from collections import deque
from collections.abc import Callable
from functools import partial

from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._task import StreamTask

N_CONCURRENT_KERNELS = 128  # CUDA's limit of resident kernels since compute capability 7.0


class Multiprocessors:
    """Kernels in order of arrival; each gets what the earlier ones leave.

    A kernel keeps the multiprocessors that it was given and takes more as others end, so two
    small kernels overlap and two large ones take turns.
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
        """Start ``task`` as soon as a multiprocessor is free; its duration is asked for then."""
        if self._running:
            self._waiting.append(task)
            self._share_out()
        else:  # nothing to share, as in most programs most of the time
            self._start(task, self._n_sms)
            self._plan_end(task)

    def clear(self) -> None:
        """Forget all kernels."""
        self._running.clear()
        self._waiting.clear()

    def _free(self) -> int:
        return self._n_sms - sum(task.n_granted_sms for task in self._running)

    def _share_out(self) -> None:
        self._account()
        # Who runs is served first: blocks of a running kernel come before those of a waiting one.
        for task in self._running:
            task.n_granted_sms += min(self._free(), task.n_wanted_sms - task.n_granted_sms)
        while self._waiting and self._free() and len(self._running) < N_CONCURRENT_KERNELS:
            self._start(self._waiting.popleft(), self._free())
        for task in self._running:
            self._plan_end(task)

    def _start(self, task: StreamTask, n_free: int) -> None:
        task.start_ns = task.updated_ns = self._event_queue.now_ns
        task.remaining_ns = self._begin(task)
        task.n_granted_sms = min(task.n_wanted_sms, n_free)
        self._running.append(task)

    def _account(self) -> None:
        """Take off what each running kernel has done since the last change of shares."""
        now_ns = self._event_queue.now_ns
        for task in self._running:
            done_ns = (now_ns - task.updated_ns) * task.n_granted_sms // task.n_wanted_sms
            task.remaining_ns = max(0, task.remaining_ns - done_ns)
            task.updated_ns = now_ns

    def _plan_end(self, task: StreamTask) -> None:
        # A version makes the end that was planned with an older share a no-op.
        task.version += 1
        needed_ns = -(-task.remaining_ns * task.n_wanted_sms // task.n_granted_sms)
        end = partial(self._end, task, task.version)
        self._event_queue.at(self._event_queue.now_ns + needed_ns, end)

    def _end(self, task: StreamTask, version: int) -> None:
        if version != task.version:
            return
        self._running.remove(task)
        if self._running or self._waiting:
            self._share_out()
        self._finished(task)
