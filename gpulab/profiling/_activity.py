"""Frozen records of what a device did and what the host called, on one axis of time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_NS = 1e-9


@dataclass(frozen=True, slots=True)
class ActivityRecord:
    """One thing that a device did.

    Attributes
    ----------
    kind
        ``"kernel"``, ``"memcpy"`` or ``"memset"``.
    name
        As the driver gives it; :func:`gpulab.profiling.short_name` makes it fit for a label.
    start_ns, end_ns
        On the axis that host and device share; only differences mean something.
    stream
        Number of the stream, as the driver or the virtual GPU counts.
    device
        Index of the device, as in ``cuda:0``.
    launch_start_ns, launch_end_ns
        The host's call that launched it, for a node of a graph the launch of the graph; None if
        that call was not seen.
    size_bytes
        What was copied or set, where the source tells it.
    correlation
        Shared with the :class:`HostCall` that launched it; None if that call was not seen.
    """

    kind: str
    name: str
    start_ns: int
    end_ns: int
    stream: int
    device: int = 0
    launch_start_ns: int | None = None
    launch_end_ns: int | None = None
    size_bytes: int | None = None
    correlation: int | None = None

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from start to end. On an H200 they are accurate to 32."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of CUDA's runtime or driver.

    Attributes
    ----------
    kind
        ``"launch"`` for what makes the device do something, ``"wait"``, or ``"other"``.
    name
        Such as ``"cudaLaunchKernel"``; a virtual GPU uses the same names.
    start_ns, end_ns
        On the axis of the records.
    thread
        Number of the thread that called; 0 on a virtual GPU.
    correlation
        Shared with the records of what it launched.
    """

    kind: str
    name: str
    start_ns: int
    end_ns: int
    thread: int = 0
    correlation: int = 0


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
