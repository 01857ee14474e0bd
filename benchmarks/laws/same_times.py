"""The laws of equal times: values cost none, and the same program always takes as long."""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch

import gpulab
from benchmarks.laws.programs import Program, program_of
from benchmarks.laws.readings import (
    VIRTUAL,
    Gpu,
    ProgramError,
    Reading,
    Session,
    run_step,
    session,
)
from gpulab.virtual import VirtualGpu
from tests.support.injection import Injector, Tracer

# The first run loads kernels and fills the allocator's pool, the second is warm, and from the
# third on gpulab may recognize the calls.
_N_RUNS = 3
_HUNDREDTH = 100
_NO_VALUES: dict[str, Any] = {"max_value_elements": 0}
_LITTLE_BUDGET: dict[str, Any] = {"value_budget_s": 1e-6}


def values_cost_no_time(program: Program, gpu: Gpu) -> str | None:
    """Compare runs with values, without, and with a budget of a microsecond for each operator."""
    # After these the program would take another way without values, by design.
    program = program.without_value_reads()
    expected = runs(program, gpu)
    for what, option in (("without", _NO_VALUES), ("with a budget", _LITTLE_BUDGET)):
        changed = _first_difference(program, expected, runs(program, gpu, **option))
        if changed:
            return f"with values and {what}, {changed}"
    return None


def repetitions_take_as_long(program: Program, gpu: Gpu) -> str | None:
    """Compare the second run on a GPU with the third and the hundredth, which are warm like it."""
    with session(gpu.new()) as programs:
        repeated = [programs.run(program) for _ in range(_HUNDREDTH)]
    for n in (_N_RUNS, _HUNDREDTH):
        what = difference(program, repeated[1], repeated[n - 1])
        if what:
            return f"runs 2 and {n}: {what}"
    return None


def a_fresh_process_takes_as_long(program: Program, gpu: Gpu) -> str | None:
    """Compare a run in this process with the first run of a new one."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        there = process.submit(_runs_in_a_new_process, program).result()
    what = _first_difference(program, runs(program, gpu), there)
    return what and f"here and in a new process, {what}"


def _runs_in_a_new_process(program: Program) -> list[list[Reading]]:
    return runs(program, VIRTUAL)


def runs(program: Program, gpu: Gpu, **options: object) -> list[list[Reading]]:
    """Return the readings of the first runs of a program on a new GPU."""
    with session(gpu.new(**options)) as programs:
        return [programs.run(program) for _ in range(_N_RUNS)]


def _first_difference(
    program: Program, first: Sequence[list[Reading]], second: Sequence[list[Reading]]
) -> str | None:
    for n, (one, other) in enumerate(zip(first, second, strict=True), 1):
        what = difference(program, one, other)
        if what:
            return f"run {n}: {what}"
    return None


def difference(
    program: Program, first: Sequence[Reading], second: Sequence[Reading]
) -> str | None:
    """Return the first reading in which two runs differ; None if there is none."""
    texts = [*(step.text for step in program.steps), "the end"]
    for text, one, other in zip(texts, first, second, strict=True):
        for name in Reading._fields:
            a, b = getattr(one, name), getattr(other, name)
            if a != b:
                return f"{name} at {text!r} is {a} and {b}"
    return None


def what_came_before_changes_nothing(program: Program, gpu: Gpu) -> str | None:
    """Compare runs of a program before and after other programs, errors, interrupts and cells."""
    machine: Any = gpu.new()
    injector = Injector("interrupt")
    # The handler comes first, because gpulab wraps the handlers that it finds when it begins.
    with injector.listening(), session(machine) as programs:
        programs.run(program)
        # They keep some memory of the GPU, so that the allocator's pool is never empty again.
        _use_tools()
        expected = _run_with_empty_pool(programs, program)
        for what, disturb in _disturbances(program, programs, machine, injector):
            disturb()
            changed = difference(program, expected, _run_with_empty_pool(programs, program))
            if changed:
                return f"before and after {what}: {changed}"
    return None


def _run_with_empty_pool(programs: Session, program: Program) -> list[Reading]:
    programs.names()
    # The host is warm for the operators of the last twelve calls.
    x = torch.empty(1, device="cuda")
    for _ in range(12):
        x.view(1)
    del x
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch._C._host_emptyCache()  # of pinned memory; it has no public name in torch 2.11
    return programs.run(program)


def _disturbances(
    program: Program, programs: Session, machine: VirtualGpu, injector: Injector
) -> Iterator[tuple[str, Callable[[], object]]]:
    chance = random.Random(program.name)  # noqa: S311 # no secret
    other = program_of(chance.randrange(1 << 30))
    yield other.name, partial(programs.run, other)
    for target in (program, other):
        interrupt = partial(_interrupt, target, programs, machine, injector, chance)
        yield f"an interrupt of {target.name}", interrupt
    yield "errors", partial(_fail, programs)
    yield "another cell", partial(_next_cell, machine)
    yield "gpulab's tools", _use_tools


def _interrupt(
    program: Program,
    programs: Session,
    machine: VirtualGpu,
    injector: Injector,
    chance: random.Random,
) -> None:
    """Run a program, send Ctrl-C at a random call of a function, and begin the next cell."""
    count = Tracer()
    count.run(lambda: programs.run(program))
    tracer = Tracer(injector, at=chance.randrange(count.n))
    injector.is_done = False
    # One that strikes a finalizer would be printed.
    print_unraisable, sys.unraisablehook = sys.unraisablehook, lambda _error: None
    try:
        tracer.run(lambda: programs.run(program))
        injector.settle()
    except KeyboardInterrupt:
        # Whoever runs the benchmark may press Ctrl-C, too.
        if not injector.is_done:
            raise
    # A program that catches an interrupt may miss what it needs afterwards.
    except ProgramError:
        pass
    finally:
        sys.unraisablehook = print_unraisable
    _next_cell(machine)


def _fail(programs: Session) -> None:
    """Raise the errors that a program meets, at a call and at a later wait."""
    for text in (
        "x = torch.ones(3, device='cuda'); x @ torch.ones(4, device='cuda')",
        "torch.ones(3, device='cuda')[torch.tensor([7], device='cuda')]; torch.cuda.synchronize()",
        "torch.empty(1 << 44, device='cuda')",
        "with torch.cuda.graph(torch.cuda.CUDAGraph()):\n    torch.cuda.synchronize()",
    ):
        with suppress(ProgramError):
            run_step(text, programs.names())


def _next_cell(machine: VirtualGpu) -> None:
    """End a cell and begin another; PyTorch may have been interrupted inside a context of its own.

    That of a stream, of autocast or of no_grad stays entered then, also on hardware.
    """
    machine.__exit__(None, None, None)
    machine.__enter__()
    torch.cuda.set_stream(torch.cuda.default_stream())
    torch.set_autocast_enabled("cuda", False)  # noqa: FBT003 # torch's signature
    # Counting up returns the depth, and at a depth of 0 autocast has no casts of weights any more.
    for _ in range(torch.autocast_increment_nesting()):
        torch.autocast_decrement_nesting()
    torch.clear_autocast_cache()
    torch.set_grad_enabled(True)  # torch's signature


def _use_tools() -> None:
    x = torch.ones(1000, device="cuda")
    gpulab.measure(lambda: x * 2, n_samples=3, progress=False)
