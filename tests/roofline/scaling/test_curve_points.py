"""Points come from a source or are measured, and the errors say what is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpulab import recordings
from gpulab.core.errors import InvalidOptionError
from gpulab.roofline.scaling._curve_points import (
    CurveRequest,
    collect_points,
    measure_curve,
    require_points,
    select_points,
)
from gpulab.workloads.recordings import Recording
from gpulab.workloads.sweeps import Point, Task

CPU = Task("matmul", 1, on="cpu")
GPU = Task("matmul", 1, method="synchronized", cache="hot")


def point(task: Task, size: int, time_s: float = 1e-3, **fields: str) -> Point:
    """Return a point of the task at this size."""
    ends = {"median_s": time_s, "low_s": time_s, "high_s": time_s}
    return Point(replace(task, size=size), **ends, n_samples=9, **fields)


def test_only_points_of_the_same_kind_are_chosen() -> None:
    """Points of another workload, type, method, cache or transfers are not chosen."""
    right = point(GPU, 64)
    others = [
        point(replace(GPU, **change), 64)
        for change in (
            {"workload": "bmm"},
            {"dtype": "float16"},
            {"method": "calibrated"},
            {"cache": "cold"},
            {"transfers": "both"},
        )
    ]
    assert select_points([point(CPU, 64), *others, right], CurveRequest(GPU, None)) == (right,)


def test_threads_are_chosen_as_set_or_else_the_most() -> None:
    """A given number of threads is exact; else torch's default, else the highest number."""
    one, four = (point(replace(CPU, n_threads=n), 64) for n in (1, 4))
    as_set = point(CPU, 64)
    assert select_points([one, four], CurveRequest(CPU, None)) == (four,)
    assert select_points([one, as_set, four], CurveRequest(CPU, None)) == (as_set,)
    assert select_points([one, four], CurveRequest(replace(CPU, n_threads=1), None)) == (one,)
    assert select_points([one, four], CurveRequest(replace(CPU, n_threads=2), None)) == ()


def test_missing_points_are_reported_with_what_there_is() -> None:
    """The error lists the kinds of times that the source has for this workload and side."""
    there = [
        point(replace(GPU, method="calibrated", cache="cold"), 64),
        point(replace(GPU, transfers="both", dtype="float16"), 64),
        point(replace(CPU, n_threads=4), 64),
    ]
    with pytest.raises(InvalidOptionError) as error:
        require_points(there, CurveRequest(GPU, (64, 128)))
    assert str(error.value) == (
        "the source has no times of matmul at n = 64, 128 for float32 on the GPU, synchronized, "
        "hot; for this workload it has: float16 on the GPU, synchronized, hot, transfers both; "
        "float32 on the GPU, calibrated, cold. Ask for one of these, or leave source out to "
        "measure"
    )
    with pytest.raises(InvalidOptionError) as error:
        require_points(there, CurveRequest(replace(CPU, n_threads=8), None))
    assert str(error.value) == (
        "the source has no times of matmul for float32 on the CPU, 8 threads; for this workload "
        "it has: float32 on the CPU, 4 threads. Ask for one of these, or leave source out to "
        "measure"
    )
    with pytest.raises(InvalidOptionError, match=r"it has: nothing\. Ask"):
        require_points([], CurveRequest(CPU, None))


def test_sizes_after_the_first_slow_one_are_skipped_on_the_cpu() -> None:
    """On the CPU, default sizes after the first slow one are skipped; given sizes are not."""

    def take(task: Task) -> Point:
        return point(task, task.size, 0.3 if task.size >= 512 else 1e-3)

    found = list(measure_curve(CurveRequest(CPU, None), take, progress=False))
    assert [each.ok for each in found] == [True] * 4 + [False] * 4
    assert found[4].error == "left out: the size before took 0.3 s per call"
    asked = list(measure_curve(CurveRequest(CPU, (512, 1024)), take, progress=False))
    assert all(each.ok for each in asked)
    assert all(each.ok for each in measure_curve(CurveRequest(GPU, None), take, progress=False))


def test_a_recording_is_loaded_by_its_file(tmp_path: Path) -> None:
    """A recording can be given by its path, and nothing is measured."""
    made = Recording("mine", {"gpu": "A GPU", "cpu": "A CPU"}, (point(CPU, 64), point(GPU, 64)))
    path = recordings.save(made, tmp_path / "mine.jsonl.gz")
    cpu, gpu = CurveRequest(CPU, None), CurveRequest(GPU, None)

    def never(task: Task) -> Point:
        raise AssertionError(task)

    found = collect_points([cpu, gpu], path, None, never, progress=False)
    assert [each.task.size for points in found for each in points] == [64, 64]
    assert found[0][0].source == "recorded"
