"""The entries of a recording: times of a workload and of a program, and the machine's data."""

import statistics
import time
from typing import Any

import torch

from benchmarks.common import environment
from benchmarks.common.device_records import KINDS, duration_us, short_name
from benchmarks.fidelity.bench import (
    MOST_PENDING,
    Bench,
    device_reading,
    event_us,
    host_us,
    median_us,
)
from benchmarks.fidelity.programs import Program
from benchmarks.fidelity.workload import Workload
from gpulab import clocks
from gpulab.device.work import Work
from gpulab.tracing.profiling import ActivityRecord

Recording = dict[str, Any]

_N_WARM_UPS = 3
_MOST_DEVICE_S = 0.15  # for each reading, so that large workloads do not take all of the time
_N_TOP_KERNELS = 8
# On no machine so far did a launch take less. It bounds the number of launches of a call.
_SHORTEST_LAUNCH_S = 3e-6


def host_of_workload(workload: Workload, bench: Bench) -> Recording:
    """Return host and event times of one workload, without the profiler."""
    with workload.precision():
        work, duration_s, launch_s = _warm(workload.build())
        # Two events, and at most so many launches: the queue must never be full, or the host would
        # block and its time would contain the device's.
        n_pending = 2 + launch_s / _SHORTEST_LAUNCH_S
        room = int(MOST_PENDING / n_pending)
        n_calls = _affordable(min(bench.n_calls, room), duration_s, at_least=2)
        n_pairs = _affordable(min(bench.n_repetitions, room), duration_s, at_least=2)
        host = host_us(bench, work, n_calls)
        return {
            "host_us": host,
            "n_host_calls": n_calls,
            "event_us": event_us(work, n_pairs, host * 1e-6),
            "sm_clock_mhz": environment.clock_mhz(),
        }


def device_of_workload(workload: Workload, bench: Bench) -> Recording:
    """Return the device times of one workload."""
    with workload.precision():
        work, duration_s, _ = _warm(workload.build())
        n_repetitions = _affordable(bench.n_repetitions, duration_s, at_least=2)
        return {"device": device_reading(bench, work, n_repetitions)}


def _warm(work: Work) -> tuple[Work, float, float]:
    """Call the work a few times; return it, its wall time and the host's part of that."""
    for _ in range(_N_WARM_UPS):
        work()
    walls_s, launches_s = [], []
    for _ in range(3):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        work()
        launches_s.append(time.perf_counter() - start_s)
        torch.cuda.synchronize()
        walls_s.append(time.perf_counter() - start_s)
    return work, min(walls_s), min(launches_s)


def _affordable(n: int, duration_s: float, *, at_least: int) -> int:
    return max(at_least, min(n, int(_MOST_DEVICE_S / max(duration_s, 1e-6))))


def _steps(program: Program) -> Work:
    """Return a function that enqueues a program's steps before one wait, warmed up."""
    step = program.make()
    for _ in range(_N_WARM_UPS):
        step()

    def steps() -> None:
        for _ in range(program.n_steps):
            step()

    return steps


def host_of_program(program: Program, bench: Bench) -> Recording:
    """Return the host time and the wall time of a step, without the profiler."""
    steps, n = _steps(program), program.n_steps
    enqueued_s, walls_s = [], []
    for _ in range(bench.n_rounds):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        steps()
        enqueued_s.append((time.perf_counter() - start_s) / n)
        torch.cuda.synchronize()
        walls_s.append((time.perf_counter() - start_s) / n)
    return {"n_steps": n, "wall_us": median_us(walls_s), "host_us": median_us(enqueued_s)}


def device_of_program(program: Program, bench: Bench) -> Recording:
    """Return the device times of a step, by the driver's records."""
    records, n = bench.records(_steps(program)), program.n_steps
    return {
        "busy_us": round(_union_us(records) / n, 3),
        "summed_us": round(sum(map(duration_us, records)) / n, 3),
        **{f"n_{kind}": sum(r.kind == kind for r in records) / n for kind in KINDS},
        "kernels": _top_kernels(records, n),
    }


def _union_us(records: list[ActivityRecord]) -> float:
    """Return the time during which the device was busy."""
    busy_ns = end_ns = 0
    for record in records:
        busy_ns += max(0, record.end_ns - max(end_ns, record.start_ns))
        end_ns = max(end_ns, record.end_ns)
    return busy_ns / 1e3


def _top_kernels(records: list[ActivityRecord], n_steps: int) -> list[dict[str, Any]]:
    found: dict[str, list[float]] = {}
    for record in records:
        found.setdefault(short_name(record.name), []).append(duration_us(record))
    top = sorted(found.items(), key=lambda item: -sum(item[1]))[:_N_TOP_KERNELS]
    return [
        {
            "name": name,
            "n_per_step": len(values) / n_steps,
            "median_us": round(statistics.median(values), 3),
        }
        for name, values in top
    ]


def provenance() -> dict[str, Any]:
    """Return the GPU, host, clocks and versions of the recording."""
    at = environment.provenance()
    reading = clocks.try_read()
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": at["driver"],
        "torch": torch.__version__,
        "cuda": at["cuda"],
        "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call] # torch's
        "python": at["python"],
        "cpu": f"{at['n_cpus']} x {at['cpu']}",
        "date": at["taken_at"][:10],
        "sm_clock_mhz": at["clock_before_mhz"],
        "memory_clock_mhz": None if reading is None else reading.memory_mhz,
        "power_limit_w": None if reading is None else reading.power_limit_w,
    }
