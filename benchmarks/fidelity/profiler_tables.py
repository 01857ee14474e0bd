"""Record what ``torch.profiler`` shows of small programs: every row, every event, and the trace.

Names, call counts and nesting are the same on every GPU, so the virtual GPU must have them, too.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from torch.profiler import profile

from benchmarks.fidelity.profiler_programs import PROGRAMS, ProfiledProgram

_N_WARM = 3


def tables(only: str = "") -> dict[str, Any]:
    """Return the profiler's answer for each program whose name contains ``only``."""
    return {name: _attempt(program) for name, program in PROGRAMS.items() if only in name}


def _attempt(program: ProfiledProgram) -> dict[str, Any]:
    try:
        return profiled(program)
    except Exception as error:  # noqa: BLE001 # the other programs still have answers
        return {"error": f"{type(error).__name__}: {error}"}


def profiled(program: ProfiledProgram) -> dict[str, Any]:
    """Warm a program up, profile it, and return rows, events and a summary of the trace.

    Examples
    --------
    >>> import gpulab
    >>> from benchmarks.fidelity.profiler_programs import PROGRAMS
    >>> with gpulab.virtual_gpu("H200"):
    ...     answer = profiled(PROGRAMS["regions"])
    >>> [row["calls"] for row in answer["rows"] if row["name"] == "outer"]
    [1, 1]
    """
    torch.manual_seed(0)
    work = program.make()
    for _ in range(_N_WARM):
        work()
    torch.cuda.synchronize()
    answers: list[dict[str, Any]] = []
    with profile(
        on_trace_ready=lambda found: answers.append(_answer(found)), **program.options
    ) as running:
        for _ in range(max(1, program.n_steps)):
            work()
            if program.n_steps:
                running.step()
    return answers[-1]


def nesting(answer: dict[str, Any]) -> dict[tuple[str, str], int]:
    """Return how often each event of the host is inside which other event.

    Ranges of the program on the device count as inside ``"(device)"``, events of the host without
    a parent as inside ``"(nothing)"``. Kernels, copies and memsets are left out: they depend on
    the GPU.

    Examples
    --------
    >>> import gpulab
    >>> from benchmarks.fidelity.profiler_programs import PROGRAMS
    >>> with gpulab.virtual_gpu("H200"):
    ...     found = nesting(profiled(PROGRAMS["regions"]))
    >>> found["aten::mm", "aten::matmul"], found["inner", "outer"], found["inner", "(device)"]
    (2, 2, 2)
    """
    counts: Counter[tuple[str, str]] = Counter()
    events = answer["events"]
    for event in events:
        if event["device"] == "host":
            parent = event["parent"]
            counts[event["name"], "(nothing)" if parent is None else events[parent]["name"]] += 1
        elif event["is_user_annotation"]:
            counts[event["name"], "(device)"] += 1
    return dict(counts)


def _answer(found: profile) -> dict[str, Any]:
    by_shape = bool(found.record_shapes)
    averages = found.key_averages(group_by_input_shape=by_shape)
    return {
        "rows": [_row(row, by_shape=by_shape) for row in averages],
        "events": _events(found.events()),
        "trace": _trace(found),
        "table_ends_with": averages.table(row_limit=-1).splitlines()[-3:],
    }


def _row(row: FunctionEventAvg, *, by_shape: bool) -> dict[str, Any]:
    values = {
        "name": row.key,
        "device": _device(row),
        "is_user_annotation": row.is_user_annotation,
        "calls": row.count,
        "self_cpu_us": round(row.self_cpu_time_total, 3),
        "cpu_us": round(row.cpu_time_total, 3),
        "self_device_us": round(row.self_device_time_total, 3),
        "device_us": round(row.device_time_total, 3),
        "device_bytes": row.device_memory_usage,
        "self_device_bytes": row.self_device_memory_usage,
        "flops": row.flops,
    }
    return {**values, "shapes": row.input_shapes} if by_shape else values


def _device(row: FunctionEvent | FunctionEventAvg) -> str:
    return "device" if row.device_type == DeviceType.CUDA else "host"


def _events(events: EventList) -> list[dict[str, Any]]:
    numbers = {id(event): number for number, event in enumerate(events)}
    threads: dict[int, int] = {}
    return [
        {
            "name": event.name,
            "device": _device(event),
            "is_user_annotation": event.is_user_annotation,
            "is_async": event.is_async,
            "thread": threads.setdefault(event.thread, len(threads)),
            "parent": None if event.cpu_parent is None else numbers.get(id(event.cpu_parent)),
            "kernels": [kernel.name for kernel in event.kernels],
            "scope": event.scope,
            "start_us": round(event.time_range.start, 3),
            "duration_us": round(event.time_range.elapsed_us(), 3),
        }
        for event in events
    ]


def _trace(found: profile) -> dict[str, Any]:
    """Return how many events of each kind the trace file has, with their names and arguments."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        found.export_chrome_trace(str(path))
        trace = json.loads(path.read_text("utf-8"))
    seen = trace["traceEvents"]
    kinds = Counter((event["ph"], event.get("cat", "")) for event in seen)
    examples = {event.get("cat", ""): event for event in seen if event["ph"] == "X"}
    return {
        "keys": sorted(trace),
        "counts": {" ".join(kind): n for kind, n in sorted(kinds.items())},
        "arguments": {kind: sorted(event.get("args", ())) for kind, event in examples.items()},
        "examples": examples,
    }
