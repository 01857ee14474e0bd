"""Frozen records of what a device did and of what the host called, on one time axis."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActivityRecord:
    """One kernel, copy or memset that a device ran.

    Attributes
    ----------
    kind
        ``"kernel"``, ``"memcpy"`` or ``"memset"``.
    name
        The full name from the driver; :func:`gpulab.tracing.profiling.short_name` shortens it
        for a label.
    start_ns, end_ns
        Times on the axis that host and device share. Its zero is arbitrary, so only differences
        have a meaning.
    stream
        Number of the stream, from the driver or the virtual GPU.
    device
        Index of the device, as in ``cuda:0``.
    launch_start_ns, launch_end_ns
        Start and end of the host's call that launched it. For a node of a CUDA graph this is the
        launch of the graph. None if that call was not recorded.
    size_bytes
        Bytes that were copied or set; None if unknown.
    correlation
        The same number as in the :class:`HostCall` that launched it; None if that call was not
        recorded.
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
        """Nanoseconds from start to end. On an H200 they are accurate to 32 ns."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class HostCall:
    """One call of the host into CUDA's runtime or driver.

    Attributes
    ----------
    kind
        ``"launch"`` if it gave the device something to do, ``"wait"``, or ``"other"``.
    name
        Such as ``"cudaLaunchKernel"``; a virtual GPU uses the same names.
    start_ns, end_ns
        Times on the same axis as those of :class:`ActivityRecord`.
    thread
        Number of the calling thread; 0 on a virtual GPU.
    correlation
        The same number as in the records of what this call launched.
    """

    kind: str
    name: str
    start_ns: int
    end_ns: int
    thread: int = 0
    correlation: int = 0
