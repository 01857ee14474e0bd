"""Time work on the GPU: by the host's clock with two waits, and by events with the host ahead."""

import time
from collections.abc import Callable
from functools import partial

import torch

from gpulab.core.torch_private import spin
from gpulab.device.work import Work

_AHEAD_CYCLES = 20_000_000  # about 10 ms of sleep, in which the host launches all calls
_CYCLES_PER_MS = 1_980_000  # at the boost clock of the virtual H200, 1,980 MHz


def spinning(length_ms: float) -> Work:
    """Return work that spins on the GPU for some milliseconds and reads no data."""
    return partial(spin, round(length_ms * _CYCLES_PER_MS))


def stopwatch_s(work: Callable[[], object]) -> float:
    """Return the seconds from an idle GPU to the end of the work, by the host's clock."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


def device_s(work: Callable[[], object], n_calls: int = 10, n_warmup: int = 3) -> float:
    """Return the seconds that one call takes on the GPU, without its launch.

    ``n_calls`` calls of ``work`` are between the two events, after ``n_warmup`` first ones.
    """
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    for _ in range(n_warmup):
        work()
    torch.cuda.synchronize()
    spin(_AHEAD_CYCLES)
    start.record()
    for _ in range(n_calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / n_calls
