"""What the device did, by activity records of its driver (CUPTI) or of its simulation."""

from gpulab.profiling._activity import ActivityRecord, HostCall, Records
from gpulab.profiling._capture import (
    capture,
    leaves_no_trace,
    open_source,
    short_name,
    split_by_window,
    usable,
)
from gpulab.profiling._cupti import is_detachable
from gpulab.profiling._kineto import KinetoSession, is_prepared, obstacle
from gpulab.profiling._virtual import Watched

__all__ = [
    "ActivityRecord",
    "HostCall",
    "KinetoSession",
    "Records",
    "Watched",
    "capture",
    "is_detachable",
    "is_prepared",
    "leaves_no_trace",
    "obstacle",
    "open_source",
    "short_name",
    "split_by_window",
    "usable",
]
