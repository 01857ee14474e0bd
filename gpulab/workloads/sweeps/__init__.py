"""Run many measurements, here or on an executor, and save each result in a file that resumes."""

from gpulab.workloads.sweeps._functions import FunctionPoint
from gpulab.workloads.sweeps._host import provenance
from gpulab.workloads.sweeps._journal import FileContents, Journal, Row
from gpulab.workloads.sweeps._measure_point import first_line, measure_point, without_values
from gpulab.workloads.sweeps._recording_file import (
    as_line,
    read_recording,
    seal,
    sealed,
    section_line,
    unsealed,
)
from gpulab.workloads.sweeps._sweep import RunningSweep, Sweep, sweep, take, tasks_of
from gpulab.workloads.sweeps._tasks import (
    CACHES,
    TRANSFERS,
    HasPoints,
    Point,
    Task,
    frame_of,
    points_of,
)

__all__ = [
    "CACHES",
    "TRANSFERS",
    "FileContents",
    "FunctionPoint",
    "HasPoints",
    "Journal",
    "Point",
    "Row",
    "RunningSweep",
    "Sweep",
    "Task",
    "as_line",
    "first_line",
    "frame_of",
    "measure_point",
    "points_of",
    "provenance",
    "read_recording",
    "seal",
    "sealed",
    "section_line",
    "sweep",
    "take",
    "tasks_of",
    "unsealed",
    "without_values",
]
