"""Run tasks here or on an executor, and lose nothing to an interrupt or a dying worker."""

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
from gpulab.sweeps._measure_point import Effort, measure_point
from gpulab.sweeps._tasks import Point, Task


class Watcher(Protocol):
    """Where a run tells how far it is."""

    def begin(self, task: Task) -> None:
        """Note that a task is on its way."""

    def keep(self, point: Point) -> None:
        """Keep a point for good."""


class Runner(Protocol):
    """What takes the points."""

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of the points."""
        ...

    def run(self, tasks: Sequence[Task], book: Watcher) -> str:
        """Take the points of tasks, and return what stopped it, or nothing."""
        ...


INTERRUPTED = "an interrupt"

_N_FLYING = 16  # of an executor that does not tell how many workers it has
_GRACE_S = 30.0  # for what still runs at an interrupt; a task ends within seconds

# Tasks of one process share its GPU, its virtual GPU and its clock.
_one_at_a_time = threading.Lock()
_lent: dict[str, Device] = {}
_made: dict[str, Device] = {}


@dataclass(frozen=True, slots=True)
class GpuAssignment:
    """Which GPU a worker is to take; it can be pickled.

    Attributes
    ----------
    gpu
        ``"auto"``, ``"cuda"``, or the name of a virtual one.
    process, token
        Where the very device can be found, if the worker is a thread of that process. The token
        is new for each sweep, so that no executor takes a point for one it has already.
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
        with _one_at_a_time, self._device().virtual or nullcontext():
            yield

    def _device(self) -> Device:
        if self.process == os.getpid() and self.token in _lent:
            return _lent[self.token]
        if self.gpu not in _made:
            _made[self.gpu] = _looked_up(self.gpu)
        return _made[self.gpu]


def _looked_up(gpu: str) -> Device:
    try:
        return device.find(gpu)
    except NoGpuError as error:
        raise NoGpuError(
            f"a worker of the executor has no GPU to measure on: {error}; or choose a virtual GPU "
            "by its name: gpulab.use('H200')"
        ) from error


@contextmanager
def lent(executor: Executor, tasks: Iterable[Task]) -> Iterator[GpuAssignment]:
    """Leave the GPU in use for the block, so that workers can enter it, and say which it is."""
    gpu = device.current()
    place = GpuAssignment(_name_of(gpu, executor, tasks), os.getpid(), uuid4().hex)
    _lent[place.token] = gpu
    try:
        with outside():
            yield place
    finally:
        del _lent[place.token]


def _name_of(gpu: Device, executor: Executor, tasks: Iterable[Task]) -> str:
    if all(task.on == "cpu" for task in tasks):
        return "auto"
    if gpu.virtual is None:
        return "cuda"
    # The workers of another kind of executor may be on machines with GPUs of their own, for
    # which a virtual GPU that was not asked for must not stand in.
    if not gpu.stands_in or isinstance(executor, ThreadPoolExecutor | ProcessPoolExecutor):
        return gpu.virtual.spec.name
    return "cuda"


def described(place: GpuAssignment) -> Mapping[str, object]:
    """Return the provenance of what a worker measures; runs in the worker."""
    with place.entered():
        return provenance()


def taken(place: GpuAssignment, task: Task, effort: Effort) -> Point:
    """Return the point of a task; runs in the worker."""
    with place.entered():
        return measure_point(task, effort)


