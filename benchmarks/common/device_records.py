"""Profile work for a benchmark: its records, and their durations in microseconds."""

from collections.abc import Iterable

import torch

from gpulab.device.work import Work
from gpulab.happens_before.activity import ActivityRecord
from gpulab.tracing.profiling import capture

_SPIN_NAMES = ("spin_kernel", "sleep")  # on a real device and on a virtual one
_NS_PER_US = 1e3


def profiled(work: Work) -> list[ActivityRecord]:
    """Run work on an idle device, real or virtual, and return what the device did, by start."""
    torch.cuda.synchronize()
    return list(capture(work).records)


def is_spin(record: ActivityRecord) -> bool:
    """Return whether a record is a ``torch.cuda._sleep``, which marks the bounds of a sample."""
    return any(name in record.name for name in _SPIN_NAMES)


def duration_us(record: ActivityRecord) -> float:
    """Return the duration of a record in microseconds."""
    return record.duration_ns / _NS_PER_US


def busy_us(records: Iterable[ActivityRecord]) -> float:
    """Return the durations of some records, added up, in microseconds."""
    return round(sum(map(duration_us, records)), 3)
