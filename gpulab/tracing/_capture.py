"""See what host and GPU did for a piece of work: run it once and return its timeline."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch

from gpulab import device, profiling
from gpulab.errors import ProfilerBusyError
from gpulab.interrupts import contextmanager
from gpulab.profiling import Records
from gpulab.requirements import COUNT_OR_ZERO
from gpulab.tracing._cuda_events import EventListener, EventNote, event_notes, stream_numbers
from gpulab.tracing._from_activity import spans_of
from gpulab.tracing._memory import Readings, memory_series, watch_memory
from gpulab.tracing._timeline import Timeline
from gpulab.tracing._virtual_events import MachineWatch
from gpulab.work import Work, check_callable, refuse_endless

if TYPE_CHECKING:
    from gpulab.virtual import Machine

__all__ = ["timeline"]


_CURE = "pass a function: timeline(lambda: a @ b)"


class _Recorded(NamedTuple):
    """What was seen of one run."""

    records: Records
    notes: list[EventNote]
    readings: Readings


def timeline(work: Work, *, n_warmup: int = 1) -> Timeline:
    """Run GPU work once and show who was busy when, host and device on one axis.

    On a CUDA GPU this is what the driver's records say, through PyTorch's profiler; they make
    each launch slower, on an H200's host 15 µs instead of 7, so gaps between short kernels are
    wider than without. On a virtual GPU it is what the model did, and costs nothing. The wait
    for the device at the end is part of the timeline.

    Parameters
    ----------
    work
        A function of no arguments that enqueues the work. It is called ``n_warmup + 1`` times.
    n_warmup
        Calls before the one that is shown. With 0 the first-use costs are shown, too.

    Returns
    -------
    Timeline
        The calls of CUDA on the host, the kernels and copies of every stream, the events and
        waits that went through ``torch.cuda``, and the memory in use. When a device reached an
        event is known exactly on a virtual GPU; on a real one it is worked out from the kernels
        and copies before it, and is early by a microsecond or two. Work that does nothing has a
        timeline with the wait at the end.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    InvalidOptionError
        If ``n_warmup`` is negative.
    ProfilerBusyError
        If a timeline is being recorded already, a session of ``torch.profiler`` is open, or
        another tool holds the driver's records.
    ProfilerUnavailableError
        If the driver gives no records.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(1024, device="cuda")
    ...     shown = timeline(lambda: x + x)
    >>> [span.name for span in shown.spans]
    ['cudaLaunchKernel', 'cudaDeviceSynchronize', 'add']
    """
    check_callable("work", work, _CURE)
    COUNT_OR_ZERO.check(n_warmup=n_warmup)
    refuse_endless(n_warmup, n_warmup=n_warmup)
    with _alone(), device.active() as in_use:
        for _ in range(n_warmup):
            work()
        torch.cuda.synchronize()
        machine = None if in_use.virtual is None else in_use.virtual.machine
        seen = _recorded(work, machine)
    spans, zero_ns = spans_of(seen.records, seen.notes, profiling.short_name)
    end_s = max((span.end_s for span in spans), default=0.0)
    memory = memory_series(seen.readings, zero_ns, end_s)
    found = seen.records
    return Timeline(spans, found.source, found.device_name, memory, found.n_missing)


def _recorded(work: Work, machine: "Machine | None") -> _Recorded:
    """Run the work under all that watches it."""
    if machine is not None:
        watch = MachineWatch(machine)
        with watch_memory(machine) as readings, watch.watching():
            found = profiling.capture(work)
        return _Recorded(found, watch.event_notes(found.calls), readings)
    listener = EventListener(time.time_ns)
    with watch_memory(None) as readings, listener.listening():
        found = profiling.capture(work)
    notes = event_notes(listener.calls, found.calls, stream_numbers(listener.streams))
    return _Recorded(found, notes, readings)


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse a timeline inside another one, on every GPU alike."""
    if _running:
        raise ProfilerBusyError(
            "a timeline is being recorded, and there can be only one; take timeline() out of the "
            "work of the outer one, or call them one after the other"
        )
    try:
        _running.append(True)
        yield
    finally:
        _running.clear()


# At most one: the driver's records can be taken once at a time.
_running: list[bool] = []
