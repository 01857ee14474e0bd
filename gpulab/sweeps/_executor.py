"""Run the tasks of a sweep in this process or on the workers of a ``concurrent.futures`` executor.

Neither an interrupt nor a dying worker loses a point that was measured.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from gpulab import device
from gpulab.device import Device, outside
from gpulab.errors import GpulabError, InvalidOptionError, NoGpuError
from gpulab.sweeps._host import provenance
from gpulab.sweeps._measure_point import Effort, first_line, measure_point
from gpulab.sweeps._tasks import Point, Task


class RunObserver(Protocol):
    """What a runner reports to while it runs."""

    def task_started(self, task: Task) -> None:
        """Note that a task runs now."""

    def point_measured(self, point: Point) -> None:
        """Keep a point for good."""


class TaskRunner(Protocol):
    """What measures the points of a sweep."""

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of the points."""
        ...

    def run(self, tasks: Sequence[Task], observer: RunObserver) -> str:
        """Measure the tasks, and return what stopped the run; an empty text if nothing did."""
        ...


INTERRUPTED = "an interrupt"

_N_IN_FLIGHT = 16  # on an executor that does not say how many workers it has
_GRACE_S = 30.0  # for what still runs at an interrupt; a task ends within seconds

# Tasks of one process share its GPU, its virtual GPU and its clock.
_process_lock = threading.Lock()
# By their token: devices that a sweep of this process shares with its own threads.
_shared_devices: dict[str, Device] = {}
# By the name that was asked for: devices that this process found for itself as a worker.
_worker_devices: dict[str, Device] = {}


@dataclass(frozen=True, slots=True)
class GpuAssignment:
    """Which GPU a worker measures on; it can be pickled.

    Attributes
    ----------
    gpu
        ``"auto"``, ``"cuda"``, or the name of a virtual one.
    process, token
        A worker that is a thread of this process uses the very device that is shared under the
        token. The token is new for each sweep, so that no executor that caches results returns
        a point of an earlier sweep.
    """

    gpu: str
    process: int
    token: str

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Put the GPU behind ``torch.cuda`` in the worker.

        Raises
        ------
        NoGpuError
            If a CUDA GPU is asked for and this worker has none.
        """
        with _process_lock, self._device().virtual or nullcontext():
            yield

    def _device(self) -> Device:
        if self.process == os.getpid() and self.token in _shared_devices:
            return _shared_devices[self.token]
        if self.gpu not in _worker_devices:
            _worker_devices[self.gpu] = _find_in_worker(self.gpu)
        return _worker_devices[self.gpu]


def _find_in_worker(gpu: str) -> Device:
    try:
        return device.find(gpu)
    except NoGpuError as error:
        raise NoGpuError(
            f"a worker of the executor has no GPU to measure on: {error}; or choose a virtual GPU "
            "by its name: gpulab.use('H200')"
        ) from error


@contextmanager
def share_gpu(executor: Executor, tasks: Iterable[Task]) -> Iterator[GpuAssignment]:
    """Share the GPU in use with the workers for the block, and leave it so that they can enter."""
    gpu = device.current()
    assignment = GpuAssignment(_worker_gpu(gpu, executor, tasks), os.getpid(), uuid4().hex)
    _shared_devices[assignment.token] = gpu
    try:
        with outside():
            yield assignment
    finally:
        del _shared_devices[assignment.token]


def _worker_gpu(gpu: Device, executor: Executor, tasks: Iterable[Task]) -> str:
    if all(task.on == "cpu" for task in tasks):
        return "auto"
    if gpu.virtual is None:
        return "cuda"
    # The workers of another kind of executor may be on machines with GPUs of their own, for
    # which a virtual GPU that was not asked for must not stand in.
    if not gpu.stands_in or isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
        return gpu.virtual.spec.name
    return "cuda"


def provenance_in_worker(assignment: GpuAssignment) -> Mapping[str, object]:
    """Return the provenance of what a worker measures; runs in the worker."""
    with assignment.entered():
        return provenance()


def measure_in_worker(assignment: GpuAssignment, task: Task, effort: Effort) -> Point:
    """Return the point of a task; runs in the worker."""
    with assignment.entered():
        return measure_point(task, effort)


class InProcessRunner:
    """Measures tasks in this process, on the GPU in use."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of the points."""
        return provenance()

    def run(self, tasks: Sequence[Task], observer: RunObserver) -> str:
        """Measure the tasks, and return what stopped the run; an empty text if nothing did."""
        try:
            for task in tasks:
                observer.task_started(task)
                observer.point_measured(measure_point(task, self._effort))
        except KeyboardInterrupt:
            return INTERRUPTED
        return ""