class Here:
    """Takes the points of tasks in this process, on the GPU in use."""

    def __init__(self, effort: Effort) -> None:
        self._effort = effort

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of the points."""
        return provenance()

    def run(self, tasks: Sequence[Task], book: Watcher) -> str:
        """Take the points of tasks, and return what stopped it, or nothing."""
        try:
            for task in tasks:
                book.begin(task)
                book.keep(measure_point(task, self._effort))
        except KeyboardInterrupt:
            return INTERRUPTED
        return ""


def _broken(error: BrokenExecutor) -> str:
    return f"its executor, which broke: {_first_line(error)}"


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")


def refuse_forks(executor: Executor, tasks: Iterable[Task]) -> None:
    """Refuse processes that are copies of this one, in which neither CUDA nor threads work.

    Raises
    ------
    InvalidOptionError
        If the executor forks, and the tasks are more than a virtual GPU can do.
    """
    context = getattr(executor, "_mp_context", None)
    if context is None or context.get_start_method() != "fork":
        return
    if device.current().virtual is None or any(task.on == "cpu" for task in tasks):
        raise InvalidOptionError(
            "the executor forks this process, and in a fork neither CUDA nor torch's threads "
            "work; make it with ProcessPoolExecutor(..., "
            'mp_context=multiprocessing.get_context("spawn"))'
        )


class Flight:
    """Takes the points of tasks on the workers of an executor."""

    def __init__(self, executor: Executor, place: GpuAssignment, effort: Effort) -> None:
        self._stopped_by = ""
        self._executor = executor
        self._place = place
        self._effort = effort
        self._flying: dict[Future[Point], Task] = {}
        self._n_most = getattr(executor, "_max_workers", _N_FLYING)

    def describe(self) -> Mapping[str, object]:
        """Return the provenance of one of the workers; the others are compared with it."""
        try:
            return self._executor.submit(described, self._place).result()
        except BrokenExecutor as error:
            raise InvalidOptionError(
                f"the executor is broken ({_first_line(error)}); make a new one"
            ) from error

    def run(self, tasks: Sequence[Task], book: Watcher) -> str:
        """Take the points of tasks, and return what stopped it, or nothing."""
        waiting = deque(tasks)
        try:
            while not self._stopped_by and (waiting or self._flying):
                while waiting and not self._stopped_by and self._has_room_for(waiting[0]):
                    book.begin(waiting[0])
                    self._submit(waiting.popleft())
                self._collect(book, None)
        except KeyboardInterrupt:
            self._stopped_by = INTERRUPTED
        finally:
            self._land(book)
        return self._stopped_by

    def _has_room_for(self, task: Task) -> bool:
        # The CPU's work takes all of the CPU, and whatever ran beside it would be timed with it.
        if task.on == "cpu" or any(other.on == "cpu" for other in self._flying.values()):
            return not self._flying
        # No more than there are workers: what waits in the executor would die with a worker.
        return len(self._flying) < self._n_most

    def _submit(self, task: Task) -> None:
        try:
            future = self._executor.submit(taken, self._place, task, self._effort)
        except BrokenExecutor as error:
            self._stopped_by = _broken(error)
        else:
            self._flying[future] = task

    def _collect(self, book: Watcher, timeout_s: float | None) -> None:
        if not self._flying:
            return
        done, _ = wait_for(self._flying, timeout_s, return_when=FIRST_COMPLETED)
        for future in done:
            self._take_in(future, self._flying.pop(future), book)

    def _take_in(self, future: Future[Point], task: Task, book: Watcher) -> None:
        try:
            point = future.result()
        except (KeyboardInterrupt, CancelledError):
            # A terminal sends Ctrl-C to the workers, too; a closed cluster cancels what it has.
            self._stopped_by = self._stopped_by or INTERRUPTED
            return
        except BrokenExecutor as error:
            self._stopped_by = _broken(error)
            point = Point(task, error="a worker died while this task or one beside it ran")
        except GpulabError:
            raise  # every other task would meet it as well
        except Exception as error:  # noqa: BLE001  # an executor's own errors have no class in common
            reason = f"its worker failed: {type(error).__name__}: {_first_line(error)}"
            point = Point(task, error=reason)
        book.keep(point)

    def _land(self, book: Watcher) -> None:
        """Leave the executor idle: take back what has not begun, and keep what still ends."""
        for future in list(self._flying):
            if future.cancel():
                del self._flying[future]
        end_s = time.monotonic() + _GRACE_S
        with suppress(KeyboardInterrupt):  # the second one is for those who cannot wait
            while self._flying and time.monotonic() < end_s:
                self._collect(book, end_s - time.monotonic())
