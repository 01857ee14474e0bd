"""Time programs on the virtual GPU, and read the times that an H200 took for them."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

import gpulab
from benchmarks.common.device_records import busy_us, profiled
from benchmarks.fidelity.readings import at_most
from benchmarks.host_time import fit_programs, library_programs, more_fit_programs
from gpulab.device.work import Work

PROGRAMS = {
    **fit_programs.PROGRAMS,
    **more_fit_programs.PROGRAMS,
    **library_programs.PROGRAMS,
}
QUANTITIES = ("host_us", "wall_us", "busy_us")
# The virtual GPU repeats itself, so few steps are enough.
_N_WARM_UP, _N_STEPS = 3, 6
_LIMIT_S = 300.0
_NS_PER_US = 1e3


def predict(titles: list[str]) -> dict[str, Any]:
    """Return the virtual H200's times of some programs."""
    return {
        title: _tried(partial(_on_virtual, make))
        for title, make in PROGRAMS.items()
        if title in titles
    }


def _on_virtual(make: Callable[[], Work]) -> dict[str, Any]:
    with gpulab.virtual_gpu("H200", first_use=False):
        return read_program(make)


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        with at_most(_LIMIT_S):
            return work()
    except Exception as error:  # noqa: BLE001 # whatever it is, the others are to be read
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


def read_program(make: Callable[[], Work]) -> dict[str, Any]:
    """Return the times of a program's step in microseconds.

    ``host``: until the step returns, with an idle device before, so that no full queue blocks.
    ``wall``: of one step among many that are enqueued in a row, until the device is done.
    """
    torch.manual_seed(0)
    step = make()
    for _ in range(_N_WARM_UP):
        step()
    host_us = [_once_us(step) for _ in range(2)]
    wall_us = _wall_us(step, _N_STEPS)
    return {
        "host_us": round(statistics.median(host_us), 2),
        "wall_us": round(wall_us, 2),
        "busy_us": busy_us(profiled(step)),
    }


def _once_us(step: Work) -> float:
    torch.cuda.synchronize()
    start_ns = time.perf_counter_ns()
    kept = step()
    taken_us = (time.perf_counter_ns() - start_ns) / _NS_PER_US
    # Freed after the clock was read: freeing a large result is not part of the step.
    del kept
    torch.cuda.synchronize()
    return taken_us


def _wall_us(step: Work, n_steps: int) -> float:
    torch.cuda.synchronize()
    start_ns = time.perf_counter_ns()
    for _ in range(n_steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter_ns() - start_ns) / n_steps / _NS_PER_US
