"""Run the tasks of a sweep in this process or on the workers of a ``concurrent.futures`` executor.

Points that were measured are never lost, neither by an interrupt nor when a worker dies.
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
from typing import TYPE_CHECKING
from uuid import uuid4

from gpulab import device
from gpulab.core.errors import GpulabError, InvalidOptionError, NoGpuError
from gpulab.core.foreign_text import first_line
from gpulab.device import Device, outside
from gpulab.timing import MeasurementOptions
from gpulab.workloads.sweeps._functions import FunctionPoint, FunctionTask, measure_function
from gpulab.workloads.sweeps._host import provenance
from gpulab.workloads.sweeps._measure_point import measure_point
from gpulab.workloads.sweeps._tasks import Point, Task

if TYPE_CHECKING:
    from gpulab.workloads.sweeps._sweep import RunningSweep

AnyTask = Task | FunctionTask
AnyPoint = Point | FunctionPoint


INTERRUPTED = "an interrupt"

_N_IN_FLIGHT = 16  # tasks at a time, if the executor does not say how many workers it has
_GRACE_S = 30.0  # how long to wait for running tasks after an interrupt; a task takes seconds

# Threads of one process share its GPU, its virtual GPU and its clock, so they take turns.
_process_lock = threading.Lock()
# Devices that a sweep of this process shares with its own threads, by their token.
_shared_devices: dict[str, Device] = {}
# Devices that this process has found as a worker, by the name that the sweep asked for.
_worker_devices: dict[str, Device] = {}


@dataclass(frozen=True, slots=True)
class GpuAssignment:
    """Which GPU a worker measures on: ``"auto"``, ``"cuda"`` or a name; it can be pickled.

    ``process`` is the sweep's. A worker that is a thread of it uses the same device, found by the
    token. Each sweep has a new token, so an executor that caches results, such as Dask's, cannot
    return points of an earlier sweep.
    """

    gpu: str
    process: int
    token: str

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Use the GPU in the worker, inside the block; `NoGpuError` if it has no CUDA GPU."""
        with _process_lock, self._device().virtual or nullcontext():
            yield

    def _device(self) -> Device:
        # After a fork the copied table is still there, but the process is another one.
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
def share_gpu(executor: Executor, tasks: Iterable[AnyTask]) -> Iterator[GpuAssignment]:
    """Share the GPU in use with the workers inside the block, and leave a virtual one meanwhile.

    Only one thread at a time can enter a virtual GPU, so this thread must not be in it.
    """
    gpu = device.current()
    assignment = GpuAssignment(_worker_gpu(gpu, executor, tasks), os.getpid(), uuid4().hex)
    _shared_devices[assignment.token] = gpu
    try:
        with outside():
            yield assignment
    finally:
        del _shared_devices[assignment.token]


def _worker_gpu(gpu: Device, executor: Executor, tasks: Iterable[AnyTask]) -> str:
    # A worker for the CPU need not have a GPU; "auto" refuses none.
    if all(task.on == "cpu" for task in tasks):
        return "auto"
    if gpu.virtual is None:
        return "cuda"
    # Workers of other executors may be on machines with GPUs of their own. They must use those,
    # unless the user chose the virtual GPU by name.
    if not gpu.stands_in or isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
        return gpu.virtual.spec.name
    return "cuda"


def provenance_in_worker(assignment: GpuAssignment) -> Mapping[str, object]:
    """Return the provenance of the points that a worker measures; runs in the worker."""
    with assignment.entered():
        return provenance()


def measured(task: AnyTask, effort: MeasurementOptions) -> AnyPoint:
    """Return the point of a task, measured now on the GPU in use."""
    # A task of a function has its effort among its options.
    if isinstance(task, FunctionTask):
        return measure_function(task)
    return measure_point(task, effort)


def measure_in_worker(
    assignment: GpuAssignment, task: AnyTask, effort: MeasurementOptions
) -> AnyPoint:
    """Return the point of a task; runs in the worker."""
    with assignment.entered():
        return measured(task, effort)


