"""Activity records: each kernel and copy that the device ran, with the call that launched it."""

from gpulab.tracing.profiling._capture import (
    capture,
    leaves_no_trace,
    open_source,
    split_by_window,
)
from gpulab.tracing.profiling._records import Records

__all__ = [
    "Records",
    "capture",
    "leaves_no_trace",
    "open_source",
    "split_by_window",
]
