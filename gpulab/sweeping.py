"""Measure many tasks, here or on the workers of an executor, and keep every point that is there.

A sweep with a file can be stopped at any moment, by Ctrl-C, by a crash or by a dying worker; the
same call goes on with what is missing.
"""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from itertools import product

from gpulab._progress import Bar
from gpulab._sweep_book import Book, Sweep
from gpulab._sweep_file import journal
from gpulab._sweep_run import Flight, Here, Runner, lent, refuse_forks
from gpulab._sweep_take import Effort, check, take_point
from gpulab.errors import UnknownNameError
from gpulab.tasks import Point, Task
from gpulab.workloads import workload

__all__ = ["Sweep", "sweep", "take", "tasks_of"]


def sweep(  # noqa: PLR0913  # all but the tasks are keyword-only
    tasks: Iterable[Task],
    *,
    executor: Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
    precision: float = 0.01,
    max_time_s: float = 0.3,
) -> Sweep:
    """Measure tasks one after another, or on the workers of an executor.

    Parameters
    ----------
    tasks
        What to measure; see :func:`tasks_of`. One that is given twice is measured once.
    executor
        Where to run them: any executor of ``concurrent.futures``, or Dask's
        ``client.get_executor()``; see :mod:`gpulab.cluster` for one worker per GPU. None: here.
        Workers that share a GPU take turns. Tasks of the CPU are given out alone, with nothing
        beside them.
    out
        A file for the points, one line of JSON each, written as they come. If it exists, its
        points are not measured again; those that failed are, after all others.
    progress
        Whether to show a bar (in text) after one second.
    precision
        Half the width of the interval that is good enough, as a share of the median.
    max_time_s
        When to stop sampling a task, in seconds; its warm-up may take as long again.

    Returns
    -------
    Sweep
        The points of all tasks that were given. A task that could not be measured has a point
        that says why; after Ctrl-C, or when the executor breaks, some are missing.

    Raises
    ------
    UnknownNameError
        If a task names a workload or a method that does not exist.
    InvalidOptionError
        If the file was begun on another machine, or the executor cannot run the tasks.
    SchemaVersionError
        If the file is not one of a sweep, or is damaged.
    NoGpuError
        If a worker has no GPU, and none was asked for by name.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.sweeping import sweep, tasks_of
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = sweep(tasks_of(["add"], [2**20, 2**40], caches=["hot"]))
    >>> print(found)
    2 of 2 points; virtual NVIDIA H200
    failed: add n=1,099,511,627,776 float32 on the GPU: hot, calibrated: does not fit: \
needs at least 8.00 TiB, and the GPU has 139 GiB free
    """
    asked = {task.key: task for task in tasks}
    for task in asked.values():
        check(task)
    effort = Effort(precision, max_time_s)
    with ExitStack() as stack:
        file = None if out is None else stack.enter_context(journal(out))
        runner: Runner = Here(effort)
        if executor is not None:
            refuse_forks(executor, asked.values())
            runner = Flight(executor, stack.enter_context(lent(executor, asked.values())), effort)
        header = runner.describe()
        if file is not None:
            header = file.begin(header)
        book = Book(asked, header, file)
        bar = Bar(total=len(asked), desc="sweep", unit=" points", disable=not progress)
        stopped_by = runner.run(book.open_tasks(), stack.enter_context(book.shown(bar)))
        return book.closed(stopped_by)


def take(task: Task, *, precision: float = 0.01, max_time_s: float = 0.3) -> Point:
    """Measure one task, here and now.

    Memory that does not suffice, or a kernel that does not exist, is told in the point's
    ``error``. Random numbers of the caller stay as they are, and so does torch's number of
    threads.

    Parameters
    ----------
    task
        What to measure. On the GPU it is timed by :func:`gpulab.measure`. With transfers, each
        call copies the inputs from pinned host memory, the results into such memory, or both.
        On the CPU it is timed by the real clock, also where a virtual GPU is entered.
    precision, max_time_s
        As for :func:`sweep`.

    Raises
    ------
    UnknownNameError
        If the task names a workload or a method that does not exist.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.tasks import Task
    >>> with gpulab.virtual_gpu("H200"):
    ...     point = take(Task("add", 2**20, method="synchronized", cache="hot"))
    >>> point.source, point.n_samples, point.error
    ('virtual', 10, '')
    """
    check(task)
    return take_point(task, Effort(precision, max_time_s))


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
    """Return every combination of what is given as a task, each of them once.

    A type is left out where a workload is not offered for it. On the CPU caches, methods and
    transfers make no difference, so that each size is one task there.

    Parameters
    ----------
    workloads
        Names of the catalogue, e.g. ``gpulab.workloads.names()``.
    sizes
        None: each workload's own.
    dtypes, on, caches, methods, transfers
        As the fields of :class:`gpulab.tasks.Task`.

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
    chosen = [workload(name) for name in workloads]
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
