"""Activity records: each kernel and copy that the device ran, with the call that launched it."""

from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing.profiling._capture import (
    capture,
    leaves_no_trace,
    open_source,
    short_name,
    split_by_window,
)
from gpulab.tracing.profiling._kineto import kind_of_call
from gpulab.tracing.profiling._records import Records

__all__ = [
    "ActivityRecord",
    "HostCall",
    "Records",
    "capture",
    "kind_of_call",
    "leaves_no_trace",
    "open_source",
    "short_name",
    "split_by_window",
]
