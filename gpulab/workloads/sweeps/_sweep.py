"""Run a list of measurements, in this process or on the workers of an executor.

A sweep with a file may stop at any moment: by Ctrl-C, by a crash or because a worker dies. The
same call then continues with the missing tasks. One file, because a running sweep and its result
are read together.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING, Self

from gpulab.core.disk import growing
from gpulab.core.errors import InvalidOptionError, NotSavedError, UnknownNameError, shown
from gpulab.core.foreign_text import one_line
from gpulab.core.interrupts import ExitStack
from gpulab.core.progress import Bar
from gpulab.core.requirements import COUNT, FLAG, PATH, TEXT, NameOf, instance_of, items_of
from gpulab.core.tracebacks import UsersTraceback
from gpulab.core.units import counted
from gpulab.gpus.provenance import device_label
from gpulab.timing import METHODS, MeasurementOptions
from gpulab.workloads import WORKLOADS, workload
from gpulab.workloads.sweeps._executor import (
    AnyPoint,
    AnyTask,
    ExecutorRunner,
    InProcessRunner,
    refuse_forks,
    share_gpu,
)
from gpulab.workloads.sweeps._functions import (
    Amount,
    FunctionPoint,
    FunctionTask,
    Make,
    Setting,
    function_frame,
    function_tasks,
    refuse_unpicklable,
)
from gpulab.workloads.sweeps._host import utc_now
from gpulab.workloads.sweeps._journal import Journal, read
from gpulab.workloads.sweeps._measure_point import TASK, check, measure_point
from gpulab.workloads.sweeps._tasks import CACHES, SIDES, TRANSFERS, Point, Task, frame_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Sweep", "sweep", "take", "tasks_of"]

_DEFAULTS = MeasurementOptions()


@dataclass(frozen=True, slots=True)
class Sweep:
    """The points of a sweep, and the tasks that are still missing.

    Attributes
    ----------
    points
        One for each task that was measured or failed, in the order of the tasks.
    provenance
        Facts about the machine: GPU, driver, versions, CPU and its threads, clocks, date.
    missing
        Tasks without a point, because the sweep was stopped.
    stopped_by
        What stopped the sweep; empty if it ended by itself.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.workloads.sweeps import Task
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = gpulab.sweep([Task("add", 2**20, method="events", cache="hot")])
    >>> len(found.points), found.missing, found.failures()
    (1, (), ())
    """

    # Often thousands; one kind in one sweep.
    points: tuple[Point, ...] | tuple[FunctionPoint, ...] = field(repr=False)
    provenance: Mapping[str, object] = field(repr=False)
    missing: tuple[Task | Setting, ...] = ()
    stopped_by: str = ""

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what is in the file that ``out=`` named, without measuring anything.

        If it cannot be read, this raises `InvalidOptionError`; if it is no sweep's, of another
        version or damaged, `SchemaVersionError`.

        Examples
        --------
        ::

            yesterday = gpulab.workloads.sweeps.Sweep.load("softmax.jsonl")
            gpulab.plots.sweep(yesterday)
        """
        PATH.check(path=path)
        contents = read(path)
        return cls(tuple(contents.points.values()), contents.provenance)

    def failures(self) -> tuple[Point | FunctionPoint, ...]:
        """Return the points with an error instead of a time."""
        return tuple(point for point in self.points if point.error)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per point; see :func:`gpulab.workloads.sweeps.frame_of`.

        For a function of your own its columns are the parameters, the times in seconds,
        ``flops_per_s``, ``bytes_per_s`` and ``share_of_limit``. If the function returned several
        works by name there is one row for each, with the ``ratio`` to the first and its interval.
        """
        own = [point for point in self.points if isinstance(point, FunctionPoint)]
        of_catalogue = [point for point in self.points if isinstance(point, Point)]
        if own and of_catalogue:  # only in a file that was loaded
            import pandas as pd

            return pd.concat([function_frame(own), frame_of(of_catalogue)], ignore_index=True)
        return function_frame(own) if own else frame_of(of_catalogue)

    def __str__(self) -> str:
        devices = [device_label(point.device_name, point.source) for point in self.points]
        n_tasks = len(self.points) + len(self.missing)
        n_points = f"{len(self.points)} of {counted(n_tasks, 'point')}"
        lines = ["; ".join([n_points, *dict.fromkeys(devices)])]
        lines += [f"failed: {point.task}: {one_line(point.error)}" for point in self.failures()]
        n_shared = sum("shared-gpu" in point.findings for point in self.points)
        if n_shared:
            lines.append(f"{counted(n_shared, 'point')} with other processes on the GPU")
        if self.stopped_by:
            lines.append(f"stopped by {one_line(self.stopped_by)}")
        if self.missing:
            n_more = len(self.missing) - 1
            more = f" and {n_more} more" if n_more else ""
            lines.append(
                f"missing: {self.missing[0]}{more}; to measure what is missing, repeat the same "
                "call with the same file in out="
            )
        return "\n".join(lines)

    __repr__ = __str__


_EXECUTOR = instance_of(Executor, "an executor of concurrent.futures").or_none
_WORKLOAD = NameOf("workload", WORKLOADS)


class RunningSweep:
    """The state of a sweep while it runs: its points so far, its file and its progress bar."""

    def __init__(
        self, tasks: Mapping[str, AnyTask], provenance: Mapping[str, object], file: Journal | None
    ) -> None:
        self._tasks = tasks
        self._provenance = provenance
        self._file = file
        before = {} if file is None else file.before.points
        self._points = {key: before[key] for key in tasks if key in before}
        self._bar: Bar | None = None

    def pending_tasks(self) -> list[AnyTask]:
        """Return the tasks to measure: new ones first, because failed ones may fail again."""
        new = [task for key, task in self._tasks.items() if key not in self._points]
        again = [self._tasks[key] for key, point in self._points.items() if point.error]
        return new + again

    @contextmanager
    def shown_on(self, bar: Bar) -> Iterator[None]:
        """Show the progress on a bar."""
        with bar:
            self._bar = bar
            bar.update(sum(not point.error for point in self._points.values()))
            yield

    def task_started(self, task: AnyTask) -> None:
        """Show the title of the task that starts now."""
        if self._bar is None or self._bar.disable:
            return
        self._bar.set_description_str(str(task), refresh=False)
        # tqdm's refresh() ignores the bar's delay, and a short sweep must show nothing.
        if self._bar.format_dict["elapsed"] >= self._bar.delay:
            self._bar.refresh()

    def point_measured(self, point: AnyPoint) -> None:
        """Save a point, first on disk and then in memory.

        If the disk refuses, this raises `NotSavedError`; this point and later ones are in memory
        only.
        """
        point = self._checked(point)
        try:
            if self._file is not None:
                self._file.add(point)
        except NotSavedError:
            # Not tried again: a disk that is full would refuse each further point.
            self._file = None
            raise
        finally:
            self._points[point.task.key] = point
        if self._bar is not None:
            self._bar.update()

    def _checked(self, point: AnyPoint) -> AnyPoint:
        """Return the point, or an error in its place if it comes from another kind of machine."""
        task = self._tasks[point.task.key]
        name = str(self._provenance["gpu" if task.on == "gpu" else "cpu"])
        if not point.device_name:  # its worker died, and this process made the point
            source = str(self._provenance["source"]) if task.on == "gpu" else "measured"
            return replace(point, device_name=name, source=source, taken_at=utc_now())
        if point.error or point.device_name == name:
            return point
        return task.failed(
            f"its worker has {point.device_name}, but the sweep is for {name}",
            source=point.source,
            device_name=point.device_name,
            taken_at=point.taken_at,
        )

    @contextmanager
    def kept_in_memory(self) -> Iterator[None]:
        """Attach all points to the error of a disk that refuses one, as its ``partial``."""
        try:
            yield
        except NotSavedError as error:
            partial = self.result("its file, which cannot be written")
            measured = f"{len(partial.points)} of {counted(len(self._tasks), 'point')}"
            raise NotSavedError(
                f"{error}; what was measured ({measured}) is in memory, as .partial of this "
                "error; after a traceback it is sys.last_value.partial",
                error,
                partial,
            ) from error

    def result(self, stopped_by: str) -> Sweep:
        """Return the sweep as it ended."""
        return Sweep(
            # In the order of the tasks: workers may have finished in another one.
            tuple(self._points[key] for key in self._tasks if key in self._points),
            self._provenance,
            tuple(
                task.setting if isinstance(task, FunctionTask) else task
                for key, task in self._tasks.items()
                if key not in self._points
            ),
            stopped_by,
        )


def sweep(  # noqa: PLR0913  # all but the tasks are keyword-only
    tasks: Iterable[Task] | Make,
    *,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
    precision: float = 0.01,
    max_time_s: float = 0.3,
    method: str = _DEFAULTS.method,
    cache: str | None = _DEFAULTS.cache,
    flops: Amount = None,
    size_bytes: Amount = None,
    **parameters: Iterable[object],
) -> Sweep:
    """Return the times of your own work for many parameters, or of many tasks of the catalogue.

    They are measured one after another, or on an executor's workers.

    Parameters
    ----------
    tasks
        A function of ``parameters`` that makes its inputs and returns the work: a function without
        arguments, or a dict of several by name, such as ``{"torch": ..., "triton": ...}``. Those
        are measured in turns. Or tasks of the catalogue; see :func:`tasks_of`. A task that appears
        twice is measured once.
    executor
        Where to run the tasks: any executor of ``concurrent.futures``, or Dask's
        ``client.get_executor()``; see :mod:`gpulab.cluster` for one worker per GPU. None: in this
        process. Workers that share a GPU take turns. While a task of the CPU runs, no other task
        does.
    out
        A file for the points, one line of JSON each, written when each point is measured. If the
        file exists, its points are not measured again, except failed ones, which come last. Only
        one sweep at a time may write to it; see :func:`gpulab.core.disk.growing`.
    progress
        Whether to show a bar (in text) after one second.
    precision
        Stop when half the width of the interval is at most this share of the median.
    max_time_s
        When to stop sampling a task, in seconds; its warm-up may take as long again.
    method, cache
        For a function of your own, as in :func:`gpulab.measure`.
    flops, size_bytes
        For a function of your own: FLOPs and bytes of one call, as a number or as a function of
        the same parameters; ``flops="auto"`` lets PyTorch count.
    **parameters
        For a function of your own: a list of values for each of its parameters. Each combination
        is a point.

    Returns
    -------
    Sweep
        The points of all tasks. A task that could not be measured has a point that says why.
        After Ctrl-C, or if the executor breaks, some points are missing.

    Raises
    ------
    UnknownNameError
        If a task names a workload or a method that does not exist.
    NotCallableError
        If your function returns something else than work.
    InvalidOptionError
        If your function does not take these parameters, if ``out`` is not the name of a file in a
        folder that exists, if the file was begun on another machine, or if the executor cannot
        run the tasks.
    FileInUseError
        If another sweep writes to the file; the message names its process.
    NotSavedError
        If the file cannot be written, for example on a full disk. The error's ``partial`` is a
        :class:`Sweep` with what was measured.
    SchemaVersionError
        If the file is not the file of a sweep, or is damaged.
    NoGpuError
        If a worker has no GPU, and you did not choose a virtual one by name.

    Examples
    --------
    >>> import torch, gpulab
    >>> def add(n, dtype):
    ...     x = torch.ones(n, dtype=dtype, device="cuda")
    ...     return {"sum": lambda: x + x, "product": lambda: x * 2}
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = gpulab.sweep(add, n=[2**20, 2**24], dtype=[torch.float16])
    >>> found.to_frame()[["n", "work"]].values.tolist()
    [[1048576, 'sum'], [1048576, 'product'], [16777216, 'sum'], [16777216, 'product']]

    Workloads of the catalogue:

    >>> from gpulab.workloads.sweeps._sweep import sweep, tasks_of
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = sweep(tasks_of(["add"], [2**20, 2**40], caches=["hot"]))
    >>> print(found)
    2 of 2 points; virtual NVIDIA H200
    failed: add n=1,099,511,627,776 float32 on the GPU: hot, calibrated: does not fit: \
