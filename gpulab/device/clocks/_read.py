"""Read clock, power and temperature of the GPU in use through NVML, once or during work.

Everything works in the same way on a real GPU and on a virtual one.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from gpulab.core.errors import ClocksUnavailableError
from gpulab.core.requirements import COUNT_OR_ZERO, DURATION, NameOf, items_of
from gpulab.core.tracebacks import UsersTraceback
from gpulab.device.clocks import _nvml as driver
from gpulab.device.clocks._reading import Reading, reasons_of
from gpulab.device.work import check_callable

__all__ = ["PARTS", "QUICK", "read", "try_read", "watch", "watch_by"]


# Calls that may wait for the GPU. About four times as many launches fit into its queue.
_MOST_AHEAD = 256


def _clock(gpu: driver.NvmlGpu, kind: str) -> int:
    return int(gpu.nvml.nvmlDeviceGetClockInfo(gpu.handle, getattr(gpu.nvml, kind)))


def _temperature(gpu: driver.NvmlGpu) -> int:
    return int(gpu.nvml.nvmlDeviceGetTemperature(gpu.handle, gpu.nvml.NVML_TEMPERATURE_GPU))


def _reasons(gpu: driver.NvmlGpu) -> tuple[str, ...]:
    try:
        mask = gpu.nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu.handle)
    except (AttributeError, gpu.nvml.NVMLError):
        # The older name of the function, in packages and drivers from before 2023.
        mask = gpu.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu.handle)
    return reasons_of(mask)


_CALLS: dict[str, Callable[[driver.NvmlGpu], Any]] = {
    "sm_mhz": lambda gpu: _clock(gpu, "NVML_CLOCK_SM"),
    "memory_mhz": lambda gpu: _clock(gpu, "NVML_CLOCK_MEM"),
    "power_w": lambda gpu: gpu.nvml.nvmlDeviceGetPowerUsage(gpu.handle) / 1_000,
    "power_limit_w": lambda gpu: gpu.nvml.nvmlDeviceGetEnforcedPowerLimit(gpu.handle) / 1_000,
    "temperature_c": _temperature,
    "utilization": lambda gpu: int(gpu.nvml.nvmlDeviceGetUtilizationRates(gpu.handle).gpu),
    "reasons": _reasons,
    "max_sm_mhz": lambda gpu: gpu.highest_mhz(gpu.nvml.NVML_CLOCK_SM),
}
PARTS = tuple(_CALLS)
QUICK = ("sm_mhz", "reasons")
_PART = NameOf("part of a reading", _CALLS)
_CURE = "pass a function: watch(lambda: a @ b, duration_s=1)"


def read(device: int | None = None, parts: Iterable[str] = PARTS) -> Reading:
    """Return the GPU's clock, power and temperature, and why the clock is not higher.

    A part that this GPU does not have, or that its driver forbids, is None. The call does not
    wait for the GPU, and running work continues. On an H200 it takes 13 µs of the host's time, or
    7 µs with :data:`QUICK`; the first call takes 1 ms more.

    Parameters
    ----------
    device
        PyTorch's index, which counts only the GPUs that CUDA_VISIBLE_DEVICES shows; None is the
        current device.
    parts
        Which fields to read; each needs a separate call of the driver.

    Raises
    ------
    ClocksUnavailableError
        If NVML is missing or forbidden, or has no such GPU.
    UnknownNameError
        If there is no such part; the message suggests the nearest.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     gpulab.clocks.read().sm_mhz
    1980
    """
    COUNT_OR_ZERO.or_none.check(device=device)
    fields = items_of("parts", parts, _PART)
    # Taken before the driver is asked: its values are older than the call in any case.
    at_s = time.perf_counter()
    values = _ask_all(driver.gpu_of(device), fields)
    if values is None:  # other code has shut NVML down: connect again and try once more
        driver.forget()
        # If it fails again, no part can be read, and a reading without parts says so.
        values = _ask_all(driver.gpu_of(device), fields) or {}
    return Reading(at_s, **values)


def try_read(device: int | None = None, parts: Iterable[str] = PARTS) -> Reading | None:
    """Return what :func:`read` returns, or None if the clocks cannot be read.

    If it returns None once on a machine, it always will, so you need not call it again.

    Raises
    ------
    UnknownNameError
        If there is no such part.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     gpulab.clocks.try_read(parts=["max_sm_mhz"]).max_sm_mhz
    1980
    """
    try:
        return read(device, parts)
    except ClocksUnavailableError:
        return None


def _ask_all(gpu: driver.NvmlGpu, parts: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the values, or None if other code has shut NVML down since the GPU was opened."""
    values = {}
    for part in parts:
        try:
            values[part] = _CALLS[part](gpu)
        except gpu.nvml.NVMLError as error:
            if error.value == gpu.nvml.NVML_ERROR_UNINITIALIZED:
                return None
            values[part] = None
    return values


