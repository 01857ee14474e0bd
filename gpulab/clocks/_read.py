"""Read clock, power and temperature of the GPU in use through NVML, once or during work.

Everything works alike on a real GPU and on a virtual one.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from gpulab.clocks import _nvml as driver
from gpulab.clocks._reading import Reading, reasons_of
from gpulab.errors import ClocksUnavailableError
from gpulab.requirements import COUNT_OR_ZERO, DURATION, NameOf, items_of
from gpulab.work import check_callable

__all__ = ["PARTS", "QUICK", "read", "try_read", "watch", "watch_by"]


_MOST_AHEAD = 256  # calls; a GPU keeps about four times as many launches waiting


def _clock(gpu: driver.NvmlGpu, kind: str) -> int:
    return int(gpu.nvml.nvmlDeviceGetClockInfo(gpu.handle, getattr(gpu.nvml, kind)))


def _temperature(gpu: driver.NvmlGpu) -> int:
    return int(gpu.nvml.nvmlDeviceGetTemperature(gpu.handle, gpu.nvml.NVML_TEMPERATURE_GPU))


def _reasons(gpu: driver.NvmlGpu) -> tuple[str, ...]:
    try:
        mask = gpu.nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu.handle)
    except (AttributeError, gpu.nvml.NVMLError):
        # The older name, in a package or a driver from before 2023.
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
    """Return the GPU's clock, power, temperature and what holds the clock down.

    A part that this GPU does not have, or that its driver forbids, is None. The call does not
    wait for the GPU: work that is running goes on. On an H200 it takes 13 µs of the host's
    time, with :data:`QUICK` 7, and the first 1 ms more.

    Parameters
    ----------
    device
        Torch's index, whatever CUDA_VISIBLE_DEVICES hides; None is the current device.
    parts
        Which fields to ask for; each is a question to the driver of its own.

    Raises
    ------
    ClocksUnavailableError
        If NVML is missing or forbidden, or knows no such GPU.
    UnknownNameError
        If there is no such part; the message names the nearest.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     gpulab.clocks.read().sm_mhz
    1980
    """
    COUNT_OR_ZERO.or_none.check(device=device)
    asked = items_of("parts", parts, _PART)
    at_s = time.perf_counter()
    values = _ask_all(driver.gpu_of(device), asked)
    if values is None:
        driver.forget()
        values = _ask_all(driver.gpu_of(device), asked) or {}
    return Reading(at_s, **values)


def try_read(device: int | None = None, parts: Iterable[str] = PARTS) -> Reading | None:
    """Return what :func:`read` does, or None where the clocks cannot be read.

    A machine that gives None once goes on to; asking it each time takes time for nothing.

    Raises
    ------
    UnknownNameError
        If there is no such part.
    """
    try:
        return read(device, parts)
    except ClocksUnavailableError:
        return None


def _ask_all(gpu: driver.NvmlGpu, parts: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the values, or None if somebody has shut NVML down since the GPU was opened."""
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

    The first comes before the first call, the others at multiples of ``period_s`` or as soon
    after as a call returns. The host runs ahead of the GPU by about ``period_s`` of work, so
    the GPU has no pauses. All of it happens on the calling thread, because the clock of a virtual
    GPU is that of one thread; what the caller does between two readings is time without load.

    Parameters
    ----------
    load
        Work for the current stream, without arguments.
    duration_s
        How long to call it, in seconds.
    period_s
        Time between readings, in seconds. The driver of an H200 renews what it tells every
        0.1 s, so a shorter period shows values twice.
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
    asked = items_of("parts", parts, _PART)
    return watch_by(load, lambda: read(device, asked), duration_s=duration_s, period_s=period_s)


def watch_by(
    load: Callable[[], object],
    look: Callable[[], Reading],
    *,
    duration_s: float,
    period_s: float = 0.1,
) -> Iterator[Reading]:
    """Yield what ``look`` reads while ``load`` is called again and again, as :func:`watch` does.

    That there are readings does not mean that a driver was asked: of each its time alone is
    used, and the rest is what ``look`` put there, which may be nothing.

    Parameters
    ----------
    load, duration_s, period_s
        As for :func:`watch`.
    look
        Returns a reading of the moment in which it is called.

    Raises
    ------
    InvalidOptionError
        If one of the times is not above 0.

    What ``look`` and ``load`` raise is raised on.
    """
    check_callable("load", load, _CURE)
    check_callable("look", look, "pass a function that returns a reading: clocks.read")
    DURATION.check(duration_s=duration_s, period_s=period_s)
    return _looks(load, look, duration_s, period_s)


def _looks(
    load: Callable[[], object], look: Callable[[], Reading], duration_s: float, period_s: float
) -> Iterator[Reading]:
    began = look()
    yield began
    due_s = period_s
    queue = _Queue(load, period_s)
    while True:
        queue.call()
        elapsed_s = time.perf_counter() - began.at_s
        if elapsed_s >= due_s:
            yield look()
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
        # The first call may compile or load what it needs; the second tells how long one takes.
        if self._n_calls == 2:  # noqa: PLR2004 # the second
            call_s = time.perf_counter() - began_s
            # A clock that stands still tells nothing: as many as are allowed.
            n_ahead = int(self._ahead_s / call_s) if call_s > 0 else _MOST_AHEAD
            self._n_ahead = max(2, min(n_ahead, _MOST_AHEAD))

    def drain(self) -> None:
        while self._ends:
            self._ends.popleft().synchronize()
