"""Compare predicted with measured times, point by point, and summarize each model's error."""

import math
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from gpulab import gpus
from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import visible_row
from gpulab.core.requirements import TEXT, instance_of
from gpulab.gpus import GpuSpec, Roof, data_sheet
from gpulab.roofline._ceilings import CEILINGS, Ceilings
from gpulab.roofline._kernel_model import private_gpu_entered
from gpulab.roofline._predict import PredictedTime, predict
from gpulab.workloads.sweeps import HasPoints, Point, points_of

if TYPE_CHECKING:
    import pandas as pd


# These methods time the GPU alone; the others include launches, waits or the floor of events, and
# the CPU has a method of its own.
_METHODS = frozenset({"calibrated", "graph", "profiler", "profiler-span"})
_TASK = ("workload", "size", "dtype", "cache", "method")
_COLUMNS = (
    *_TASK,
    *("source", "device_name", "measured_s", "plain_s", "refined_s"),
    *("plain_ratio", "refined_ratio", "bound", "plain_bound", "plain_basis"),
    *("compute_s", "memory_s", "launch_s", "arithmetic", "intensity", "flops", "size_bytes"),
    "flops_per_s",
)
_SHOWN = ("bound", "compute_s", "memory_s", "launch_s")
_NEEDED = ("arithmetic", "intensity", "flops", "size_bytes")
_MODELS = ("plain", "refined")
_P90 = 0.9


def table(
    points: Iterable[Point] | HasPoints, *, ceilings: Ceilings | None = None
) -> "pd.DataFrame":
    """Return a table of points measured on a GPU, with the predictions of both models.

    Parameters
    ----------
    points
        Points, or a sweep or recording that has them. Left out are points of the CPU, with an
        error or with transfers, and those of methods that include more than the time on the GPU.
    ceilings
        If the GPU has no known data sheet, the plain model uses the measured roof of these
        ceilings. Without them, such a point has no prediction.

    Returns
    -------
    pandas.DataFrame
        One row per point. ``plain_ratio`` and ``refined_ratio`` are the measured time over the
        predicted one: 3 means three times as slow as predicted. ``bound``, ``compute_s``,
        ``memory_s`` and ``launch_s`` come from the refined model, or from the plain one if there
        is no refined prediction. ``flops_per_s`` is the measured rate. The models assume the burst
        clock, so a GPU slowed by heat has higher ratios.

    Examples
    --------
    >>> import gpulab
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> "refined_ratio" in gpulab.roofline.table(recorded).columns
    True
    """
    import pandas as pd

    every_point = points_of(points)
    if ceilings is not None:
        CEILINGS.check(ceilings=ceilings)
    comparable = [point for point in every_point if is_comparable(point)]
    roof = None if ceilings is None else ceilings.measured
    rows = [
        visible_row(row)
        for driver_name, group in groupby(comparable, key=attrgetter("device_name"))
        for row in _rows(group, gpus.by_driver_name(driver_name), roof)
    ]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def errors(table: "pd.DataFrame", by: str | None = None) -> "pd.DataFrame":
    """Return the relative error of each model: the predicted over the measured time, minus one.

    The columns are ``model``, ``n``, ``median`` and ``p90`` of the absolute error, and
    ``median_signed``, for all points of a :func:`table` or for each value of the column ``by``. A
    model without any prediction has no row.

    >>> import gpulab
    >>> from gpulab.workloads.sweeps import Point, Task
    >>> point = Point(Task("add", 2**20), median_s=5e-6, low_s=5e-6, high_s=5e-6, n_samples=9,
    ...     device_name="NVIDIA H200")
    >>> gpulab.roofline.errors(gpulab.roofline.table([point]))["model"].tolist()
    ['plain', 'refined']
    """
    import pandas as pd

    check_table(table)
    TEXT.or_none.check(by=by)
    if by is not None and by not in table.columns:
        raise InvalidOptionError(f"by={by!r}; the table has {', '.join(table.columns)}")
    groups: Iterable[tuple[Any, pd.DataFrame]] = (
        [("", table)] if by is None else table.groupby(by, sort=False)
    )
    names = ["model", "n", "median", "p90", "median_signed"]
    rows = []
    for name, part in groups:
        for model in _MODELS:
            # The ratio is measured over predicted, and the error is predicted over measured.
            error = (1 / part[f"{model}_ratio"] - 1).dropna()
            if len(error):
                size = error.abs()
                figures = (len(error), size.median(), size.quantile(_P90), error.median())
                rows.append({by or "": name, **dict(zip(names, (model, *figures), strict=True))})
    return pd.DataFrame(rows, columns=names if by is None else [by, *names])


def check_table(table: object) -> None:
    """Raise `InvalidOptionError` unless it is a frame of pandas."""
    import pandas as pd

    instance_of(pd.DataFrame, "a frame of pandas").check(table=table)


def is_comparable(point: Point) -> bool:
    """Return whether a point has the time that a GPU took, and nothing else."""
    task = point.task
    is_alone = task.transfers == "none" and task.method in _METHODS
    # The median is 0 for a point with an error, and for work not longer than its floor.
    return is_alone and point.median_s > 0


def _rows(
    points: Iterable[Point], spec: GpuSpec | None, measured: Roof | None
) -> list[dict[str, Any]]:
    """Return the rows of points of one GPU, whose data sheet may be unknown."""
    # Entering takes as long as a prediction, so all predictions share one entry.
    with nullcontext() if spec is None else private_gpu_entered(spec.name):
        return [_row(point, spec, measured) for point in points]


def _row(point: Point, spec: GpuSpec | None, measured: Roof | None) -> dict[str, Any]:
    task = point.task
    roof = measured if spec is None else data_sheet(spec)
    plain = None if roof is None else _predicted(point, roof, "plain")
    refined = None if spec is None else _predicted(point, spec, "refined")
    last = refined or plain
    row = {name: getattr(task, name) for name in _TASK}
    row |= {"source": point.source, "device_name": point.device_name}
    row |= {"measured_s": point.median_s, "plain_basis": "" if roof is None else roof.basis}
    for model, prediction in zip(_MODELS, (plain, refined), strict=True):
        row[f"{model}_s"] = math.nan if prediction is None else prediction.duration_s
        # Divided even without a prediction: the ratio to nan is nan, which pandas leaves out.
        row[f"{model}_ratio"] = point.median_s / row[f"{model}_s"]
    if last is not None:
        row |= {name: getattr(last, name) for name in (*_SHOWN, *_NEEDED)}
        row["flops_per_s"] = last.flops / point.median_s
    row["plain_bound"] = "" if plain is None else plain.bound
    return row


def _predicted(point: Point, gpu: GpuSpec | Roof, model: str) -> PredictedTime:
    task = point.task
    return predict(task.workload, task.size, task.dtype, gpu, model=model, cache=task.cache)
