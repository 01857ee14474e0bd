"""All that one call of some work made the device do, and how long it was busy with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpulab.activity import ActivityRecord, HostCall

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class Records:
    """What the device did for one call of some work.

    Attributes
    ----------
    records
        By their start.
    calls
        What the host called meanwhile, by start.
    source
        ``"measured"`` or ``"virtual"``.
    device_name
        As the driver reports it.
    n_missing
        Records known to be missing: launches without one, or fewer records than other calls of
        the same work had. It cannot be more than a lower bound.
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
        """Seconds in which the device did anything, on any stream; pauses do not count."""
        return sum(end_ns - start_ns for start_ns, end_ns in _union(self.records)) * _NS

    @property
    def span_s(self) -> float:
        """Seconds from the first start to the last end.

        Of several short kernels a real GPU's span is too long, because the profiler itself
        stretches the pauses: on an H200 by up to 0.25 µs each.
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
    """Yield the stretches of time in which at least one record runs."""
    start_ns = end_ns = 0
    for record in sorted(records, key=lambda record: record.start_ns):
        if record.start_ns > end_ns:
            yield start_ns, end_ns
            start_ns = record.start_ns
        end_ns = max(end_ns, record.end_ns)
    yield start_ns, end_ns
