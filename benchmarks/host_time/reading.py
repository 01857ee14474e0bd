"""Time programs and single calls on the GPU in use, real or virtual, with the same code."""

import gc
import json
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.common.device_records import busy_us, duration_us, profiled, short_name
from benchmarks.fidelity.bench import at_most
from benchmarks.host_time import fit_programs, more_fit_programs
from gpulab.device.work import Work

PROGRAMS = {**fit_programs.PROGRAMS, **more_fit_programs.PROGRAMS}
QUANTITIES = ("host_us", "wall_us", "busy_us")
_N_WARM_UP = 6
_N_STEPS = 25
_STEADY_S = 0.12  # how long steps are enqueued for a wall time
_LIMIT_S = 300.0
_N_PASSES = 2_000
_NS_PER_US = 1e3


def record(out: Path) -> None:
    """Time the programs on the CUDA GPU in use, and write a file.

    A program that fails is recorded with its error, and the rest goes on.
    """
    started_s = time.monotonic()
    found: dict[str, Any] = {**_provenance(), "programs": {}}
    with quiet():
        for title, make in PROGRAMS.items():
            found["programs"][title] = _tried(partial(read_program, make, is_real=True))
            print(f"{time.monotonic() - started_s:6.1f} s  {title}", flush=True)
            out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    found["seconds"] = round(time.monotonic() - started_s, 1)
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def read_times(files: Sequence[Path]) -> dict[str, Any]:
    """Return one recording from files of ``record``, with the medians over them.

    A program that failed in one file is taken from the others.
    """
    read = [json.loads(each.read_text(encoding="utf-8")) for each in files]
    found: dict[str, Any] = {**read[0], "programs": {}}
    for title, first in read[0]["programs"].items():
        each = [item["programs"].get(title, {"error": "not reached"}) for item in read]
        good = [item for item in each if "error" not in item]
        medians = {
            name: statistics.median(item[name] for item in good) for name in QUANTITIES if good
        }
        found["programs"][title] = {**good[0], **medians} if good else first
    return found


def predict(titles: list[str]) -> dict[str, Any]:
    """Return the virtual H200's times of some programs."""
    return {
        title: _tried(partial(_on_virtual, make))
        for title, make in PROGRAMS.items()
        if title in titles
    }


def _on_virtual(make: Callable[[], Work]) -> dict[str, Any]:
    with gpulab.virtual_gpu("H200", first_use=False):
        return read_program(make, is_real=False)


def _tried(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        with at_most(_LIMIT_S):
            return work()
    except Exception as error:  # noqa: BLE001 # whatever it is, the others are to be read
        return {"error": f"{type(error).__name__}: {str(error)[:300]}"}


@contextmanager
def quiet() -> Iterator[None]:
    """Turn off the garbage collector in the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def read_program(make: Callable[[], Work], *, is_real: bool) -> dict[str, Any]:
    """Return the times of a program's step in microseconds.

    ``host``: until the step returns, with an idle device before, so that no full queue blocks.
    ``wall``: of one step among many that are enqueued in a row, until the device is done.
    ``python`` and ``launch``: of a fixed loop and of a tiny kernel, before and after, which show
    how fast the host was.
    """
    torch.manual_seed(0)
    step = make()
    for _ in range(_N_WARM_UP if is_real else 3):
        step()
    torch.cuda.synchronize()
    # Readings of one program differ by 10 to 30 % on such a machine (docs/virtual-gpu.md). A fixed
    # loop before and after shows how fast the host was.
    speeds = [host_speed()] if is_real else []
    # The virtual GPU repeats itself, so two readings are enough there.
    host_us = [_once_us(step) for _ in range(_N_STEPS if is_real else 2)]
    usual_us = statistics.median(host_us)
    once_s = _wall_us(step, 2) / 1e6
    n_steps = min(max(4, round(_STEADY_S / once_s)), 200) if is_real else 6
    wall_us = [_wall_us(step, n_steps) for _ in range(3 if is_real else 1)]
    if is_real:
        speeds.append(host_speed())
    # Last, because the profiler would slow down the host in all readings after it.
    records = profiled(step)
    kernels: dict[str, list[float]] = defaultdict(list)
    for item in records:
        kernels[short_name(item.name)].append(duration_us(item))
    return {
        "host_us": round(usual_us, 2),
        "host_range_us": [round(min(host_us), 2), round(max(host_us), 2)],
        "wall_us": round(statistics.median(wall_us), 2),
        "wall_range_us": [round(min(wall_us), 2), round(max(wall_us), 2)],
        "n_steps": n_steps,
        "busy_us": busy_us(records),
        "n_records": len(records),
        "kernels": {
            title: [len(each), round(sum(each), 2)] for title, each in sorted(kernels.items())
        },
        "speeds": speeds,
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


def host_speed() -> dict[str, float]:
    """Return how fast the host is now, in microseconds: a loop in Python, and a tiny kernel."""
    x = torch.zeros(64, device="cuda")

    def loop() -> int:
        total = 0
        for i in range(_N_PASSES):
            total += i
        return total

    readings: dict[str, list[float]] = {"python": [], "launch": []}
    for _ in range(5):
        readings["python"].append(_once_us(loop))
        readings["launch"].append(_once_us(lambda: [x.add_(1) for _ in range(100)]) / 100)
    return {name: round(statistics.median(each), 3) for name, each in readings.items()}


def _provenance() -> dict[str, Any]:
    cpu = ""
    if (found := Path("/proc/cpuinfo")).exists():
        lines = found.read_text(encoding="utf-8").splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "cpu": cpu,
        "taken_at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
    }
