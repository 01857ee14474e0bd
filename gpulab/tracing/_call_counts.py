"""Count what one call does: kernels, copies, waits of the host, and memory."""

from dataclasses import dataclass

import torch

from gpulab import device
from gpulab.core.tracebacks import UsersTraceback
from gpulab.core.units import counted, format_bytes
from gpulab.device.work import Work, check_callable
from gpulab.tracing import profiling

_CURE = "pass a function: call_counts(lambda: a @ b)"
_COPIES = frozenset({"memcpy", "memset"})


@dataclass(frozen=True, slots=True)
class CallCounts:
    """What one call of some work did; nothing here depends on how fast the machine is.

    Attributes
    ----------
    n_kernels, n_copies
        Kernels, and copies and fills, on all streams.
    copied_bytes
        Bytes that these copies and fills moved.
    n_waits
        How often the host waited for the GPU before the call returned.
    peak_bytes
        The most memory that PyTorch's allocator had in use during the call, in bytes beyond what
        was in use before it.

    Examples
    --------
    >>> print(CallCounts(n_kernels=2, n_copies=0, copied_bytes=0, n_waits=0, peak_bytes=4096))
    2 kernels, 0 B copied, 0 waits, 4.00 KiB of memory
    """

    n_kernels: int
    n_copies: int
    copied_bytes: int
    n_waits: int
    peak_bytes: int

    def __str__(self) -> str:
        kernels, waits = counted(self.n_kernels, "kernel"), counted(self.n_waits, "wait")
        copied, peak = format_bytes(self.copied_bytes), format_bytes(self.peak_bytes)
        return f"{kernels}, {copied} copied, {waits}, {peak} of memory"


def call_counts(work: Work) -> CallCounts:
    """Return what one call of GPU work does, counted in its second call.

    On a virtual GPU the counts are the same on every machine. On a CUDA GPU they come from the
    driver's records, and libraries may choose other kernels on another GPU.

    Parameters
    ----------
    work
        A function without arguments that enqueues the work. It is called twice, and PyTorch's
        peak of memory begins anew.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    ProfilerBusyError, ProfilerUnavailableError
        If the driver gives no records.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     counts = call_counts(lambda: (a @ a).relu().sum().item())
    >>> counts.n_kernels, counts.n_waits, counts.peak_bytes
    (3, 1, 8388608)
    """
    with UsersTraceback():
        check_callable("work", work, _CURE)
        with device.active():
            work()  # what a first call allocates and loads is not counted
            torch.cuda.synchronize()
            before_bytes = torch.cuda.memory_allocated()
            torch.cuda.reset_peak_memory_stats()
            captured = profiling.capture(work)
            peak_bytes = torch.cuda.max_memory_allocated() - before_bytes
        copies = [record for record in captured.records if record.kind in _COPIES]
        n_waits = sum(call.kind == "wait" for call in captured.calls)
        return CallCounts(
            n_kernels=captured.n_kernels,
            n_copies=len(copies),
            copied_bytes=sum(copy.size_bytes or 0 for copy in copies),
            n_waits=n_waits - 1,  # the last one is that of the capture
            peak_bytes=peak_bytes,
        )
