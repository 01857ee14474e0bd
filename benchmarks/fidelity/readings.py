"""Time the virtual GPU as the recordings timed a real one: kernels, events and the host."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

import gpulab
from benchmarks.common.device_records import duration_us, is_spin, profiled
from benchmarks.common.time_limit import at_most
from benchmarks.fidelity.programs import Program, programs
from benchmarks.fidelity.workload import Workload
from gpulab.core.errors import NoValuesError
from gpulab.device.work import Work
from gpulab.happens_before.activity import ActivityRecord
from gpulab.timing import elapsed_s
from gpulab.timing._event_pairs import new_event

Recording = dict[str, Any]
Read = Callable[[], Recording]

_ITEM_LIMIT_S = 30.0
_PARTS = ("programs", "workloads")
# The virtual GPU repeats itself exactly, so a few samples are enough. A real one was read 20
# times, with 200 calls in each of five rounds for a host time.
_N_SAMPLES, _N_CALLS, _N_WARM_UPS = 3, 50, 3
_MOST_DEVICE_S = 0.15  # for each reading, so that large workloads do not take all of the time
# The host blocks once 1,021 launches are pending on an H200; stay well below. On no machine so far
# did a launch take less than this; it bounds the number of launches of a call.
_MOST_PENDING, _SHORTEST_LAUNCH_S = 900, 3e-6
_SPIN_CYCLES, _CLOCK_HZ = 1_000, 1.98e9
_FLUSH_ELEMENTS = 1 << 26  # 256 MB of float32, four times the L2 cache of an H200
_US_PER_S = 1e6


def read(paths: Sequence[Path]) -> Recording:
    """Return several recordings as one: the first, with the items of the others added."""
    first, *others = (json.loads(path.read_text("utf-8")) for path in paths)
    for other in others:
        for part in _PARTS:
            first.setdefault(part, {}).update(other.get(part, {}))
    first["origins"] = [
        {"path": path.name, **recording["provenance"]}
        for path, recording in zip(paths, (first, *others), strict=True)
    ]
    return dict(first)


def chosen_of(recording: Recording, only: str, role: str) -> Recording:
    """Return a recording with only the items whose name contains ``only``, of one role or all."""
    parts = {
        part: {
            name: item
            for name, item in recording.get(part, {}).items()
            if only in name and role in {"", item.get("role")}
        }
        for part in _PARTS
    }
    return recording | parts


def compute(gpu: str, workloads: Sequence[Workload], only: str, role: str) -> Recording:
    """Return the virtual GPU's times of the workloads and of all programs, as a recording.

    Parameters
    ----------
    gpu
        The short name of the GPU.
    workloads
        What to time, beside the programs.
    only
        Time only what has this in its name; empty for all.
    role
        Time only the workloads of this role, and no programs; empty for everything.
    """
    computed: Recording = {part: {} for part in _PARTS}
    for program in () if role else programs():
        if only in program.name:
            reads = partial(_host_of, program), partial(_device_of, program)
            computed["programs"][program.name] = _entry(gpu, program.name, *reads)
    for workload in workloads:
        if only in workload.name and role in {"", workload.role}:
            computed["workloads"][workload.name] = _entry(
                gpu,
                workload.name,
                partial(_host_times, workload),
                partial(_device_times, workload),
            )
    return computed


def _entry(gpu: str, name: str, *reads: Read) -> Recording:
    """Return what some functions read, each on a virtual GPU of its own."""
    entry: Recording = {}
    try:
        for read_some in reads:
            with at_most(_ITEM_LIMIT_S):
                try:
                    # Without values, which takes a fraction of the time. Few items need them.
                    entry |= _on(gpu, read_some, max_value_elements=0)
                except NoValuesError:
                    entry |= _on(gpu, read_some)
    except Exception as error:  # noqa: BLE001 # whatever fails, the rest goes on
        entry["failed"] = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        print(f"{name}  {entry['failed']}", flush=True)
    return entry


def _on(gpu: str, read: Read, **limits: int) -> Recording:
    with gpulab.virtual_gpu(gpu, first_use=False, **limits):
        return read()


def _steps(program: Program) -> Work:
    """Return a function that enqueues a program's steps before one wait, warmed up."""
    step = program.make()
    for _ in range(_N_WARM_UPS):
        step()

    def steps() -> None:
        for _ in range(program.n_steps):
            step()

    return steps


