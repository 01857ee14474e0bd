"""The catalogue on one GPU as a table: both predictions, and what was measured if anything."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpulab import gpus, recordings
from gpulab._explorer_scene import Found
from gpulab._explorer_sources import COMPUTED, HERE, RECORDED, here_of, points_among
from gpulab.errors import InvalidOptionError, UnknownNameError
from gpulab.roofline import Ceilings, ceilings, ceilings_of, predict, table
from gpulab.tasks import Point
from gpulab.units import format_time
from gpulab.workloads import WORKLOADS, workload

if TYPE_CHECKING:
    import pandas as pd

_FAR = 4.0  # times: a size that moves so much more or less is another one


def listed(gpu: str, dtype: str, cache: str, here: Sequence[Point]) -> "pd.DataFrame":
    """Return one row a point, as :func:`gpulab.roofline.table` has them.

    Of a GPU without measurements the catalogue is predicted; its measured times are missing.

    Parameters
    ----------
    gpu
        As in the state of the explorer.
    dtype, cache
        What is chosen.
    here
        What was measured here.
    """
    if gpu.startswith(COMPUTED):
        return _predicted(gpu.removeprefix(COMPUTED), dtype, cache)
    known = recordings.load(gpu.removeprefix(RECORDED)).points if gpu != HERE else here
    points = [
        point
        for point in (here_of(known, "gpu") if gpu == HERE else known)
        if (point.task.dtype, point.task.cache) == (dtype, cache)
    ]
    return table(points)


def _predicted(gpu: str, dtype: str, cache: str) -> "pd.DataFrame":
    import pandas as pd

    columns = table([]).columns
    rows = [
        row
        for work in WORKLOADS.values()
        if dtype in work.dtypes
        for size in work.sizes
        for row in _prediction(work.name, size, dtype, gpu, cache)
    ]
    return pd.DataFrame(rows).reindex(columns=columns)


def _prediction(
    name: str, size: int, dtype: str, gpu: str, cache: str
) -> Sequence[dict[str, Any]]:
    """Return the row of a size, none if it does not fit into the memory."""
    try:
        plain, refined = (
            predict(name, size, dtype, gpu, model=model, cache=cache)
            for model in ("plain", "refined")
        )
    except InvalidOptionError:
        return ()
    row = {
        "workload": name,
        "size": size,
        "dtype": dtype,
        "cache": cache,
        "source": "",
        "device_name": refined.device_name,
        "plain_s": plain.duration_s,
        "refined_s": refined.duration_s,
        "bound": refined.bound,
        "arithmetic": refined.arithmetic,
        "intensity": refined.intensity,
        "flops": refined.flops,
        "size_bytes": refined.size_bytes,
    }
    return (row,)


def ceilings_for(gpu: str, found: Sequence[Found]) -> Ceilings:
    """Return the roofs of a GPU: recorded, or the last that were measured, or its data sheet."""
    if gpu.startswith(COMPUTED):
        return ceilings(gpu.removeprefix(COMPUTED))
    if gpu == HERE:
        name = here_of(points_among(found), "gpu")[-1].device_name
        mine = [each for each in found if isinstance(each, Ceilings) and each.device_name == name]
        return mine[-1] if mine else _data_sheet(name)
    recording = recordings.load(gpu.removeprefix(RECORDED))
    try:
        return ceilings_of(recording)
    except UnknownNameError:  # it has no such section
        return _data_sheet(str(recording.provenance["gpu"]))


def _data_sheet(device_name: str) -> Ceilings:
    known = gpus.by_driver_name(device_name)
    return Ceilings(device_name, "", ()) if known is None else ceilings(known)


def sizes_near(name: str, dtype: str, span: int | None) -> tuple[int, ...]:
    """Return the catalogue's sizes of a workload, or the one that moves about so many bytes."""
    work = workload(name)
    if span is None or dtype not in work.dtypes:
        return work.sizes if dtype in work.dtypes else ()
    off = {size: abs(math.log(work.bytes(size, dtype) / span)) for size in work.sizes}
    best = min(off, key=lambda size: off[size])
    return (best,) if off[best] <= math.log(_FAR) else ()


def is_near(rows: "pd.DataFrame", span: int | None) -> NDArray[np.bool_]:
    """Tell of each row whether it is the one of its workload that moves about so many bytes."""
    off = (rows["size_bytes"].astype(float) / (span or 1)).map(math.log).abs()
    best = off.groupby(rows["workload"]).idxmin()
    near = rows.index.isin(best) & (off <= math.log(_FAR)).to_numpy()
    return np.asarray(near) | (span is None)


def records(rows: "pd.DataFrame") -> Iterator[dict[str, Any]]:
    """Yield each row by the names of its columns."""
    for row in rows.to_dict("records"):
        yield {str(name): value for name, value in row.items()}


def hint(row: Mapping[str, Any]) -> str:
    """Return what is told of a point."""
    lines = [f"{row['workload']}, n = {row['size']:,}, {row['dtype']}, {row['cache']}"]
    for model in ("refined", "plain"):
        if not math.isnan(row[f"{model}_s"]):
            ratio = row[f"{model}_ratio"]
            times = "" if math.isnan(ratio) else f"; measured is {ratio:.3g} times that"
            lines.append(f"predicted, {model}: {format_time(row[f'{model}_s'])}{times}")
    if math.isnan(row["measured_s"]):
        lines.append("not measured")
    else:
        lines.append(f"measured: {format_time(row['measured_s'])}")
    return "\n".join([*lines, f"bound by {row['bound']}"])


def readable(rows: "pd.DataFrame", model: str) -> "pd.DataFrame":
    """Return the columns of the table beside the picture, farthest from the prediction first."""
    columns = ["workload", "size", "dtype", "cache", "measured_s", "plain_s", "refined_s"]
    columns += ["plain_ratio", "refined_ratio", "bound", "intensity", "source", "device_name"]
    far = rows[f"{model}_ratio"].map(math.log).abs().sort_values(ascending=False)
    table: pd.DataFrame = rows.loc[far.index, columns].reset_index(drop=True)
    return table