def watch(
    load: Callable[[], object],
    *,
    duration_s: float,
    period_s: float = 0.1,
    device: int | None = None,
    parts: Iterable[str] = PARTS,
) -> Iterator[Reading]:
    """Yield readings while ``load`` is called again and again.

    The first reading is taken before the first call. The others follow at multiples of
    ``period_s``, or as soon after as a call returns. The host runs ahead of the GPU by about
    ``period_s`` of work, so the GPU has no pauses. Everything happens on the calling thread,
    because the clock of a virtual GPU belongs to one thread. So no load runs while you process a
    reading.

    Parameters
    ----------
    load
        Function without arguments that enqueues work on the current stream.
    duration_s
        How long to call it, in seconds.
    period_s
        Time between readings, in seconds. The driver of an H200 updates its values every 0.1 s,
        so a shorter period shows each value more than once.
    device, parts
        As for :func:`read`.

    Raises
    ------
    ClocksUnavailableError, UnknownNameError
        As :func:`read` does, before the load is called.
    InvalidOptionError
        If one of the times is not above 0.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(256, 256, device="cuda")
    ...     readings = list(gpulab.clocks.watch(lambda: a @ a, duration_s=0.01, period_s=0.005))
    >>> readings[0].max_sm_mhz
    1980
    """
    COUNT_OR_ZERO.or_none.check(device=device)
    # Checked here and not in the generator, which would raise only at its first reading.
    fields = items_of("parts", parts, _PART)
    return watch_by(load, lambda: read(device, fields), duration_s=duration_s, period_s=period_s)


def watch_by(
    load: Callable[[], object],
    look: Callable[[], Reading],
    *,
    duration_s: float,
    period_s: float = 0.1,
) -> Iterator[Reading]:
    """Yield what ``look`` returns while ``load`` is called again and again.

    It works like :func:`watch` with your own function in place of the driver. Only ``at_s`` of a
    reading must be set; the other fields may be None.

    Parameters
    ----------
    load, duration_s, period_s
        As for :func:`watch`.
    look
        Returns a reading, with the time of the call.

    Raises
    ------
    InvalidOptionError
        If one of the times is not above 0.

    Exceptions of ``look`` and ``load`` reach you unchanged.

    Examples
    --------
    >>> import time, torch, gpulab
    >>> from gpulab.device.clocks import Reading, watch_by
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(256, 256, device="cuda")
    ...     look = lambda: Reading(time.perf_counter())
    ...     readings = list(watch_by(lambda: a @ a, look, duration_s=0.01, period_s=0.005))
    >>> len(readings) >= 2
    True
    """
    check_callable("load", load, _CURE)
    check_callable("look", look, "pass a function that returns a reading: clocks.read")
    DURATION.check(duration_s=duration_s, period_s=period_s)
    return _looks(load, look, duration_s, period_s)


def _looks(
    load: Callable[[], object], look: Callable[[], Reading], duration_s: float, period_s: float
) -> Iterator[Reading]:
    with UsersTraceback():
        began = look()
        yield began
        due_s = period_s
        queue = _Queue(load, period_s)
        while True:
            queue.call()
            elapsed_s = time.perf_counter() - began.at_s
            if elapsed_s >= due_s:
                yield look()
                # The next multiple of the period, also if one call took several periods.
                due_s = period_s * (elapsed_s // period_s + 1)
            if elapsed_s >= duration_s:
                break
        queue.drain()


class _Queue:
    """Calls of a load that the host has made and the GPU has not finished."""

    def __init__(self, load: Callable[[], object], ahead_s: float) -> None:
        self._load = load
        self._ahead_s = ahead_s
        self._ends: deque[torch.cuda.Event] = deque()
        self._n_calls = 0
        # Until the second call has been timed, each call is waited for.
        self._n_ahead = 0

    def call(self) -> None:
        began_s = time.perf_counter()
        self._load()
        end = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch's gap
        end.record()
        self._ends.append(end)
        while len(self._ends) > self._n_ahead:
            self._ends.popleft().synchronize()
        self._n_calls += 1
        # The first call may compile or load code, so the second shows how long a call takes.
        if self._n_calls == 2:  # noqa: PLR2004 # the second
            call_s = time.perf_counter() - began_s
            # If the clock did not advance, the time is unknown: allow as many calls as possible.
            n_ahead = min(self._ahead_s / call_s, _MOST_AHEAD) if call_s > 0 else _MOST_AHEAD
            # At least two calls in the queue, or the GPU would pause after each one.
            self._n_ahead = max(2, int(n_ahead))

    def drain(self) -> None:
        while self._ends:
            self._ends.popleft().synchronize()
