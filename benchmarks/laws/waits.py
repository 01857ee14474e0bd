"""The laws of waits: when they end, the order of the readings, and which calls wait."""

import time
from collections.abc import Callable
from functools import partial

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.laws.programs import Program
from benchmarks.laws.readings import Gpu, ProgramError, recorded, rest, run_step, session
from benchmarks.laws.statements import AWAITED, OPERATOR_FAMILIES
from benchmarks.laws.tables import device_us
from benchmarks.waits.ask import repaired_after_capture

_NS, _MS = 1e-9, 1e-3
_N_TIMES = 8
_SLEEP_S, _SLEEP_CYCLES = 10e-3, 20_000_000
_MAY_WAIT = (*OPERATOR_FAMILIES, "read", "copy", "data-dependent")


def a_wait_ends_with_the_work(program: Program, gpu: Gpu) -> str | None:
    """Compare the end of each wait with the last event of the streams that it waits for."""
    with session(gpu.new()) as programs:
        for _ in range(3):  # from the third run on gpulab may recognize the calls
            readings = programs.run(program)
            for step, reading in zip(program.steps, readings, strict=False):
                if step.text not in AWAITED:
                    continue
                work_end_s = max(reading.device_ms[i] for i in AWAITED[step.text]) * _MS
                end_s = reading.end_ns * _NS
                bound_s = max(reading.begin_ns * _NS, work_end_s)
                if gpu.exceeds(end_s, bound_s):
                    late_us = (end_s - bound_s) * 1e6
                    return f"{step.text!r} ends {late_us:.1f} us after the work that it waits for"
    return None


def readings_have_an_order(program: Program, gpu: Gpu) -> str | None:
    """Time each operator of a program alone: by launches, by events, and with a wait."""
    with session(gpu.new()) as programs:
        names = programs.names()
        for step in program.steps:
            run_step(step.text, names)
            if step.family in OPERATOR_FAMILIES:
                wrong_order = _order_of(partial(run_step, step.text, names), gpu)
                if wrong_order:
                    return f"{step.text!r}: {wrong_order}"
    return None


def _order_of(run: Callable[[], None], gpu: Gpu) -> str | None:
    for _ in range(2):  # with the run before, a warm one that gpulab may recognize
        _times(run, 1)
    launch_s, events_s, waited_s = _times(run, 1)
    repeated_s = _times(run, _N_TIMES)[1]
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
        run()
        torch.cuda.synchronize()
    kernels_s = device_us(profiler.events()) * 1e-6
    for shorter, shorter_s, longer, longer_s in (
        ("launching", launch_s, "the events", events_s),
        ("the events", events_s, "with a wait", waited_s),
        ("with a wait", waited_s, "launching or the events", max(launch_s, events_s)),
        (f"{_N_TIMES} times the kernels", _N_TIMES * kernels_s, "so many calls", repeated_s),
    ):
        if gpu.exceeds(shorter_s, longer_s):
            return f"{shorter} {shorter_s * 1e6:.1f} us, {longer} {longer_s * 1e6:.1f} us"
    return None


def _times(run: Callable[[], None], n: int) -> tuple[float, float, float]:
    """Return the times of ``n`` calls in seconds: of the launches, by events, and with a wait."""
    rest()
    begin = recorded()
    start_s = time.perf_counter()
    for _ in range(n):
        run()
    launched_s = time.perf_counter()
    end = recorded()
    torch.cuda.synchronize()
    end_s = time.perf_counter()
    return launched_s - start_s, begin.elapsed_time(end) * _MS, end_s - start_s


def who_waits_waits_everywhere(program: Program, gpu: Gpu) -> str | None:
    """Compare, for each call, whether it waits, is seen by the debug mode, and is refused."""
    with session(gpu.new()) as programs:
        names = programs.names()
        for step in program.steps:
            run_step(step.text, names)
            if step.family not in _MAY_WAIT:
                continue
            run = partial(run_step, step.text, names)
            # Twice with the run above: some programs hold one pinned block while they ask for the
            # next one, and a new block takes milliseconds.
            run()
            waits, is_seen = _waits(run), _is_seen(run)
            # On hardware later captures may fail after a refused one, so it is not asked there.
            is_asked = gpu.outlives_failed_captures or not waits
            answers = (waits, is_seen, _is_refused(run) if is_asked else waits)
            if len(set(answers)) > 1:
                words = ["yes" if answer else "no" for answer in answers]
                return (
                    f"{step.text!r}: does it wait behind a kernel? {words[0]}; does the debug "
                    f"mode see it? {words[1]}; is it refused in a capture? {words[2]}"
                )
    return None


def _waits(run: Callable[[], None]) -> bool:
    torch.cuda.synchronize()
    torch.cuda._sleep(_SLEEP_CYCLES)  # type: ignore[no-untyped-call] # torch's is untyped
    start_s = time.perf_counter()
    run()
    duration_s = time.perf_counter() - start_s
    torch.cuda.synchronize()
    return duration_s > _SLEEP_S / 2


def _is_seen(run: Callable[[], None]) -> bool:
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    except ProgramError as error:
        if "called a synchronizing CUDA operation" not in str(error):
            raise
        return True
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return False


def _is_refused(run: Callable[[], None]) -> bool:
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            run()
    # CUDA's own error, and PyTorch's for a copy from pageable memory.
    except (ProgramError, RuntimeError):
        repaired_after_capture()
        return True
    return False