needs at least 8.00 TiB, and the GPU has 139 GiB free
    """
    with UsersTraceback():
        options = MeasurementOptions(
            method=method, cache=cache, precision=precision, max_time_s=max_time_s
        )
        FLAG.check(progress=progress)
        PATH.or_none.check(out=out)
        _EXECUTOR.check(executor=executor)
        own = {
            name: value
            for name, value, default in (
                ("method", method, _DEFAULTS.method),
                ("cache", cache, _DEFAULTS.cache),
                ("flops", flops, None),
                ("size_bytes", size_bytes, None),
            )
            if value is not default
        }
        listed: Iterable[AnyTask]
        if callable(tasks):
            listed = function_tasks(
                tasks, parameters, options=options, flops=flops, size_bytes=size_bytes
            )
            if executor is not None:
                refuse_unpicklable(executor, tasks)
        else:
            _refuse_for_tasks({**own, **parameters})
            listed = of_catalogue = items_of("tasks", tasks, TASK)
            for each in of_catalogue:
                check(each)
        by_key: dict[str, AnyTask] = {task.key: task for task in listed}
        with ExitStack() as stack:
            # The file is locked before anything is measured, so that a second sweep fails at once.
            file = None if out is None else stack.enter_context(growing(out))
            journal = None if file is None else Journal(file)
            runner: InProcessRunner | ExecutorRunner = InProcessRunner(options)
            if executor is not None:
                refuse_forks(executor, by_key.values())
                assignment = stack.enter_context(share_gpu(executor, by_key.values()))
                runner = ExecutorRunner(executor, assignment, options)
            provenance = runner.describe()
            if journal is not None:
                provenance = journal.begin(provenance)
            running = RunningSweep(by_key, provenance, journal)
            bar = Bar(total=len(by_key), desc="sweep", unit=" points", disable=not progress)
            with running.shown_on(bar), running.kept_in_memory():
                stopped_by = runner.run(running.pending_tasks(), running)
                if file is not None:
                    # Some file systems report a full disk only here.
                    file.sync()
            return running.result(stopped_by)


def _refuse_for_tasks(options: Mapping[str, object]) -> None:
    """Refuse what belongs to a function of one's own, beside tasks of the catalogue."""
    for name, value in options.items():
        raise InvalidOptionError(
            f"{name}={shown(value)} is for a function of your own: sweep(make, n=[...]); for "
            "tasks of the catalogue give it to tasks_of()"
        )


