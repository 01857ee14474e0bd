"""Run many measurements, here or on an executor, and save each result in a file that resumes."""

from gpulab.workloads.sweeps._functions import FunctionPoint
from gpulab.workloads.sweeps._host import provenance
from gpulab.workloads.sweeps._journal import FileContents, Journal
from gpulab.workloads.sweeps._measure_point import without_values
from gpulab.workloads.sweeps._recording_file import open_again, read_recording, sealed
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
    "RunningSweep",
    "Sweep",
    "Task",
    "frame_of",
    "open_again",
    "points_of",
    "provenance",
    "read_recording",
    "sealed",
    "sweep",
    "take",
    "tasks_of",
    "without_values",
]
