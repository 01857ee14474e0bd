"""Frozen records of what a device did and what the host called, on one axis of time."""

from dataclasses import dataclass


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
