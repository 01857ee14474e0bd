"""Run a piece of work once and return the timeline of what host and GPU did."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import torch

from gpulab import device
from gpulab.core.errors import ProfilerBusyError
from gpulab.core.interrupts import contextmanager
from gpulab.core.requirements import COUNT_OR_ZERO
from gpulab.core.tracebacks import UsersTraceback
from gpulab.device.work import Work, check_callable, refuse_endless
from gpulab.tracing import profiling
from gpulab.tracing._cuda_events import EventListener, EventNote, event_notes, stream_numbers
from gpulab.tracing._cuda_names import short_name
from gpulab.tracing._from_activity import spans_of
from gpulab.tracing._memory import Readings, memory_series, watch_memory
from gpulab.tracing._timeline import Timeline
from gpulab.tracing._virtual_events import MachineWatch
from gpulab.tracing.profiling import Records

if TYPE_CHECKING:
    from gpulab.virtual import Machine

__all__ = ["timeline"]


_CURE = "pass a function: timeline(lambda: a @ b)"


class _Recorded(NamedTuple):
    """What one run left behind: activity records, events and waits, and memory readings."""

    records: Records
    notes: list[EventNote]
    readings: Readings


def timeline(work: Work, *, n_warmup: int = 1) -> Timeline:
    """Run GPU work once and return the timeline of host and device on one axis of time.

    On a CUDA GPU the times come from the driver's records, through PyTorch's profiler. Recording
    makes each launch slower, on an H200's host 15 µs instead of 7, so gaps between short kernels
    are wider than without it. On a virtual GPU the times come from the model, and recording takes
    no time. The timeline includes the wait for the device at the end.

    Parameters
    ----------
    work
        A function without arguments that enqueues the work. It is called ``n_warmup + 1`` times.
    n_warmup
        Number of calls before the one that is shown. With 0, first-use costs are shown, too.

    Returns
    -------
    Timeline
        The host's calls of CUDA, the kernels and copies of every stream, the events and waits
        that went through ``torch.cuda``, and the memory in use. On a virtual GPU the time of an
        event on the device is exact. On a CUDA GPU it is computed from the kernels and copies
        before the event, and is early by a few microseconds. The timeline of work that does
        nothing contains only the wait at the end.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    InvalidOptionError
        If ``n_warmup`` is negative.
    ProfilerBusyError
        If a timeline is being recorded already, a session of ``torch.profiler`` is open, or
        another tool uses CUPTI.
    ProfilerUnavailableError
        If the driver gives no records.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     x = torch.ones(1024, device="cuda")
    ...     recorded = timeline(lambda: x + x)
    >>> [span.name for span in recorded.spans]
    ['cudaLaunchKernel', 'cudaDeviceSynchronize', 'add']
    """
    with UsersTraceback():
        check_callable("work", work, _CURE)
        COUNT_OR_ZERO.check(n_warmup=n_warmup)
        refuse_endless(n_warmup, n_warmup=n_warmup)
        with _alone(), device.active() as in_use:
            for _ in range(n_warmup):
                work()
            # Without this wait, work of the warm-up would be among the records.
            torch.cuda.synchronize()
            machine = None if in_use.virtual is None else in_use.virtual.machine
            recorded = _recorded(work, machine)
        spans, zero_ns = spans_of(recorded.records, recorded.notes, short_name)
        end_s = max((span.end_s for span in spans), default=0.0)
        memory = memory_series(recorded.readings, zero_ns, end_s)
        records = recorded.records
        return Timeline(spans, records.source, records.device_name, memory, records.n_missing)


def _recorded(work: Work, machine: "Machine | None") -> _Recorded:
    """Run the work and record activity, events, waits and memory."""
    if machine is not None:
        watch = MachineWatch(machine)
        with watch_memory(machine) as readings, watch.watching():
            records = profiling.capture(work)
        return _Recorded(records, watch.event_notes(records.calls), readings)
    # The clock of Kineto's records, so that notes and records have one axis of time.
    listener = EventListener(time.time_ns)
    with watch_memory(None) as readings, listener.listening():
        records = profiling.capture(work)
    # The streams' numbers need a session of their own, which can only come after this one.
    notes = event_notes(listener.calls, records.calls, stream_numbers(listener.streams))
    return _Recorded(records, notes, readings)


@contextmanager
def _alone() -> Iterator[None]:
    """Refuse a timeline inside another one."""
    # The virtual GPU could record both. It refuses, too, so that a program that works there also
    # works on a CUDA GPU.
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


# At most one entry, because CUPTI has one session at a time.
_running: list[bool] = []
