"""What the device did for a piece of work, by the records of its driver or of its simulation.

A real GPU's records are CUPTI's, read through the profiler that PyTorch brings along; a virtual
GPU keeps its own. Both come as the same types, with the host's calls on the same axis of time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import compress
from typing import Protocol, Self

import torch

from gpulab import device
from gpulab._events import nothing
from gpulab._records_detach import is_detachable
from gpulab._records_kineto import Session, is_prepared, obstacle
from gpulab._records_record import HostCall, Record, Records
from gpulab.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.saturation import Saturated

__all__ = [
    "HostCall",
    "Record",
    "Records",
    "capture",
    "leaves_no_trace",
    "per_call",
    "read_calls",
    "short_name",
    "usable",
]

Work = Callable[[], object]

_NOISE = ("void ", "at::native::", "at::cuda::", "(anonymous namespace)::", "at::", "std::")
_NAME_LENGTH = 60


class _Source(Protocol):
    """Where records come from: entered, worked in, left, read."""

    source: str

    def __enter__(self) -> Self: ...

    def __exit__(
        self, _kind: object = None, error: BaseException | None = None, _trace: object = None
    ) -> None: ...

    def now_ns(self) -> int: ...

    def read(self) -> tuple[list[Record], list[HostCall]]: ...


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
    """
    with device.active() as in_use:
        with _open(in_use) as source:
            start_ns = source.now_ns()
            work()
            torch.cuda.synchronize()
            window = (start_ns, source.now_ns())
        return _split(source, in_use.name, [window])[0]


def per_call(work: Work, *, n_samples: int, before: Work = nothing) -> list[Records]:
    """Return what the device did for each of a number of calls; see :func:`read_calls`."""
    return [call for call, _ in read_calls(work, n_samples=n_samples, before=before)]


def read_calls(
    work: Work, *, n_samples: int, before: Work = nothing
) -> list[tuple[Records, float]]:
    """Call ``work`` a number of times in one session: what each did, and what events read of it.

    The calls are enqueued as :func:`gpulab.saturation.saturated` enqueues its own, so that the
    span of several kernels does not hold the time of their launches, and the two can be compared:
    behind a sleep of 0.3 ms instead of 5 µs a product took up to 5 % longer on an H200. Work on
    another stream that does not wait for the current one starts at once, and then the span
    holds that sleep.

    Parameters
    ----------
    work
        Enqueues the work. What it launches while it runs, on any thread, is counted.
    n_samples
        Number of calls.
    before
        Called ahead of each call; what it launches is not counted.

    Returns
    -------
    list[tuple[Records, float]]
        For each call, in their order, its records, and the seconds that a pair of events round
        it read; in a session they read 0.1 or 0.2 µs more than without. If the profiler loses
        records, as it does without a word, those calls have ``dropped`` set.

    Raises
    ------
    ProfilerBusyError
        If another session of ``torch.profiler`` is open, or another tool holds CUPTI.
    ProfilerUnavailableError
        If the driver gives no records.
    """
    windows: list[tuple[int, int]] = []
    with device.active() as in_use:
        with _open(in_use) as source:

            def noted() -> None:
                start_ns = source.now_ns()
                work()
                windows.append((start_ns, source.now_ns()))

            enqueue = Saturated(noted, before=before)
            readings_s = enqueue(n_samples)
        calls = _split(source, in_use.name, list(compress(windows, enqueue.counted)))
        return list(zip(calls, readings_s, strict=True))


def usable() -> str | None:
    """Return why records cannot be had of the GPU in use, or None.

    It tries to get some, as nothing else tells.
    """
    try:
        capture(lambda: None)
    except (ProfilerBusyError, ProfilerUnavailableError) as error:
        return str(error)
    return None


def leaves_no_trace() -> bool:
    """Tell whether a session here would leave launches as fast as they were, and others' whole.

    It need not give any records: :func:`usable` tells that.
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
    for place, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and not depth and place:  # here the arguments begin
            name = name[:place]
            break
    return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


def _open(in_use: device.Device) -> _Source:
    if in_use.virtual is None:
        return Session()
    from gpulab._records_virtual import Watched

    return Watched(in_use.virtual.machine)


def _split(source: _Source, device_name: str, windows: list[tuple[int, int]]) -> list[Records]:
    """Give each window of the host's time its calls, and what those launched."""
    records, calls = source.read()
    starts_ns = [start_ns for start_ns, _ in windows]
    by_window: dict[int | None, list[HostCall]] = defaultdict(list)
    window_of: dict[int, int | None] = {}
    for call in calls:
        place = bisect_right(starts_ns, call.start_ns) - 1
        is_inside = place >= 0 and call.start_ns < windows[place][1]
        window_of[call.correlation] = place if is_inside else None
        by_window[window_of[call.correlation]].append(call)
    numbers = sorted(window_of)
    done: dict[int | None, list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.start_ns):
        done[window_of[_caller(record, numbers)]].append(record)
    groups = [(by_window[place], done[place]) for place in range(len(windows))]
    n_missing = _n_missing(groups)
    return [
        Records(tuple(found), tuple(called), source.source, device_name, n_lost)
        for (called, found), n_lost in zip(groups, n_missing, strict=True)
    ]


def _caller(record: Record, numbers: list[int]) -> int:
    """Return the number of the call that launched a record, or of the one seen before that.

    Numbers grow from call to call, also of those calls that the profiler does not show.
    """
    place = bisect_right(numbers, record.correlation or 0) - 1
    return numbers[max(0, place)]


def _n_missing(groups: Iterable[tuple[list[HostCall], list[Record]]]) -> list[int]:
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