def _broken_executor(error: BrokenExecutor) -> str:
    return f"its executor, which broke: {first_line(error)}"


def refuse_forks(executor: Executor, tasks: Iterable[Task]) -> None:
    """Refuse processes that are copies of this one, in which neither CUDA nor threads work.

    Raises
    ------
    InvalidOptionError
        If the executor forks, and the tasks are more than a virtual GPU can do.
    """
    if _start_method(executor) != "fork":
        return
    if device.current().virtual is None or any(task.on == "cpu" for task in tasks):
        raise InvalidOptionError(
            "the executor forks this process, and in a fork neither CUDA nor torch's threads "
            "work; make it with ProcessPoolExecutor(..., "
            'mp_context=multiprocessing.get_context("spawn"))'
        )


# The standard library gives no public answer to the two questions below, and trying it out is no
# way: a task that runs in a fork of this process may hang there.


def _start_method(executor: Executor) -> str | None:
    """Return how the executor starts processes; None if it starts none, or does not say."""
    context = getattr(executor, "_mp_context", None)
    return None if context is None else context.get_start_method()


def _worker_count(executor: Executor) -> int:
    """Return how many tasks the executor runs at a time, or a guess where it does not say."""
    return int(getattr(executor, "_max_workers", _N_IN_FLIGHT))


class ExecutorRunner:
    """Measures tasks on the workers of an executor."""

    def __init__(self, executor: Executor, assignment: GpuAssignment, effort: Effort) -> None:
        self._stopped_by = ""
        self._executor = executor
        self._assignment = assignment
        self._effort = effort
        self._in_flight: dict[Future[Point], Task] = {}
        self._n_workers = _worker_count(executor)

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of one of the workers; the others are compared with it."""
        try:
            return self._executor.submit(provenance_in_worker, self._assignment).result()
        except BrokenExecutor as error:
            raise InvalidOptionError(
                f"the executor is broken ({first_line(error)}); make a new one"
            ) from error

    def run(self, tasks: Sequence[Task], observer: RunObserver) -> str:
        """Measure the tasks, and return what stopped the run; an empty text if nothing did."""
        waiting = deque(tasks)
        try:
            while not self._stopped_by and (waiting or self._in_flight):
                while waiting and not self._stopped_by and self._has_room_for(waiting[0]):
                    observer.task_started(waiting[0])
                    self._submit(waiting.popleft())
                self._collect(observer, None)
        except KeyboardInterrupt:
            self._stopped_by = INTERRUPTED
        finally:
            self._finish(observer)
        return self._stopped_by

    def _has_room_for(self, task: Task) -> bool:
        # A task of the CPU uses all its cores: whatever runs beside it would be timed with it.
        if task.on == "cpu" or any(other.on == "cpu" for other in self._in_flight.values()):
            return not self._in_flight
        # No more tasks than workers: those that wait in a pool are lost when a worker dies.
        return len(self._in_flight) < self._n_workers

    def _submit(self, task: Task) -> None:
        try:
            future = self._executor.submit(measure_in_worker, self._assignment, task, self._effort)
        except BrokenExecutor as error:
            self._stopped_by = _broken_executor(error)
        else:
            self._in_flight[future] = task

    def _collect(self, observer: RunObserver, timeout_s: float | None) -> None:
        if not self._in_flight:
            return
        done, _ = wait_for(self._in_flight, timeout_s, return_when=FIRST_COMPLETED)
        for future in done:
            self._receive(future, self._in_flight.pop(future), observer)

    def _receive(self, future: Future[Point], task: Task, observer: RunObserver) -> None:
        try:
            point = future.result()
        except (KeyboardInterrupt, CancelledError):
            # A terminal sends Ctrl-C to the workers, too; a closed cluster cancels what it has.
            self._stopped_by = self._stopped_by or INTERRUPTED
            return
        except BrokenExecutor as error:
            self._stopped_by = _broken_executor(error)
            point = Point(task, error="a worker died while this task or one beside it ran")
        except GpulabError:
            raise  # every other task would meet it as well
        except Exception as error:  # noqa: BLE001  # an executor's own errors have no class in common
            reason = f"its worker failed: {type(error).__name__}: {first_line(error)}"
            point = Point(task, error=reason)
        observer.point_measured(point)

    def _finish(self, observer: RunObserver) -> None:
        """Leave the executor idle: cancel tasks that wait, keep the points of those that run."""
        for future in list(self._in_flight):
            if future.cancel():
                del self._in_flight[future]
        end_s = time.monotonic() + _GRACE_S
        with suppress(KeyboardInterrupt):  # the second one is for those who cannot wait
            while self._in_flight and time.monotonic() < end_s:
                self._collect(observer, end_s - time.monotonic())
