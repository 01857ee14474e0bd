"""Record what the device did for a piece of work: its kernels, copies and the host's calls.

A real GPU's records are CUPTI's, read through the profiler that PyTorch brings along; a virtual
GPU keeps its own. Both come as the same types, with the host's calls on the same axis of time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol, Self

import torch

from gpulab import device
from gpulab.activity import ActivityRecord, HostCall
from gpulab.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.profiling._cupti import is_detachable
from gpulab.profiling._kineto import KinetoSession, is_prepared, obstacle
from gpulab.profiling._records import Records
from gpulab.work import Work

__all__ = ["capture", "leaves_no_trace", "short_name", "why_unusable"]


_NOISE = ("void ", "at::native::", "at::cuda::", "(anonymous namespace)::", "at::", "std::")
_NAME_LENGTH = 60


class _RecordSource(Protocol):
    """Where records come from: entered, worked in, left, read."""

    source: str

    def __enter__(self) -> Self: ...

    def __exit__(
        self, _kind: object = None, error: BaseException | None = None, _trace: object = None
    ) -> None: ...

    def now_ns(self) -> int: ...

    def read(self) -> tuple[list[ActivityRecord], list[HostCall]]: ...


def capture(work: Work) -> Records:
    """Run ``work`` once, wait for the device, and return what it did and what the host called.

    Parameters
    ----------
    work
        Enqueues the work, on any streams of the current device.

    Returns
    -------
    Records
        Everything launched from the start of ``work`` on, with the wait at the end among the
        calls. The profiler makes each launch slower, by half or more beside an H200.

    Raises
    ------
    ProfilerBusyError
        If another session of ``torch.profiler`` is open, or another tool holds CUPTI.
    ProfilerUnavailableError
        If the driver gives no records.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     records = gpulab.profiling.capture(lambda: a @ a)
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


def why_unusable() -> str | None:
    """Return why the GPU in use gives no records, or None where it does.

    It tries to get some, because nothing else tells.
    """
    try:
        capture(lambda: None)
    except (ProfilerBusyError, ProfilerUnavailableError) as error:
        return str(error)
    return None


def leaves_no_trace() -> bool:
    """Tell whether a session here would leave launches as fast as they were, and others' whole.

    It need not give any records: :func:`why_unusable` tells that.
    """
    if device.current().virtual is not None:
        return True
    return obstacle() is None and is_detachable() and not is_prepared()


def short_name(name: str) -> str:
    """Return a kernel's name without what C++ puts round it, at most 60 characters long.

    Parameters
    ----------
    name
        As a record has it, e.g. ``"void at::native::reduce_kernel<512, 1>(at::native::Op)"``.

    Examples
    --------
    >>> short_name("void at::native::reduce_kernel<512, 1>(at::native::Op)")
    'reduce_kernel<512, 1>'
    """
    if name.startswith(("Memcpy", "Memset")):
        return name
    for noise in _NOISE:
        name = name.replace(noise, "")
    depth = 0
    for index, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and not depth and index:  # here the arguments begin
            name = name[:index]
            break
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def open_source(in_use: device.Device) -> _RecordSource:
    """Return where records of this GPU come from, ready to be entered."""
    if in_use.virtual is None:
        return KinetoSession()
    from gpulab.virtual import SimulatorSession

    return SimulatorSession(in_use.virtual.machine)


def split_by_window(
    source: _RecordSource, device_name: str, windows: list[tuple[int, int]]
) -> list[Records]:
    """Give each window of the host's time its calls, and what those launched."""
    records, calls = source.read()
    starts_ns = [start_ns for start_ns, _ in windows]
    by_window: dict[int | None, list[HostCall]] = defaultdict(list)
    window_of: dict[int, int | None] = {}
    for call in calls:
        window = bisect_right(starts_ns, call.start_ns) - 1
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
        Records(tuple(found), tuple(called), source.source, device_name, n_lost)
        for (called, found), n_lost in zip(groups, n_missing, strict=True)
    ]


def _caller(record: ActivityRecord, numbers: list[int]) -> int:
    """Return the number of the call that launched a record, or of the one seen before that.

    Numbers grow from call to call, also of those calls that the profiler does not show.
    """
    index = bisect_right(numbers, record.correlation or 0) - 1
    return numbers[max(0, index)]


def _n_missing(groups: Iterable[tuple[list[HostCall], list[ActivityRecord]]]) -> list[int]:
    """Return for each call of the work how many records it lacks, as far as can be known."""
    n_unanswered, kinds, n_found = [], [], []
    for called, found in groups:
        launches = [call for call in called if call.kind == "launch"]
        answered = {record.correlation for record in found}
        n_unanswered.append(sum(call.correlation not in answered for call in launches))
        kinds.append(tuple(call.name for call in launches))
        n_found.append(len(found))
    # One launch of a graph has many records: only a fuller call of the same work tells how many.
    most = {
        kind: max(n for k, n in zip(kinds, n_found, strict=True) if k == kind) for kind in kinds
    }
    return [
        max(n_lost, most[kind] - n)
        for n_lost, kind, n in zip(n_unanswered, kinds, n_found, strict=True)
    ]
