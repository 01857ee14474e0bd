"""The times that an explorer shows: recorded, measured here, or computed on a virtual GPU."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from gpulab import gpus
from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import visible
from gpulab.device import outside
from gpulab.views.explorers._scene import Measured, Step
from gpulab.virtual import virtual_gpu
from gpulab.workloads import recordings, workload
from gpulab.workloads.sweeps import Point, Task, take

FAMILIES = (
    ("matrices", ("matmul", "matmul_odd", "bmm", "linear", "attention")),
    ("convolutions", ("conv1x1", "conv3x3", "conv_depthwise")),
    ("elementwise", ("add", "exp", "copy", "transposed_copy", "gelu", "dropout", "adam")),
    ("reductions", ("sum", "mean", "argmax", "cumsum")),
    ("rows", ("softmax", "layer_norm", "rms_norm", "cross_entropy", "fft")),
    ("sort, look up", ("sort", "topk", "embedding", "gather", "scatter_add")),
)
HERE = "here"
RECORDED, COMPUTED = "recorded:", "computed:"
# A curve on a virtual GPU takes a moment to compute, and sliders ask for the same ones again.
_N_CURVES_KEPT = 500
_N_FILES_KEPT = 8
_DIGITS = 6  # of a number on the page, more than its sentences need
_SLOW_S = 0.25  # per call; larger sizes would block the notebook for too long
_LONGEST_S = 0.05  # short, because virtual times hardly vary


def recorded_choices(own_files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the recordings that can be chosen: your own and the shipped ones."""
    # The H200's comes before the H100's, because it is the GPU that the lessons speak of.
    names = (*own_files, *reversed(recordings.list()))
    return tuple(RECORDED + name for name in names)


def computed_choices() -> tuple[str, ...]:
    """Return the virtual GPUs that can be chosen."""
    return tuple(COMPUTED + name for name in gpus.names())


def recording_of(choice: str) -> recordings.Recording:
    """Return the recording of an option; a file is read again only if it has changed."""
    name = choice.removeprefix(RECORDED)
    if name in recordings.list():
        return recordings.load(name)
    status = Path(name).stat() if Path(name).exists() else None
    return _read(name, None if status is None else (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=_N_FILES_KEPT)
def _read(path: str, _version: tuple[int, int] | None) -> recordings.Recording:
    return recordings.load(path)


def gpu_facts(choice: str, own: Sequence[Point] = ()) -> dict[str, Any]:
    """Return what the page says of a choice: name, source, and the rate of its own link."""
    if choice.startswith(COMPUTED):
        spec = gpus.gpu(choice.removeprefix(COMPUTED))
        source = "computed" if spec.recorded else "computed from its data sheet"
        return {
            "name": spec.name,
            "source": source,
            "is_computed": True,
            "link_bytes_per_s": spec.link_bytes_per_s,
        }
    if choice == HERE:
        device_name = own[-1].device_name if own else "this GPU"
        source = own[-1].source if own else "measured"
        file = ""
    else:
        provenance = recording_of(choice).provenance
        device_name, source = str(provenance["gpu"]), str(provenance["source"])
        file = "" if choice.removeprefix(RECORDED) in recordings.list() else choice
    known = gpus.by_driver_name(device_name)
    return {
        "name": visible(device_name) if known is None else known.name,
        "source": source,
        "is_computed": False,
        "file": visible(file.removeprefix(RECORDED)),
        "link_bytes_per_s": None if known is None else known.link_bytes_per_s,
    }


def as_numbers(values: Iterable[Any]) -> list[Any]:
    """Return numbers with six digits, and None for those that are not known."""
    return [float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None for value in values]


def points_among(measured: Iterable[Measured]) -> tuple[Point, ...]:
    """Return the points among what was measured."""
    return tuple(each for each in measured if isinstance(each, Point))


def too_long(step: Step, measured: Sequence[Measured]) -> bool:
    """Return whether a smaller size took so long that this one would block the notebook."""
    if not isinstance(step, Task):
        return False
    smaller = (
        point
        for point in points_among(measured)
        if point.task.size < step.size and replace(point.task, size=step.size) == step
    )
    # A size that failed, for example for lack of memory, fails for larger ones, too.
    return any(point.median_s > _SLOW_S or point.error for point in smaller)


def here_of(points: Sequence[Point], on: str) -> tuple[Point, ...]:
    """Return one side's points that were measured here, on the most recent device.

    If a task was measured several times, its last time counts.
    """
    side = [point for point in points if point.task.on == on]
    if not side:
        return ()
    # Points of two devices on one curve would look like noise.
    last = (side[-1].source, side[-1].device_name)
    last_points = {p.task.key: p for p in side if (p.source, p.device_name) == last}
    return tuple(last_points.values())


def points_of(
    choice: str, on: str, name: str, dtype: str, here: Sequence[Point], **how: str
) -> tuple[Point, ...]:
    """Return the points of one side, ``"cpu"`` or ``"gpu"``, for a workload and a type.

    ``how`` has method and cache for the times of a virtual GPU.
    """
    if choice.startswith(COMPUTED):
        return computed(choice.removeprefix(COMPUTED), name, dtype, **how)
    if choice.startswith(RECORDED):
        known: Sequence[Point] = recording_of(choice).points
    else:
        known = here_of(here, on)
    return tuple(
        point
        for point in known
        if (point.task.on, point.task.workload, point.task.dtype) == (on, name, dtype)
    )


@lru_cache(maxsize=_N_CURVES_KEPT)
def computed(gpu: str, name: str, dtype: str, *, method: str, cache: str) -> tuple[Point, ...]:
    """Return a workload's times on a virtual GPU, at the catalogue's sizes."""
    tasks = (Task(name, size, dtype, cache=cache, method=method) for size in workload(name).sizes)
    # outside() first: the notebook may have a virtual GPU of its own in use.
    with outside(), virtual_gpu(gpu):
        return tuple(take(task, max_time_s=_LONGEST_S) for task in tasks)


def need_points(points: Sequence[Point], what: str, cure: str) -> None:
    """Raise an error that says what to do if there are no points to draw."""
    if not points:
        raise InvalidOptionError(f"No times of {what} yet. {cure}")
