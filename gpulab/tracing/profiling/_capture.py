"""Record what the device did for a piece of work: its kernels, copies and the host's calls.

On a CUDA GPU the records come from CUPTI, through the profiler that is part of PyTorch; a virtual
GPU writes its own. Both have the same types, with the host's calls on the same axis of time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from gpulab import device
from gpulab.device.work import Work
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.tracing.profiling._cupti import is_detachable
from gpulab.tracing.profiling._kineto import KinetoSession, is_prepared, obstacle
from gpulab.tracing.profiling._records import Records

if TYPE_CHECKING:
    from gpulab.virtual import SimulatorSession

__all__ = ["capture", "leaves_no_trace"]


def capture(work: Work) -> Records:
    """Run ``work`` once, wait for the device, and return what it did and what the host called.

    The calls include the wait for the device at the end. The profiler makes each launch at least
    1.5 times as slow on the host of an H200. It raises `ProfilerBusyError` if another session of
    ``torch.profiler`` is open or another tool uses CUPTI, and `ProfilerUnavailableError` if the
    driver gives no records.

    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     records = gpulab.tracing.profiling.capture(lambda: a @ a)
    >>> [(record.kind, record.name) for record in records.records]
    [('kernel', 'mm')]
    """
    with device.active() as in_use:
        with open_source(in_use) as source:
            start_ns = source.now_ns()
            work()
            torch.cuda.synchronize()
            window = (start_ns, source.now_ns())
        return split_by_window(source, in_use.name, [window])[0]


def leaves_no_trace() -> bool:
    """Return whether a session leaves launches as fast as before and disturbs no other session.

    It says nothing about whether the session gives records. PyTorch and the driver have no call
    that says so beforehand: a container without the right to read CUPTI's records starts a session
    without an error, and only the records are missing.
    """
    if device.current().virtual is not None:
        return True
    return obstacle() is None and is_detachable() and not is_prepared()


def open_source(in_use: device.Device) -> "KinetoSession | SimulatorSession":
    """Return a new session that records this GPU; enter it with ``with``."""
    if in_use.virtual is None:
        return KinetoSession()
    from gpulab.virtual import SimulatorSession

    return SimulatorSession(in_use.virtual.machine)


def split_by_window(
    source: "KinetoSession | SimulatorSession", device_name: str, windows: list[tuple[int, int]]
) -> list[Records]:
    """Return one :class:`Records` for each window of the host's time, of a closed session.

    A window is in ns of ``source.now_ns()``; they ascend. Its calls are those that began in it,
    and what these launched belongs to it, even if it ran later.
    """
    records, calls = source.read()
    starts_ns = [start_ns for start_ns, _ in windows]
    by_window: dict[int | None, list[HostCall]] = defaultdict(list)
    window_of: dict[int, int | None] = {}
    for call in calls:
        # None is the key of calls between windows; their records belong to no window either.
        window = bisect_right(starts_ns, call.start_ns) - 1
        # The start of the call decides. Its kernel may run long after the window.
        is_inside = window >= 0 and call.start_ns < windows[window][1]
        window_of[call.correlation] = window if is_inside else None
        by_window[window_of[call.correlation]].append(call)
    numbers = sorted(window_of)
    done: dict[int | None, list[ActivityRecord]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.start_ns):
        done[window_of[_caller(record, numbers)]].append(record)
    groups = [(by_window[window], done[window]) for window in range(len(windows))]
    n_missing = _n_missing(groups)
    return [
        Records(tuple(done_here), tuple(called), source.source, device_name, n_lost)
        for (called, done_here), n_lost in zip(groups, n_missing, strict=True)
    ]


def _caller(record: ActivityRecord, numbers: list[int]) -> int:
    """Return the correlation number of the call that launched a record.

    If the profiler did not show that call, return the number of the last call shown before it:
    numbers grow from call to call, whether a call is shown or not.
    """
    # CUPTI numbers the calls of a process in order, so the neighbours of a lost call are known.
    index = bisect_right(numbers, record.correlation or 0) - 1
    return numbers[max(0, index)]


def _n_missing(groups: Iterable[tuple[list[HostCall], list[ActivityRecord]]]) -> list[int]:
    """Return how many records are known to be missing for each call of the work."""
    n_unanswered, kinds, n_found = [], [], []
    for called, records in groups:
        launches = [call for call in called if call.kind == "launch"]
        answered = {record.correlation for record in records}
        n_unanswered.append(sum(call.correlation not in answered for call in launches))
        kinds.append(tuple(call.name for call in launches))
        n_found.append(len(records))
    # One launch of a CUDA graph has many records. How many is known only from another call of the
    # same work, the one with the most records.
    most = {
        kind: max(n for k, n in zip(kinds, n_found, strict=True) if k == kind) for kind in kinds
    }
    return [
        max(n_lost, most[kind] - n)
        for n_lost, kind, n in zip(n_unanswered, kinds, n_found, strict=True)
    ]