class InProcessRunner:
    """Measures tasks in this process, on the GPU in use."""

    def __init__(self, effort: MeasurementOptions) -> None:
        self._effort = effort

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of the points."""
        return provenance()

    def run(self, tasks: Sequence[AnyTask], observer: "RunningSweep") -> str:
        """Measure the tasks, and return what stopped the run; an empty text if nothing did."""
        try:
            for task in tasks:
                observer.task_started(task)
                observer.point_measured(measured(task, self._effort))
        except KeyboardInterrupt:
            return INTERRUPTED
        return ""


def _broken_executor(error: BrokenExecutor) -> str:
    return f"its executor, which broke: {first_line(error)}"


def refuse_forks(executor: Executor, tasks: Iterable[AnyTask]) -> None:
    """Refuse an executor that forks this process, if a task needs a CUDA GPU or the CPU.

    Neither CUDA nor torch's threads work in a fork.
    """
    if _start_method(executor) != "fork":
        return
    if device.current().virtual is None or any(task.on == "cpu" for task in tasks):
        raise InvalidOptionError(
            "the executor forks this process, and in a fork neither CUDA nor torch's threads "
            "work; make it with ProcessPoolExecutor(..., "
            'mp_context=multiprocessing.get_context("spawn"))'
        )


# The next two functions read private attributes, because the standard library has no public ones.
# Trying it out is not possible: a task that runs in a fork of this process may hang.


def _start_method(executor: Executor) -> str | None:
    """Return how the executor starts processes; None if it starts none or does not say."""
    context = getattr(executor, "_mp_context", None)
    return None if context is None else context.get_start_method()


def _worker_count(executor: Executor) -> int:
    """Return how many tasks the executor runs at a time, or a guess if it does not say."""
    return int(getattr(executor, "_max_workers", _N_IN_FLIGHT))


class ExecutorRunner:
    """Measures tasks on the workers of an executor."""

    def __init__(
        self, executor: Executor, assignment: GpuAssignment, effort: MeasurementOptions
    ) -> None:
        self._stopped_by = ""
        self._executor = executor
        self._assignment = assignment
        self._effort = effort
        self._in_flight: dict[Future[AnyPoint], AnyTask] = {}
        self._n_workers = _worker_count(executor)

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of one worker; points from different machines are refused."""
        try:
            return self._executor.submit(provenance_in_worker, self._assignment).result()
        # A pool that was shut down raises RuntimeError, of which BrokenExecutor is a kind.
        except (RuntimeError, CancelledError) as error:
            if isinstance(error, GpulabError):
                raise
            raise InvalidOptionError(
                f"the executor is broken or was shut down ({first_line(error)}); make a new one"
            ) from error

    def run(self, tasks: Sequence[AnyTask], observer: "RunningSweep") -> str:
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

    def _has_room_for(self, task: AnyTask) -> bool:
        # A task of the CPU uses all its cores, so another task at the same time would slow it.
        if task.on == "cpu" or any(other.on == "cpu" for other in self._in_flight.values()):
            return not self._in_flight
        # At most one task per worker: tasks that wait in a pool are lost when a worker dies.
        return len(self._in_flight) < self._n_workers

    def _submit(self, task: AnyTask) -> None:
        try:
            # A function of this module and not a lambda, because a process pool pickles it.
            future = self._executor.submit(measure_in_worker, self._assignment, task, self._effort)
        except BrokenExecutor as error:
            self._stopped_by = _broken_executor(error)
        else:
            self._in_flight[future] = task

    def _collect(self, observer: "RunningSweep", timeout_s: float | None) -> None:
        if not self._in_flight:
            return
        done, _ = wait_for(self._in_flight, timeout_s, return_when=FIRST_COMPLETED)
        for future in done:
            self._receive(future, self._in_flight.pop(future), observer)

    def _receive(self, future: Future[AnyPoint], task: AnyTask, observer: "RunningSweep") -> None:
        try:
            point = future.result()
        except (KeyboardInterrupt, CancelledError):
            # A terminal sends Ctrl-C to the workers too, and a cluster that closes cancels tasks.
            # The first reason stays: a broken executor cancels its other tasks, too.
            self._stopped_by = self._stopped_by or INTERRUPTED
            return
        except BrokenExecutor as error:
            self._stopped_by = _broken_executor(error)
            point = task.failed("a worker died while this task ran, or one at the same time")
        except GpulabError:
            raise  # every other task would fail in the same way
        except Exception as error:  # noqa: BLE001  # an executor's own errors have no class in common
            reason = f"its worker failed: {type(error).__name__}: {first_line(error)}"
            point = task.failed(reason)
        observer.point_measured(point)

    def _finish(self, observer: "RunningSweep") -> None:
        """Leave the executor idle: cancel waiting tasks, and save the points of running ones."""
        for future in list(self._in_flight):
            # True only for tasks that no worker has begun; the others are waited for below.
            if future.cancel():
                del self._in_flight[future]
        end_s = time.monotonic() + _GRACE_S
        with suppress(KeyboardInterrupt):  # a second Ctrl-C ends the wait at once
            while self._in_flight and time.monotonic() < end_s:
                self._collect(observer, end_s - time.monotonic())
