"""Profile work for a benchmark: the kinds of records, short kernel names, and microseconds."""

from collections.abc import Iterable

import torch

from gpulab.device.work import Work
from gpulab.tracing.profiling import ActivityRecord, capture

KINDS = ("kernel", "memcpy", "memset")
_NAME_LENGTH = 60
_SPIN_NAMES = ("spin_kernel", "sleep")  # on a real device and on a virtual one
_NS_PER_US = 1e3


def profiled(work: Work) -> list[ActivityRecord]:
    """Run work on an idle device, real or virtual, and return what the device did, by start."""
    torch.cuda.synchronize()
    return list(capture(work).records)


def short_name(name: str) -> str:
    """Return a kernel's name without C++ namespaces, as the recordings spell it.

    The existing recordings contain these names, so :func:`gpulab.tracing.profiling.short_name`, which
    shortens them in another way, cannot replace this.
    """
    for noise in ("void ", "at::native::", "(anonymous namespace)::", "at::", "cuda::"):
        name = name.replace(noise, "")
    return name[:_NAME_LENGTH]


def is_spin(record: ActivityRecord) -> bool:
    """Return whether a record is a ``torch.cuda._sleep``, which marks the bounds of a sample."""
    return any(name in record.name for name in _SPIN_NAMES)


def duration_us(record: ActivityRecord) -> float:
    """Return the duration of a record in microseconds."""
    return record.duration_ns / _NS_PER_US


def busy_us(records: Iterable[ActivityRecord]) -> float:
    """Return the durations of some records, added up, in microseconds."""
    return round(sum(map(duration_us, records)), 3)
