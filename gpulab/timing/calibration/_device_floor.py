"""What a pair of events reads beyond the kernel between them, found on the device in use."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median_low
from weakref import WeakKeyDictionary

import torch

from gpulab import device
from gpulab.errors import NotModelledError, ProfilerBusyError, ProfilerUnavailableError
from gpulab.requirements import NameOf
from gpulab.stats import median_interval
from gpulab.timing._cuda_graph import GraphSampler
from gpulab.timing._profiler import per_call
from gpulab.timing._saturated import SaturatedSampler
from gpulab.timing.calibration._timer_kernel import load
from gpulab.timing.calibration._work_floor import (
    Floor,
    forget_refusals,
)
from gpulab.virtual import VirtualGpu
from gpulab.work import Work

__all__ = ["FLOOR_METHODS", "device_floor", "floor", "forget_floors"]


FLOOR_METHODS = ("auto", "profiler", "timer", "assumed")

_N_READINGS = 100
_N_FOR_A_RUN = 20
_N_RECORDS = 30
_N_ELEMENTS = 1_024
_NS = 1e-9
_TICK_S = 32 * _NS
# What a record of the timer kernel holds besides the time from its first instruction to its last,
# so that the floor found is that of a usual work of 61, hot and cold; how long a record of the
# reference kernel is, and how much more the floor of a usual kernel is than the reference's; all
# on an H200: see docs/floor.md.
_AROUND_TIMER_S = 0.46e-6
_ASSUMED_S = 0.91e-6
_USUAL_S = 0.09e-6
# How much less the floor of a usual kernel is in a graph than the floor of these two there: 0.5 µs
# of a hot cache and 0.1 of a cold one, on an H200.
_LESS_S = {"launches": 0.0, "graph": 0.3e-6}
_RECORDED = (9, 0)  # the H200's compute capability
# How far the floor of one kernel may lie from that of another: 52 of 56 readings of 14 kernels,
# hot and cold, did on an H200. Products and reductions lie above the rest, by 0.2 to 0.5 µs.
_BETWEEN_KERNELS_S = 0.4e-6
# How far the two figures above may be wrong: from process to process on an H200, and on other
# GPUs. The latter is a guess, as nobody has looked.
_ERROR_S = {"profiler": 0.0, "timer": 0.1e-6, "assumed": 0.2e-6}
_ERROR_ELSEWHERE_S = {"profiler": 0.0, "timer": 0.2e-6, "assumed": 0.5e-6}


def floor(method: str = "auto", *, of: str = "launches") -> Floor:
    """Return the floor of the device in use; it is looked for once per process and device.

    A pair of events round one kernel reads the kernel and, before and after it, the way from
    one to the next: on an H200 about 3 µs, whatever the kernel's length. Work of several
    kernels has it once: the pauses between them are a part of the work. Copies between host and
    device have a floor of their own, which is smaller; docs/floor.md has the figures.

    Parameters
    ----------
    method
        ``"profiler"``: readings of a small kernel, less its records. ``"timer"``: readings of
        a kernel that takes its own time, less that time and what a record would add, which is
        known of an H200. ``"assumed"``: readings of a small kernel, less what it takes on an
        H200. ``"auto"``: the first of timer, profiler and assumed that works here, as the
        profiler takes longest. A virtual GPU has its records for all of them.
    of
        ``"launches"``: events round kernels launched one by one, with the host ahead.
        ``"graph"``: events that are part of a CUDA graph.

    Raises
    ------
    UnknownNameError
        If there is no such method or no such kind of floor.
    NotModelledError
        If ``"timer"`` is asked for on a virtual GPU.
    ProfilerBusyError, ProfilerUnavailableError
        If ``"profiler"`` is asked for and gives nothing; ``"timer"`` raises the latter, too.
    """
    NameOf("method to find the floor", FLOOR_METHODS).check(method=method)
    NameOf("kind of floor", _SAMPLERS).check(of=of)
    with device.active() as in_use:
        floors = (
            _floors if in_use.virtual is None else _virtual_floors.setdefault(in_use.virtual, {})
        )
        key = (method, of, torch.cuda.current_device())
        if key not in floors:
            find = _measured if in_use.virtual is None else _of_model
            floors[key] = find(method, of, in_use.name)
        return floors[key]


def device_floor(before: Work | None, *, of: str = "launches") -> Floor:
    """Return the floor as it is at this moment, after what goes ahead of each sample.

    The floor drifts by 0.1 or 0.2 µs within a minute, and after a flush it is more than on a
    hot cache, so a measurement reads it again, in the same state. The work whose duration
    is known is found once per process and device.

    Parameters
    ----------
    before
        What goes ahead of each sample of the measurement; None where nothing does.
    of
        ``"launches"`` or ``"graph"``, as in :func:`floor`.
    """
    with device.active() as in_use:
        if in_use.virtual is not None:
            return floor(of=of)
        key = torch.cuda.current_device()
        if key not in _known:
            _known[key] = _first_that_works()
        known = _known[key]
        # Only a kernel that takes its own time is known to take it on a cold cache, too.
        ahead = before if known.method == "timer" else None
        return _read(known, _SAMPLERS[of](known.work, before=ahead)(_N_FOR_A_RUN), of)


def forget_floors() -> None:
    """Forget all floors, so that the next question is answered by looking again."""
    _floors.clear()
    _virtual_floors.clear()
    _known.clear()
    forget_refusals()


_Floors = dict[tuple[str, str, int], Floor]
_floors: _Floors = {}
# With the virtual GPU its floors go, and leaving and entering it again changes nothing.
_virtual_floors: WeakKeyDictionary[VirtualGpu, _Floors] = WeakKeyDictionary()

_SAMPLERS: dict[str, type[SaturatedSampler | GraphSampler]] = {
    "launches": SaturatedSampler,
    "graph": GraphSampler,
}


@dataclass(frozen=True, slots=True)
class _KnownWork:
    """Work of which it is known how long the device takes, and from what."""

    method: str
    work: Work
    duration_s: float


_known: dict[int, _KnownWork] = {}


def _measured(method: str, of: str, _device_name: str) -> Floor:
    known = _first_that_works() if method == "auto" else _WAYS[method]()
    return _read(known, _SAMPLERS[of](known.work)(_N_READINGS), of)


def _read(known: _KnownWork, readings_s: list[float], of: str) -> Floor:
    """Return what events read of known work beyond its duration."""
    low_s, high_s = median_interval(readings_s)
    off_s = known.duration_s + _LESS_S[of]
    errors_s = _ERROR_S if torch.cuda.get_device_capability() == _RECORDED else _ERROR_ELSEWHERE_S
    aside_s = _BETWEEN_KERNELS_S + errors_s[known.method]
    return Floor(
        value_s=_fine_median(readings_s) - off_s,
        low_s=low_s - off_s - aside_s,
        high_s=high_s - off_s + aside_s,
        method=known.method,
        device_name=device.current().name,
        n_samples=len(readings_s),
    )


def _first_that_works() -> _KnownWork:
    for way in (_by_timer, _by_profiler):
        try:
            return way()
        except (ProfilerBusyError, ProfilerUnavailableError):
            continue
    return _by_assumption()


def _by_profiler() -> _KnownWork:
    work = _reference()
    calls = per_call(work, n_samples=_N_RECORDS)
    whole_s = [call.busy_s for call in calls if not call.dropped and call.n_kernels == 1]
    if not whole_s:
        raise ProfilerUnavailableError(
            f"the profiler lost the records of all {len(calls)} launches; "
            'find the floor without it: floor("timer")'
        )
    return _KnownWork("profiler", work, _fine_median(whole_s) - _USUAL_S)


def _by_timer() -> _KnownWork:
    kernel = load()
    if kernel is not None:
        kernel()
        own_ns = kernel.own_ns()
        if own_ns is not None:
            return _KnownWork("timer", kernel, own_ns * _NS + _AROUND_TIMER_S)
    raise ProfilerUnavailableError(
        "this torch or this driver loads no kernel that reads the device's clock, or the clock "
        'is too coarse; find the floor another way: floor("profiler") or floor("assumed")'
    )


def _by_assumption() -> _KnownWork:
    return _KnownWork("assumed", _reference(), _ASSUMED_S - _USUAL_S)


_WAYS: dict[str, Callable[[], _KnownWork]] = {
    "profiler": _by_profiler,
    "timer": _by_timer,
    "assumed": _by_assumption,
}


def _of_model(method: str, of: str, device_name: str) -> Floor:
    """Return the model's floor, from the times of the events before torch rounds them."""
    if method == "timer":
        raise NotModelledError(
            "the virtual GPU has no model of compiled kernels, and needs none to know its "
            "floor; ask for floor()"
        )
    work = _reference()
    (call,) = per_call(work, n_samples=1)
    sampler = _SAMPLERS[of](work)
    sampler(1)
    start, end = sampler.pairs[0]
    reading_ns = end.task.end_ns - start.task.end_ns  # type: ignore[attr-defined]  # the model's events
    value_s = (reading_ns - call.records[0].duration_ns) * _NS
    return Floor(value_s, value_s, value_s, "records", device_name, 1)


def _reference() -> Work:
    """Return a launch of a kernel like most: elementwise, and far too small to disturb a cache."""
    ones = torch.ones(_N_ELEMENTS, dtype=torch.float32, device="cuda")
    product = torch.ones_like(ones)

    def launch() -> None:
        torch.mul(ones, ones, out=product)

    launch()  # the first launch of a kernel loads it
    torch.cuda.synchronize()
    return launch


def _fine_median(values_s: list[float]) -> float:
    """Return the median of values that are multiples of a tick, finer than the tick."""
    middle_s = median_low(values_s)  # one of them, also where they fall into two groups
    return fmean(value_s for value_s in values_s if abs(value_s - middle_s) <= 1.5 * _TICK_S)
