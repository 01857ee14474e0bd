"""The law of the profiler's tables: their rows add up to what the device has done."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks.laws.programs import Program
from benchmarks.laws.readings import VIRTUAL, Gpu, run_step, session

_ROUNDING = 1e-6  # of a sum of times in microseconds
_ANNOTATION = "part of a program"


def tables_add_up(program: Program, gpu: Gpu) -> str | None:
    """Profile a program with an annotation around each step, and add up the rows of its table."""
    with session(gpu.new()) as programs:
        names = programs.names()
        activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        with profile(activities=activities, acc_events=True) as profiler:
            for step in program.steps:
                with record_function(_ANNOTATION):
                    run_step(step.text, names)
            torch.cuda.synchronize()
        rows: list[Any] = [*profiler.key_averages()]
        events: list[Any] = [*profiler.events()]
    busy_us = device_us(events)
    for row in rows:
        own_us = row.self_device_time_total
        if row.key == _ANNOTATION and row.device_type == DeviceType.CPU and own_us:
            return f"the annotation has {own_us} us of its own on the GPU"
    on_device_us = device_us(rows)
    if not math.isclose(on_device_us, busy_us, rel_tol=_ROUNDING):
        return f"the rows of kernels have {on_device_us} us, the GPU was busy for {busy_us} us"
    by_call_us = sum(
        row.self_device_time_total for row in rows if row.device_type == DeviceType.CPU
    )
    # On an H100, torch 2.11 counts the kernels of some programs in two rows of calls.
    if gpu is VIRTUAL and by_call_us > busy_us * (1 + _ROUNDING):
        return f"the rows of calls have {by_call_us} us, the GPU was busy for {busy_us} us"
    return None


def device_us(rows: Iterable[Any]) -> float:
    """Return the device's own time of rows or events, in microseconds."""
    return math.fsum(
        row.self_device_time_total
        for row in rows
        if row.device_type == DeviceType.CUDA and not row.is_user_annotation
    )
