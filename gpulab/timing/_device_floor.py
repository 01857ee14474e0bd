"""The floor of the device: how much more a pair of events reads than a kernel takes."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median_low
from weakref import WeakKeyDictionary

import torch

from gpulab import device
from gpulab.core.errors import NotModelledError, ProfilerBusyError, ProfilerUnavailableError
from gpulab.core.requirements import NameOf
from gpulab.device.work import Work
from gpulab.stats import median_interval
from gpulab.timing._cuda_graph import GraphSampler
from gpulab.timing._profiler import per_call
from gpulab.timing._saturated import SaturatedSampler
from gpulab.timing._timer_kernel import load
from gpulab.timing._work_floor import Floor
from gpulab.virtual import VirtualGpu

__all__ = ["FLOOR_METHODS", "device_floor", "floor"]


FLOOR_METHODS = ("auto", "profiler", "timer", "assumed")

_N_READINGS = 100
_N_FOR_A_RUN = 20  # fewer, because every measurement reads the floor again
_N_RECORDS = 30
_N_ELEMENTS = 1_024
_NS = 1e-9
_TICK_S = 32 * _NS  # one step of the clock of events on an H200
# The next three were measured on an H200; see docs/floor.md. The record of the timer kernel is
# taken to be this much longer than the time from its first instruction to its last, so that the
# floor found is that of a typical workload; 61 were compared, hot and cold.
_AROUND_TIMER_S = 0.46e-6
# The length of a record of the reference kernel, and how much larger the floor of a typical kernel
# is than that of the reference kernel.
_ASSUMED_S = 0.91e-6
_USUAL_S = 0.09e-6
# In a graph the floor of a typical kernel is smaller than that of the timer and the reference
# kernel: on an H200 by 0.5 µs on a hot cache and by 0.1 µs on a cold one. This is the middle.
_LESS_S = {"launches": 0.0, "graph": 0.3e-6}
_RECORDED = (9, 0)  # the H200's compute capability
# How far the floors of two kernels may be apart. On an H200, 52 of 56 readings of 14 kernels, hot
# and cold, were within it. Matmuls and reductions are 0.2 to 0.5 µs above the rest.
_BETWEEN_KERNELS_S = 0.4e-6
# How far _AROUND_TIMER_S and _ASSUMED_S may be wrong: between processes on an H200, and on other
# GPUs. The second is a guess, because nobody has measured it.
_ERROR_S = {"profiler": 0.0, "timer": 0.1e-6, "assumed": 0.2e-6}
_ERROR_ELSEWHERE_S = {"profiler": 0.0, "timer": 0.2e-6, "assumed": 0.5e-6}


def floor(method: str = "auto", *, of: str = "launches") -> Floor:
    """Return the floor of the device in use: how much more events read than a kernel takes.

    A pair of events around one kernel reads the time of the kernel, plus the time from the first
    event to the kernel and from the kernel to the second event: about 3 µs on an H200, for short
    and long kernels alike. For work of several kernels the floor counts only once, because the
    pauses between the kernels are part of the work. Copies between host and device have a smaller
    floor of their own; docs/floor.md has the figures. The floor is measured once per process and
    device.

    Parameters
    ----------
    method
        ``"profiler"``: times of a small kernel by events, minus its records. ``"timer"``: times of
        a kernel that reads the GPU's clock itself, minus its own result and minus a constant that
        was measured on an H200. ``"assumed"``: times of a small kernel, minus what it takes on an
        H200. ``"auto"``: the first of timer, profiler and assumed that works here; timer comes
        first because the profiler is slow. A virtual GPU uses its own records in all cases.
    of
        ``"launches"``: events around kernels launched one by one, with the host ahead.
        ``"graph"``: events that are part of a CUDA graph.

    Raises
    ------
    UnknownNameError
        If there is no such method or no such kind of floor.
    NotModelledError
        If you ask for ``"timer"`` on a virtual GPU.
    ProfilerBusyError, ProfilerUnavailableError
        If you ask for ``"profiler"`` and it gives no records. ``"timer"`` raises
        ProfilerUnavailableError if the kernel cannot be loaded.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.timing import floor
    >>> with gpulab.virtual_gpu("H200"):
    ...     of_events = floor()
    >>> of_events.method, 1e-6 < of_events.value_s < 5e-6
    ('records', True)
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
    """Return the floor of the device as it is now, in the same cache state as the samples.

    The floor drifts by 0.1 or 0.2 µs within a minute, and after a flush (``before``) it is larger
    than on a hot cache. So each measurement reads it again. The kernel of known duration that this
    needs is prepared once per process and device.
    """
    with device.active() as in_use:
        if in_use.virtual is not None:
            return floor(of=of)
        key = torch.cuda.current_device()
        if key not in _known:
            _known[key] = _first_that_works()
        known = _known[key]
        # Only the timer kernel measures its own duration, so only that is known on a cold cache.
        ahead = before if known.method == "timer" else None
        return _read(known, _SAMPLERS[of](known.work, before=ahead)(_N_FOR_A_RUN), of)


_Floors = dict[tuple[str, str, int], Floor]
_floors: _Floors = {}
# Weak keys: the floors live as long as their virtual GPU, also while it is left and entered again.
_virtual_floors: WeakKeyDictionary[VirtualGpu, _Floors] = WeakKeyDictionary()

_SAMPLERS: dict[str, type[SaturatedSampler | GraphSampler]] = {
    "launches": SaturatedSampler,
    "graph": GraphSampler,
}


@dataclass(frozen=True, slots=True)
class _KnownWork:
    """Work whose duration on the device is known, and how it is known."""

    method: str
    work: Work
    duration_s: float


_known: dict[int, _KnownWork] = {}


def _measured(method: str, of: str, _device_name: str) -> Floor:
    known = _first_that_works() if method == "auto" else _WAYS[method]()
    return _read(known, _SAMPLERS[of](known.work)(_N_READINGS), of)


def _read(known: _KnownWork, readings_s: list[float], of: str) -> Floor:
    """Return the floor: how much more events read than the known duration of the work."""
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
    # The timer needs 15 ms the first time and uses only the device; the profiler needs 31 ms and
    # cannot run inside the program's own session.
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
        kernel()  # one launch, so that there is a reading
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
    """Return the floor of a virtual GPU, from the times of its events before torch rounds them."""
    if method == "timer":
        raise NotModelledError(
            "the virtual GPU has no model of compiled kernels, and needs none to know its "
            "floor; call floor() without a method"
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
    """Return the launch of a typical kernel: elementwise, and too small to disturb a cache."""
    ones = torch.ones(_N_ELEMENTS, dtype=torch.float32, device="cuda")
    product = torch.ones_like(ones)

    def launch() -> None:
        torch.mul(ones, ones, out=product)

    launch()  # the first launch of a kernel loads it
    torch.cuda.synchronize()
    return launch


def _fine_median(values_s: list[float]) -> float:
    """Return the median of values that are multiples of a clock tick, finer than the tick."""
    # median_low is always one of the values. The mean of two middle values could lie in the gap
    # between two groups, with no value near it.
    middle_s = median_low(values_s)
    return fmean(value_s for value_s in values_s if abs(value_s - middle_s) <= 1.5 * _TICK_S)
