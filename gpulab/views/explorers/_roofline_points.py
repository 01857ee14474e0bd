"""The points and the roofs of a GPU in the roofline explorer: recorded, measured or predicted."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gpulab import gpus
from gpulab.core.errors import UnknownNameError
from gpulab.roofline import Ceilings, ceilings, ceilings_of, table
from gpulab.views.explorers._scene import Measured
from gpulab.views.explorers._sources import (
    COMPUTED,
    HERE,
    RECORDED,
    as_numbers,
    here_of,
    points_among,
    recording_of,
)
from gpulab.workloads import WORKLOADS, recordings
from gpulab.workloads.sweeps import Point, Task

if TYPE_CHECKING:
    import pandas as pd

_TIMES = ("measured_s", "plain_s", "refined_s", "compute_s", "memory_s", "launch_s")
_MEASURED = ("measured_s", "plain_ratio", "refined_ratio", "flops_per_s")
_N_TABLES_KEPT = 20  # by GPU, type and state of the cache; one of 191 rows takes 140 kB


def listed(gpu: str, dtype: str, cache: str, here: Sequence[Point]) -> "pd.DataFrame":
    """Return one row for each point, in the form of :func:`gpulab.roofline.table`.

    A computed GPU gets a prediction for each size of the catalogue, and no measured times. The
    points of ``HERE`` are among ``here``.
    """
    if gpu.startswith(COMPUTED):
        spec = gpus.gpu(gpu.removeprefix(COMPUTED))
        return _predicted(spec.driver_name, dtype, cache)
    if gpu == HERE:
        return _table(here_of(here, "gpu"), dtype, cache)
    if gpu.removeprefix(RECORDED) in recordings.list():
        return _recorded(gpu, dtype, cache)
    return _table(recording_of(gpu).points, dtype, cache)


@lru_cache(maxsize=_N_TABLES_KEPT)
def _recorded(gpu: str, dtype: str, cache: str) -> "pd.DataFrame":
    """Return the table of a recording of the package, which all explorers share."""
    return _table(recording_of(gpu).points, dtype, cache)


def _table(known: Sequence[Point], dtype: str, cache: str) -> "pd.DataFrame":
    chosen = (dtype, cache)
    return table([point for point in known if (point.task.dtype, point.task.cache) == chosen])


@lru_cache(maxsize=_N_TABLES_KEPT)
def _predicted(gpu: str, dtype: str, cache: str) -> "pd.DataFrame":
    """Return the predictions for every size of the catalogue, without measured times."""
    tasks = [
        Task(work.name, size, dtype, cache=cache)
        for work in WORKLOADS.values()
        if dtype in work.dtypes
        for size in work.sizes
    ]
    # Any time will do: what follows from it is left out.
    points = [
        Point(task, median_s=1.0, low_s=1.0, high_s=1.0, n_samples=1, device_name=gpu)
        for task in tasks
    ]
    return table(points).assign(source="", **dict.fromkeys(_MEASURED, math.nan))


def ceilings_for(gpu: str, measured: Sequence[Measured]) -> Ceilings:
    """Return the roofs of a GPU: recorded, measured last, or those of its data sheet."""
    if gpu.startswith(COMPUTED):
        return ceilings(gpu.removeprefix(COMPUTED))
    if gpu == HERE:
        name = here_of(points_among(measured), "gpu")[-1].device_name
        own_ceilings = [
            each for each in measured if isinstance(each, Ceilings) and each.device_name == name
        ]
        return own_ceilings[-1] if own_ceilings else _data_sheet(name)
    recording = recording_of(gpu)
    try:
        return ceilings_of(recording)
    except UnknownNameError:  # this recording has no roofs
        return _data_sheet(str(recording.provenance["gpu"]))


def table_numbers(rows: "pd.DataFrame") -> dict[str, list[Any]]:
    """Return the columns of a table that the page shows; unknown numbers are None."""
    texts = {name: rows[name].fillna("").tolist() for name in ("workload", "bound", "arithmetic")}
    times = {name: as_numbers(rows[name].astype(float)) for name in _TIMES}
    amounts = {name: rows[name].tolist() for name in ("size", "flops", "size_bytes")}
    return texts | amounts | times


def roof_numbers(ceilings: Ceilings) -> list[dict[str, Any]]:
    """Return the roofs of a GPU, each with its evidence."""
    return [
        {
            "basis": roof.basis,
            "peaks": dict(roof.peak_flops_per_s),
            "memory": roof.bandwidth_bytes_per_s,
            "floor_s": roof.floor_s,
        }
        for roof in ceilings.roofs
    ]


def _data_sheet(device_name: str) -> Ceilings:
    known = gpus.by_driver_name(device_name)
    return Ceilings(device_name, "", ()) if known is None else ceilings(known)