def take(task: Task, *, precision: float = 0.01, max_time_s: float = 0.3) -> Point:
    """Return the time of one task, measured now and in this process.

    If there is too little memory, or no kernel for the type, the point's ``error`` says so. The
    state of PyTorch's random numbers and its number of threads do not change.

    Parameters
    ----------
    task
        What to measure. On the GPU it is timed by :func:`gpulab.measure`. With transfers, each
        call copies the inputs from pinned host memory, the results into pinned memory, or both.
        On the CPU it is timed by the real clock, also while a virtual GPU is in use.
    precision, max_time_s
        As for :func:`sweep`.

    Raises
    ------
    UnknownNameError
        If the task names a workload or a method that does not exist.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.workloads.sweeps._tasks import Task
    >>> with gpulab.virtual_gpu("H200"):
    ...     point = take(Task("add", 2**20, method="synchronized", cache="hot"))
    >>> point.source, point.n_samples, point.error
    ('virtual', 10, '')
    """
    return measure_point(task, MeasurementOptions(precision=precision, max_time_s=max_time_s))


def tasks_of(  # noqa: PLR0913  # one for each field of a task
    workloads: Iterable[str],
    sizes: Sequence[int] | None = None,
    *,
    dtypes: Sequence[str] = ("float32",),
    on: Sequence[str] = ("gpu",),
    caches: Sequence[str] = ("cold",),
    methods: Sequence[str] = ("calibrated",),
    transfers: Sequence[str] = ("none",),
) -> tuple[Task, ...]:
    """Return one task for every combination of the arguments.

    Types that a workload does not offer are left out for it. On the CPU, caches, methods and
    transfers make no difference, so there is one task per size.

    Parameters
    ----------
    workloads
        Names from the catalogue, e.g. ``gpulab.workloads.names()``.
    sizes
        Sizes of the problem; None: each workload's own list.
    dtypes, on, caches, methods, transfers
        Values for the fields of :class:`gpulab.workloads.sweeps.Task`.

    Raises
    ------
    UnknownNameError
        If a name does not exist, or a type is offered for none of the workloads.

    Examples
    --------
    >>> [task.key for task in tasks_of(["add"], [64, 128], on=["gpu", "cpu"])]
    ['add/64/float32/gpu/cold/calibrated/none', 'add/128/float32/gpu/cold/calibrated/none', \
'add/64/float32/cpu/hot/wall/none', 'add/128/float32/cpu/hot/wall/none']
    """
    chosen = [workload(name) for name in items_of("workloads", workloads, _WORKLOAD)]
    if sizes is not None:
        sizes = items_of("sizes", sizes, COUNT)
    # Types are checked only to be text here, because each workload offers different ones.
    dtypes = items_of("dtypes", dtypes, TEXT)
    on = items_of("on", on, NameOf("side for on", SIDES))
    caches = items_of("caches", caches, NameOf("cache state", CACHES))
    methods = items_of("methods", methods, NameOf("timing method", METHODS))
    transfers = items_of("transfers", transfers, NameOf("kind of transfers", TRANSFERS))
    offered = {dtype for each in chosen for dtype in each.dtypes}
    for dtype in dtypes:
        if chosen and dtype not in offered:
            raise UnknownNameError("type of these workloads", dtype, offered)
    tasks = [
        Task(each.name, size, dtype, side, *how)
        for each in chosen
        for dtype in dtypes
        if dtype in each.dtypes
        for side in on
        for how in (product(caches, methods, transfers) if side != "cpu" else [()])
        for size in (each.sizes if sizes is None else sizes)
    ]
    for task in tasks:
        check(task)
    return tuple(dict.fromkeys(tasks))
