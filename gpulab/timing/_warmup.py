"""Warm up: call the work until its times are steady, and see whether it waits for the GPU."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median

import torch

from gpulab import device, stats
from gpulab.core.errors import GpulabError, ProfilerBusyError, ProfilerUnavailableError
from gpulab.core.progress import Bar
from gpulab.core.torch_private import spin
from gpulab.device.work import Work, refuse_endless
from gpulab.timing._event_pairs import elapsed_s, new_event
from gpulab.timing._isolation import calling_work
from gpulab.timing._real_time import RealTime, now_s
from gpulab.tracing.profiling import capture, leaves_no_trace

__all__ = ["WarmUp", "warm_up"]


_N_LEAST = 10  # with fewer calls, noise looks like a trend
_N_CAP = 100
_N_LAST = 5  # calls at the end whose median is the time of a call
_SLEEPS_S = (0.001, 0.02)  # the long one only if the short one says that the work waits
# An empty kernel between two events adds 2.3 µs to what they read on an H200 (docs/floor.md), and
# nothing adds 0.2 µs at most.
_LEAST_KERNEL_S = 1e-6
# The probe lets the GPU sleep for twice the host's time; slower work is not worth that wait.
_HOST_CAP_S = 0.5
_SIDE_LEAST_S = 30e-6  # below this a wait may have been interrupted
_N_LOOKED_AT = 1 << 20
# The sleep counts cycles. This is above the clock of every GPU, so no sleep is too short.
_MOST_CYCLES_PER_S = 3e9
_LEAST_CYCLES_PER_S = 1e9
_LONGEST_IDLE_S = 1e-3  # or the warm-up of long work would take twice as long


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the warm-up calls showed; a field is None if no call could show it.

    ``call_s`` goes from the start of a call until the device is idle: the median of the last
    calls. ``host_s`` is the host's, for one call and the event after it: the shortest of all.
    ``synchronizes`` says whether the work waits for the GPU inside its call. ``side_s`` is how
    long the device was still busy when the current stream was done, because of work on another
    stream; None if it was not, or too briefly to be sure. ``is_zero`` says that the last result is
    a tensor of zeros, ``is_empty`` that the last call put nothing into the current stream.
    ``peak_bytes`` is the most memory in use during the last call, beyond what was in use before
    it. ``real_s`` is the real clock's of the shortest call, also on a virtual GPU; None after a
    single call, which includes the costs of first use.
    """

    n_calls: int = 0
    call_s: float | None = None
    host_s: float | None = None
    synchronizes: bool | None = None
    side_s: float | None = None
    is_zero: bool = False
    is_empty: bool = False
    peak_bytes: int | None = None
    real_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """Times of one call: seconds until it returned, until its stream and the device were done.

    ``idle_s`` is what the wait for the device took just before, after a kernel of no duration on
    the current stream.
    """

    host_s: float
    stream_s: float
    total_s: float
    idle_s: float


def warm_up(
    work: Work,
    *,
    n_calls: int | None,
    max_time_s: float,
    real_time: RealTime | None = None,
    bar: Bar | None = None,
) -> WarmUp:
    """Call ``work`` until its times are steady or ``n_calls`` times, and return what that showed.

    Steady times are reached after at most 100 calls or ``max_time_s``, and one more call follows.
    A part of ``real_time`` also ends the warm-up, unless the number of calls is given. If there
    are two or more calls, the GPU sleeps during the last one, which shows whether the work waits.
    Times that are steady now can change later: clocks fall when the GPU gets hot.
    """
    probe = n_calls is None or n_calls > 1
    n_timed = n_calls - probe if n_calls is not None else None
    calls: list[_Call] = []
    start_s, real_start_s = time.perf_counter(), now_s()
    real_s, is_cut = math.inf, False
    while not _is_enough(calls, n_timed, time.perf_counter() - start_s, max_time_s):
        call_start_s = now_s()
        if calls and n_calls is None and real_time is not None:
            is_cut = real_time.ends_warm_up(call_start_s - real_start_s)
            if is_cut:
                break
        with calling_work(f"in warm-up call {len(calls) + 1}"):
            calls.append(_call(work, calls[-1].total_s if calls else 0.0))
        if len(calls) > 1:
            real_s = min(real_s, now_s() - call_start_s)
            if n_calls is not None:
                refuse_endless(n_calls, real_s, n_warmup=n_calls)
        if bar is not None:
            bar.update()
    if not calls:
        return WarmUp()
    call_s = median(call.total_s for call in calls[-_N_LAST:])
    # Minima, because other programs on the host can only add to these two times.
    host_s = min(call.host_s for call in calls)
    more_s = min(call.total_s - call.stream_s - call.idle_s for call in calls)
    is_aside = more_s > _side_least_s(calls) and not (
        n_calls is None and _is_refuted(work, len(calls))
    )
    warmed_up = WarmUp(
        len(calls),
        call_s,
        host_s,
        side_s=more_s if is_aside else None,
        real_s=real_s if len(calls) > 1 else None,
    )
    if not probe:
        return warmed_up
    # If the user gave the number of calls, there is one left for the probe: use the long sleep.
    # Two more calls would also take too long if the real time is over.
    sleeps_s = _SLEEPS_S if n_calls is None and not is_cut else _SLEEPS_S[-1:]
    with calling_work(f"in warm-up call {len(calls) + 1}"):
        return _probed(work, warmed_up, host_s, sleeps_s)


