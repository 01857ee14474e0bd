"""Run many measurements, here or on an executor, and save each result in a file that resumes."""

from gpulab.workloads.sweeps._functions import FunctionPoint
from gpulab.workloads.sweeps._host import provenance
from gpulab.workloads.sweeps._journal import SCHEMA, FileKind, Journal, contents_of
from gpulab.workloads.sweeps._measure_point import Effort, first_line, measure_point
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
    "SCHEMA",
    "TRANSFERS",
    "Effort",
    "FileKind",
    "FunctionPoint",
    "HasPoints",
    "Journal",
    "Point",
    "RunningSweep",
    "Sweep",
    "Task",
    "contents_of",
    "first_line",
    "frame_of",
    "measure_point",
    "points_of",
    "provenance",
    "sweep",
    "take",
    "tasks_of",
]
