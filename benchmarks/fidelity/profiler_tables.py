"""What ``torch.profiler`` shows of small programs: rows and events.

Names, call counts and nesting are the same on every GPU, so the virtual GPU must have them, too.
"""

from collections import Counter
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg
from torch.profiler import profile

from benchmarks.fidelity.profiler_programs import ProfiledProgram

_N_WARM = 3


def profiled(program: ProfiledProgram) -> dict[str, Any]:
    """Warm a program up, profile it, and return rows and events.

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
    averages = found.key_averages(group_by_input_shape=bool(found.record_shapes))
    return {"rows": [_row(row) for row in averages], "events": _events(found.events())}


def _row(row: FunctionEventAvg) -> dict[str, Any]:
    return {
        "name": row.key,
        "device": _device(row),
        "is_user_annotation": row.is_user_annotation,
        "calls": row.count,
        "self_device_us": round(row.self_device_time_total, 3),
    }


def _device(row: FunctionEvent | FunctionEventAvg) -> str:
    return "device" if row.device_type == DeviceType.CUDA else "host"


def _events(events: EventList) -> list[dict[str, Any]]:
    numbers = {id(event): number for number, event in enumerate(events)}
    return [
        {
            "name": event.name,
            "device": _device(event),
            "is_user_annotation": event.is_user_annotation,
            "parent": None if event.cpu_parent is None else numbers.get(id(event.cpu_parent)),
        }
        for event in events
    ]
