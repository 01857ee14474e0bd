"""Time the same kernels with ``gpulab.measure`` in fresh processes, to compare the processes."""

import json
import statistics
import subprocess
import sys
import time
from functools import partial
from typing import Any

from benchmarks.accuracy.cases import SHORT_CASES
from benchmarks.common.command_line import python_command
from benchmarks.common.folders import ROOT

_READY, _MARK = "@ready", "@medians "
_N_WARM = 20
_AT_ONCE = 10
# The medians that each process prints: the timing method and the state of the cache of each.
_SAID = {
    "cold": ("calibrated", "cold"),
    "hot": ("calibrated", "hot"),
    "referee_cold": ("profiler-span", "cold"),
    "referee_hot": ("profiler-span", "hot"),
}


def run(n_processes: int, *, virtual: bool, limit_s: float) -> dict[str, Any]:
    """Return the medians in microseconds of each process, and their coefficient of variation.

    The result contains the driver's records of the same processes, too. Where those vary, the
    kernel itself takes another time in each process, because its memory lies elsewhere; then
    the method is not the cause. Processes start a few at a time and then wait for their turn, so
    that only one at a time uses the GPU.
    """
    medians: list[dict[str, dict[str, float]]] = []
    end_s = time.monotonic() + limit_s
    while len(medians) < n_processes and time.monotonic() < end_s:
        n_next = min(_AT_ONCE, n_processes - len(medians))
        medians += [taken for taken in _batch(n_next, virtual=virtual) if taken]
    names = [case.name for case in SHORT_CASES]
    by_way = {
        way: {name: [each[way][name] for each in medians] for name in names} for way in _SAID
    }
    return {
        "n_processes": len(medians),
        "medians_us": by_way,
        "variation_percent": {way: _variations(found) for way, found in by_way.items()},
    }


def _variations(medians_us: dict[str, list[float]]) -> dict[str, float | None]:
    return {name: variation(values) for name, values in medians_us.items()}


def variation(values: list[float]) -> float | None:
    """Return the coefficient of variation in percent, or None for fewer than two values."""
    if len(values) <= 1:
        return None
    return round(100 * statistics.stdev(values) / statistics.fmean(values), 4)


def _batch(n_processes: int, *, virtual: bool) -> list[dict[str, dict[str, float]]]:
    options = ["--virtual"] if virtual else []
    command = python_command("benchmarks.accuracy", "process", *options)
    started = [
        subprocess.Popen(  # noqa: S603 # it is this program
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(n_processes)
    ]
    # Wait for all of them before the first is timed: loading keeps host and GPU busy.
    for process in started:
        _read_until(process, _READY)
    taken = []
    for process in started:
        if process.stdin and process.poll() is None:
            process.stdin.write("go\n")
            process.stdin.flush()
        taken.append(json.loads(_read_until(process, _MARK) or "{}"))
    for process in started:
        process.kill()
        process.wait()
    return taken


def _read_until(process: "subprocess.Popen[str]", mark: str) -> str:
    """Return what follows the mark on its line, or an empty text if the process ended first."""
    for line in process.stdout or ():
        if line.startswith(mark):
            return line.removeprefix(mark)
    return ""


def serve() -> None:
    """Build the works, wait for a line on standard input, then measure and print the medians."""
    import torch

    import gpulab

    measure = partial(gpulab.measure, progress=False)
    works = {case.name: case.build() for case in SHORT_CASES}
    for work in works.values():
        for _ in range(_N_WARM):
            work()
    torch.cuda.synchronize()
    print(_READY, flush=True)
    sys.stdin.readline()
    medians = {
        way: {
            name: round(1e6 * measure(work, method=method, cache=cache).median_s, 4)
            for name, work in works.items()
        }
        for way, (method, cache) in _SAID.items()
    }
    print(_MARK + json.dumps(medians), flush=True)