def _host_of(program: Program) -> Recording:
    steps = _steps(program)
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    steps()
    enqueued_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    wall_s = time.perf_counter() - start_s
    return {"wall_us": _us(wall_s / program.n_steps), "host_us": _us(enqueued_s / program.n_steps)}


def _device_of(program: Program) -> Recording:
    return {"busy_us": round(_union_us(profiled(_steps(program))) / program.n_steps, 3)}


def _warm(workload: Workload) -> tuple[Work, float, float]:
    """Call a workload a few times; return it, its wall time and the host's part of that."""
    work = workload.build()
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


def _host_times(workload: Workload) -> Recording:
    with workload.precision():
        work, duration_s, launch_s = _warm(workload)
        # Two events, and at most so many launches: the queue must never be full, or the host would
        # block and its time would contain the device's.
        room = int(_MOST_PENDING / (2 + launch_s / _SHORTEST_LAUNCH_S))
        host = _host_us(work, _affordable(min(_N_CALLS, room), duration_s))
        n_pairs = _affordable(min(_N_SAMPLES, room), duration_s)
        return {"host_us": host, "event_us": _event_us(work, n_pairs, host * 1e-6)}


def _device_times(workload: Workload) -> Recording:
    with workload.precision():
        work, duration_s, _ = _warm(workload)
        return {"device": _device_us(work, _affordable(_N_SAMPLES, duration_s))}


def _affordable(n: int, duration_s: float) -> int:
    return max(2, min(n, int(_MOST_DEVICE_S / max(duration_s, 1e-6))))


def _host_us(work: Work, n_calls: int) -> float:
    """Return the host time of a call, enqueued back-to-back on an idle queue."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    for _ in range(n_calls):
        work()
    taken_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    return _us(taken_s / n_calls)


def _event_us(work: Work, n_samples: int, host_s: float) -> float:
    """Return the time between a pair of events around the work, hot, with the queue full."""
    pairs = [(new_event(), new_event()) for _ in range(n_samples)]
    torch.cuda.synchronize()
    # The device must not reach the first event before the host has enqueued the last one. Twice
    # the expected time covers a host that is busy; 30 µs are for the events of a pair.
    _spin(int((1e-3 + 2 * n_samples * (host_s + 30e-6)) * _CLOCK_HZ))
    for start, end in pairs:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return _us(statistics.median(elapsed_s(pair) for pair in pairs))


def _device_us(work: Work, n_samples: int) -> Recording:
    """Return device times of the work, hot and cold, from the records of its kernels.

    Hot: called repeatedly on the same inputs. Cold: after a read of 256 MB, which leaves no dirty
    lines. The time of one call is the sum of the durations of all its records.
    """
    flush = torch.zeros(_FLUSH_ELEMENTS, device="cuda")

    def repeat() -> None:
        for _ in range(n_samples):
            _spin()
            work()
        for _ in range(n_samples):
            _spin()
            flush.sum()
            _spin()
            work()
        _spin()

    records = profiled(repeat)
    # The records between one separator and the next.
    marks = [index for index, record in enumerate(records) if is_spin(record)]
    sums_us = [sum(map(duration_us, records[a + 1 : b])) for a, b in pairwise(marks)]
    if len(sums_us) != 3 * n_samples:
        raise RuntimeError(f"{len(sums_us)} parts were recorded instead of {3 * n_samples}")
    # After the hot calls come the flush and the cold call in turns; the flushes are left out.
    hot_us, cold_us = sums_us[:n_samples], sums_us[n_samples + 1 :: 2]
    return {
        "hot_us": round(statistics.median(hot_us), 3),
        "cold_us": round(statistics.median(cold_us), 3),
    }


def _union_us(records: Sequence[ActivityRecord]) -> float:
    """Return the time during which the device was busy."""
    busy_ns = end_ns = 0
    for record in records:
        busy_ns += max(0, record.end_ns - max(end_ns, record.start_ns))
        end_ns = max(end_ns, record.end_ns)
    return busy_ns / 1e3


def _spin(cycles: int = _SPIN_CYCLES) -> None:
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call] # torch's is untyped


def _us(duration_s: float) -> float:
    return round(duration_s * _US_PER_S, 4)
