"""Call the work until it is steady, and learn on the way how it treats the host."""

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median

import torch

from gpulab import stats
from gpulab.errors import GpulabError
from gpulab.timing._event_pairs import new_event
from gpulab.timing._isolation import calling_work
from gpulab.torch_private import spin
from gpulab.work import Work, refuse_endless

__all__ = ["WarmUp", "warm_up"]


_N_LEAST = 10  # fewer calls cannot tell a trend from noise
_N_CAP = 100
_N_LAST = 5
_SLEEPS_S = (0.001, 0.02)
_HOST_CAP_S = 0.5
_SIDE_LEAST_S = 30e-6  # a wait for an idle device takes a few microseconds, now and then twenty
_N_LOOKED_AT = 1 << 20
_CYCLES_PER_S = 3e9  # above every GPU's clock, so that a sleep is never too short


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the warm-up calls showed; None where no call was made to show it.

    Attributes
    ----------
    n_calls
        How often the work was called.
    call_s
        Seconds from the call to an idle device, in the last calls.
    host_s
        Seconds that one call, with the event after it, keeps the host at least.
    synchronizes
        Whether the work waits for the GPU inside its call.
    side_s
        Seconds for which the device went on when the current stream was done; None if it did
        not, or not for long enough to tell.
    is_zero
        Whether the result of the last call, if it is a tensor, is zero everywhere.
    real_s
        Seconds of the real clock that the shortest call took, also on a virtual GPU; None of
        a single call, which pays for first use.
    """

    n_calls: int = 0
    call_s: float | None = None
    host_s: float | None = None
    synchronizes: bool | None = None
    side_s: float | None = None
    is_zero: bool = False
    real_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """One call: seconds until it returned, until its stream was done, until the device was."""

    host_s: float
    stream_s: float
    total_s: float


def warm_up(work: Work, *, n_calls: int | None, max_time_s: float) -> WarmUp:
    """Call ``work`` until its times are steady, or as often as asked.

    The last of two or more calls is made behind a sleep of the GPU, to see whether the work
    waits. Steady so far is not steady for ever: clocks fall later, when the GPU gets hot.

    Parameters
    ----------
    work
        Enqueues the work.
    n_calls
        How many calls. None: until they are steady, at most 100 or ``max_time_s``, and one.
    max_time_s
        When to stop waiting for a steady state, in seconds.

    Returns
    -------
    WarmUp
        What was learnt.
    """
    probe = n_calls is None or n_calls > 1
    n_timed = n_calls - probe if n_calls is not None else None
    calls: list[_Call] = []
    start_s = time.perf_counter()
    real_s = math.inf
    while not _is_enough(calls, n_timed, time.perf_counter() - start_s, max_time_s):
        real_start_s = time.monotonic()  # which a virtual GPU leaves alone
        with calling_work(f"in warm-up call {len(calls) + 1}"):
            calls.append(_call(work))
        if len(calls) > 1:
            real_s = min(real_s, time.monotonic() - real_start_s)
            if n_calls is not None:
                refuse_endless(n_calls, real_s, n_warmup=n_calls)
    if not calls:
        return WarmUp()
    call_s = median(call.total_s for call in calls[-_N_LAST:])
    host_s = min(call.host_s for call in calls)
    side_s = min(call.total_s - call.stream_s for call in calls)
    seen = WarmUp(
        len(calls),
        call_s,
        host_s,
        side_s=side_s if side_s > _SIDE_LEAST_S else None,
        real_s=real_s if len(calls) > 1 else None,
    )
    if not probe:
        return seen
    # A number of calls that was asked for leaves no second try.
    sleeps_s = _SLEEPS_S if n_calls is None else _SLEEPS_S[-1:]
    with calling_work(f"in warm-up call {len(calls) + 1}"):
        return _probed(work, seen, host_s, sleeps_s)


def _probed(work: Work, seen: WarmUp, host_s: float, sleeps_s: tuple[float, ...]) -> WarmUp:
    """Call once more behind a sleep of the GPU, and look at what the work does and returns.

    A host that the system interrupts looks as if it waited, so a short sleep is believed only
    when it says that the work does not wait.
    """
    results: list[object] = []
    for sleep_s in sleeps_s:
        synchronizes = waits(lambda: results.append(work()), host_s, sleep_s)
        if not synchronizes:
            break
    return replace(
        seen,
        n_calls=seen.n_calls + len(results),
        synchronizes=synchronizes,
        is_zero=_is_zero(results.pop()),
    )


def _is_zero(result: object) -> bool:
    """Tell whether a result is a tensor of zeros, as far as the first million elements show."""
    if not isinstance(result, torch.Tensor) or not result.is_cuda or result.numel() == 0:
        return False
    if not result.is_contiguous():  # flattening it would copy all of it
        return False
    with suppress(RuntimeError, GpulabError):  # it cannot be tested, or it has no values
        return not bool(result.detach().flatten()[:_N_LOOKED_AT].any().item())
    return False


def waits(work: Work, host_s: float, sleep_s: float = _SLEEPS_S[-1]) -> bool | None:
    """Tell whether a call returns only when what was queued before it is done.

    The GPU is put to sleep for longer than the call keeps the host. If it is awake when
    the call returns, the call has waited: for the GPU, or for room in a full launch queue.
    A wait for another stream alone is not seen. None: a call that keeps the host for more
    than half a second is not examined.
    """
    if host_s > _HOST_CAP_S:
        work()
        torch.cuda.synchronize()
        return None
    asleep = new_event()
    # Twice the host's time allows for a slow call, the rest for an interruption by the system.
    cycles = int((sleep_s + 2 * host_s) * _CYCLES_PER_S)
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


def _call(work: Work) -> _Call:
    end = new_event()  # what the events method records after each call
    stream = torch.cuda.current_stream()  # looking it up takes longer than recording
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    end.record(stream)
    launched_s = time.perf_counter()
    end.synchronize()
    done_s = time.perf_counter()
    torch.cuda.synchronize()
    return _Call(launched_s - start_s, done_s - start_s, time.perf_counter() - start_s)
