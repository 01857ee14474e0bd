"""The activity records of one call of some work, and how long the device was busy with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpulab.happens_before.activity import ActivityRecord, HostCall

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class Records:
    """What the device did for one call of some work.

    ``records`` are kernels, copies and fills, ``calls`` the CUDA functions that the host called
    meanwhile, both sorted by start. ``source`` is ``"measured"`` or ``"virtual"``. ``n_missing``
    counts records known to be missing: launches without a record, or fewer records than another
    call of the same work had. It is a lower bound: more may be missing.
    """

    records: tuple[ActivityRecord, ...]
    calls: tuple[HostCall, ...]
    source: str
    device_name: str
    n_missing: int = 0

    @property
    def dropped(self) -> bool:
        """Whether records are known to be missing."""
        return self.n_missing > 0

    @property
    def busy_s(self) -> float:
        """Seconds in which at least one record was running, on any stream; pauses do not count."""
        return sum(end_ns - start_ns for start_ns, end_ns in _union(self.records)) * _NS

    @property
    def span_s(self) -> float:
        """Seconds from the first start to the last end.

        For several short kernels on a CUDA GPU this is too long, because the profiler itself
        makes the pauses between them longer: on an H200 by up to 0.25 µs each.
        """
        if not self.records:
            return 0.0
        start_ns = min(record.start_ns for record in self.records)
        return (max(record.end_ns for record in self.records) - start_ns) * _NS

    @property
    def n_records(self) -> int:
        """Number of kernels, copies and fills."""
        return len(self.records)

    @property
    def n_kernels(self) -> int:
        """Number of kernels."""
        return sum(record.kind == "kernel" for record in self.records)


def _union(records: Iterable[ActivityRecord]) -> Iterator[tuple[int, int]]:
    """Yield start and end of each period in which at least one record runs."""
    # The first period is (0, 0), which adds nothing to the sum.
    start_ns = end_ns = 0
    for record in sorted(records, key=lambda record: record.start_ns):
        if record.start_ns > end_ns:
            yield start_ns, end_ns
            start_ns = record.start_ns
        end_ns = max(end_ns, record.end_ns)
    yield start_ns, end_ns