def _probed(work: Work, warmed_up: WarmUp, host_s: float, sleeps_s: tuple[float, ...]) -> WarmUp:
    """Call the work once more while the GPU sleeps, to see whether it waits and what it returns.

    If the operating system interrupts the host, the work seems to wait. So the answer after a
    short sleep counts only if it is "does not wait"; otherwise a longer sleep decides.
    """
    results: list[object] = []
    first, before, after = new_event(), new_event(), new_event()

    def between_events() -> None:
        first.record()
        before.record()
        results.append(work())
        after.record()

    for sleep_s in sleeps_s:
        used_bytes = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        synchronizes = waits(between_events, host_s, sleep_s)
        peak_bytes = torch.cuda.max_memory_allocated() - used_bytes
        if not synchronizes:
            break
    # While the GPU sleeps the host is ahead. Then the last two events are as close together as the
    # first two if there is nothing between them.
    more_s = elapsed_s((before, after)) - elapsed_s((first, before))
    return replace(
        warmed_up,
        n_calls=warmed_up.n_calls + len(results),
        synchronizes=synchronizes,
        is_empty=synchronizes is False and more_s < _LEAST_KERNEL_S,
        is_zero=_is_zero(results.pop()),
        peak_bytes=peak_bytes,
    )


def _is_zero(result: object) -> bool:
    """Return whether a result is a tensor whose first million elements are all zero."""
    # A tensor on the CPU says nothing about the GPU's power, and an empty one has no zeros.
    if not isinstance(result, torch.Tensor) or not result.is_cuda or result.numel() == 0:
        return False
    # A single whole number is an index or a count.
    if result.numel() == 1 and not result.is_floating_point():
        return False
    if not result.is_contiguous():  # flattening it would copy all of it
        return False
    # Some types have no `any`, and a virtual GPU may compute no values.
    with suppress(RuntimeError, GpulabError):
        return not bool(result.detach().flatten()[:_N_LOOKED_AT].any().item())
    return False


def waits(work: Work, host_s: float, sleep_s: float = _SLEEPS_S[-1]) -> bool | None:
    """Return whether a call returns only after everything that was queued before it is done.

    The GPU sleeps for longer than the host needs for the call. If the GPU is awake when the call
    returns, the call has waited: for the GPU, or for room in a full launch queue. A wait for
    another stream alone is not seen. Returns None without a test if the call takes the host
    more than half a second.
    """
    if host_s > _HOST_CAP_S:
        work()
        torch.cuda.synchronize()
        return None
    asleep = new_event()
    # Twice the host's time covers a call that is slower than usual; sleep_s covers an
    # interruption by the operating system.
    cycles = int((sleep_s + 2 * host_s) * _MOST_CYCLES_PER_S)
    spin(cycles)
    asleep.record()
    work()
    waited: bool = asleep.query()  # type: ignore[no-untyped-call]  # torch's gap
    torch.cuda.synchronize()
    return waited


def _is_enough(
    calls: list[_Call], n_timed: int | None, elapsed_s: float, max_time_s: float
) -> bool:
    if n_timed is not None or not calls:
        return len(calls) == n_timed
    if len(calls) >= _N_CAP or elapsed_s >= max_time_s:
        return True
    if len(calls) < _N_LEAST:
        return False
    return stats.steady_from([call.total_s for call in calls]) < len(calls)


def _side_least_s(calls: list[_Call]) -> float:
    """Return how much longer than before the wait must be to show another stream."""
    # On a machine whose waits vary, a wait that is longer by so much shows nothing. Half of the
    # waits are taken, because a single one may be interrupted.
    idle_s = sorted(call.idle_s for call in calls)
    return max(_SIDE_LEAST_S, idle_s[len(idle_s) // 2] - idle_s[0])


def _is_refuted(work: Work, n_calls: int) -> bool:
    """Return whether the driver's records show that no other stream was busy for longer."""
    if device.current().virtual is None and not leaves_no_trace():
        return False

    def marked() -> None:
        spin(1)  # which shows the current stream, also if the work puts nothing there
        work()

    try:
        with calling_work(f"in warm-up call {n_calls + 1}, which the driver recorded"):
            records = capture(marked).records
    except (ProfilerBusyError, ProfilerUnavailableError):
        return False
    current = records[0].stream if records else None
    last_ns = max((each.end_ns for each in records if each.stream == current), default=0)
    return bool(records) and all(each.end_ns <= last_ns for each in records)


def _call(work: Work, before_s: float) -> _Call:
    """Call the work, and before it nothing at all for about as long as the call before took."""
    end = new_event()  # recorded after the call, as the method "events" does
    stream = torch.cuda.current_stream()  # looked up here, as that takes longer than recording
    torch.cuda.synchronize()
    # The same wait with nothing left to wait for: how long that takes depends on the machine,
    # and on how long the host has waited before.
    spin(int(min(before_s, _LONGEST_IDLE_S) * _LEAST_CYCLES_PER_S) + 1)
    end.record(stream)
    end.synchronize()
    idle_start_s = time.perf_counter()
    torch.cuda.synchronize()
    idle_s = time.perf_counter() - idle_start_s
    start_s = time.perf_counter()
    work()
    end.record(stream)
    launched_s = time.perf_counter()
    end.synchronize()
    done_s = time.perf_counter()
    torch.cuda.synchronize()
    total_s = time.perf_counter() - start_s
    return _Call(launched_s - start_s, done_s - start_s, total_s, idle_s)
