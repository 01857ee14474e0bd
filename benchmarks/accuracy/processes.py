"""Time the same kernels with ``gpulab.measure`` in fresh processes, to compare the processes."""

import multiprocessing
import statistics
import time
from functools import partial
from typing import Any

from benchmarks.accuracy.cases import SHORT_CASES
from benchmarks.common.environment import gpu_in_use

_SPAWN = multiprocessing.get_context("spawn")  # a fork could not use CUDA
_N_WARM = 20
_LOADED_S = 120.0  # after these seconds a process that has not loaded fails the others
_AT_ONCE = 10
# The medians that each process returns: the timing method and the state of the cache of each.
_SAID = {
    "cold": ("calibrated", "cold"),
    "hot": ("calibrated", "hot"),
    "referee_cold": ("profiler-span", "cold"),
    "referee_hot": ("profiler-span", "hot"),
}
Medians = dict[str, dict[str, float]]


def medians_of_processes(n_processes: int, *, virtual: bool, limit_s: float) -> dict[str, Any]:
    """Return the medians in microseconds of each process, and their coefficient of variation.

    The result contains the driver's records of the same processes, too. Where those vary, the
    kernel itself takes another time in each process, because its memory lies elsewhere; then
    the method is not the cause. Processes start a few at a time and then wait for their turn, so
    that only one at a time uses the GPU.
    """
    medians: list[Medians] = []
    end_s = time.monotonic() + limit_s
    while len(medians) < n_processes and time.monotonic() < end_s:
        medians += _batch(min(_AT_ONCE, n_processes - len(medians)), virtual=virtual)
    by_way = {
        way: {case.name: [each[way][case.name] for each in medians] for case in SHORT_CASES}
        for way in _SAID
    }
    return {
        "n_processes": len(medians),
        "medians_us": by_way,
        "variation_percent": {
            way: {name: variation(values) for name, values in by_case.items()}
            for way, by_case in by_way.items()
        },
    }


def variation(values: list[float]) -> float | None:
    """Return the coefficient of variation in percent, or None for fewer than two values."""
    if len(values) <= 1:
        return None
    return round(100 * statistics.stdev(values) / statistics.fmean(values), 4)


def _batch(n_processes: int, *, virtual: bool) -> list[Medians]:
    # Wait for all of them before the first is timed: loading keeps host and GPU busy.
    all_are_ready, turn = _SPAWN.Barrier(n_processes), _SPAWN.Lock()
    shared = (all_are_ready, turn, virtual)
    with _SPAWN.Pool(n_processes, _keep, shared, maxtasksperchild=1) as pool:
        return pool.map(_medians, range(n_processes), chunksize=1)


_given: list[Any] = []  # of a process of the pool


def _keep(*shared: object) -> None:
    _given[:] = shared


def _medians(_number: int) -> Medians:
    """Build the works, wait for the turn, and return what `measure` says of each."""
    import torch

    import gpulab

    all_are_ready, turn, virtual = _given
    with gpu_in_use(virtual=virtual):
        works = {case.name: case.build() for case in SHORT_CASES}
        for work in works.values():
            for _ in range(_N_WARM):
                work()
        torch.cuda.synchronize()
        all_are_ready.wait(_LOADED_S)
        measure = partial(gpulab.measure, progress=False)
        with turn:
            return {
                way: {
                    name: round(1e6 * measure(work, method=method, cache=cache).median_s, 4)
                    for name, work in works.items()
                }
                for way, (method, cache) in _SAID.items()
            }
