"""Execute the plan of an operator call: allocate its results and launch its kernels."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpulab.torch_private import next_sequence_number
from gpulab.virtual._generators import generator_for, generator_in, next_seed
from gpulab.virtual.dispatch._copies import known_by_size
from gpulab.virtual.dispatch._deferred_values import DeferredValues, can_compute_values
from gpulab.virtual.dispatch._in_place_reshape import reshape
from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._plans import (
    ArgumentResult,
    Effect,
    ExecutionPlan,
    NewResult,
    PlainResult,
    ViewResult,
)
from gpulab.virtual.kernels import libraries_used
from gpulab.virtual.simulator import (
    CacheAccess,
    Kind,
    Machine,
    ModelledKernel,
    SimulatedGpu,
    StreamTask,
    active,
)
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import Storage, VirtualTensor, device_accesses, wrap


@dataclass(slots=True)
class DispatchedCall:
    """One call of an operator.

    Attributes
    ----------
    operator
        What is called.
    args, kwargs
        With what.
    tensors
        The virtual tensors among the arguments, in the order in which a plan numbers them.
    gpu
        Where it runs.
    """

    operator: Operator
    args: Any
    kwargs: Any
    tensors: list[VirtualTensor]
    gpu: SimulatedGpu


def execute_plan(plan: ExecutionPlan, call: DispatchedCall) -> Any:
    """Make the results of a call and launch its kernel."""
    machine, tensors = active(), call.tensors
    if machine.follow_backward is not None and machine.host.n_backward:
        machine.follow_backward()
    is_launch = plan.effect is Effect.KERNEL
    machine.host.begin_operator(
        call.operator,
        next_sequence_number(),
        launches=is_launch,
        n_listed=len(call.args[0]) if call.operator.is_over_lists else 0,
    )
    known = can_compute_values(plan, tensors, machine.limits)
    for change in plan.reshaped:
        reshape(tensors[change.index], change)
    results = [_make_result(item, machine, call, known=known) for item in plan.results]
    if plan.effect is Effect.VIEW:
        machine.host.spend(machine.host.costs.view_ns)
    elif plan.effect is Effect.ALLOCATION:
        machine.host.spend(machine.host.costs.empty_ns)
    elif plan.work is not None:
        _launch(machine, plan, plan.work, call, results, known=known)
    return results[0] if plan.container is None else plan.container(results)


def _make_result(
    item: NewResult | ViewResult | ArgumentResult | PlainResult,
    machine: Machine,
    call: DispatchedCall,
    *,
    known: bool,
) -> Any:
    if isinstance(item, NewResult):
        key = item.layout
        known = known and known_by_size(machine, key)
        return wrap(key, Storage(machine, call.gpu, key.span_bytes, known=known))
    if isinstance(item, ViewResult):
        first = call.tensors[0]
        return wrap(item.layout, first.storage_block, first.offset + item.offset, like=first)
    return item.value if isinstance(item, PlainResult) else call.tensors[item.index]


def _launch(  # noqa: PLR0913 # what a call and its plan consist of
    machine: Machine,
    plan: ExecutionPlan,
    work: KernelWork,
    call: DispatchedCall,
    results: list[Any],
    *,
    known: bool,
) -> None:
    tensors = call.tensors
    read = [tensors[i] for i in plan.reads]
    written = new_results = [results[i] for i in plan.new_results]
    if plan.writes:
        changed = [tensors[i] for i in plan.writes]
        for tensor in changed:
            mark_known(machine, tensor, known=known)
        written = changed + new_results
    # Looked at here, because a warm machine should not even ask.
    if machine.host.first_use:
        _load(machine, call.operator.func, work)
    accesses = [_access(tensor, is_write=False) for tensor in read]
    accesses += [_access(tensor, is_write=True) for tensor in written]
    # One call of PyTorch may launch several kernels; they come one after another in the stream.
    for step in work.before:
        _launch_step(machine, call, step, accesses)
    task = StreamTask(
        Kind.KERNEL,
        call.gpu.stream,
        name=work.name or call.operator.name,
        demand=ModelledKernel(work, work.accesses_of(accesses)),
    )
    if known and any(item.has_values for item in written):
        task.payload = DeferredValues(call.operator, call.args, call.kwargs, results, plan)
    if call.operator.is_random:
        task.draw = _drawing(call)
    # Only the race detector needs them, and they would cost every launch a few microseconds.
    memory_accesses = device_accesses(read, written) if machine.hazards is not None else ()
    machine.launch(task, work.launch_ns, memory_accesses)


def _launch_step(
    machine: Machine, call: DispatchedCall, work: KernelWork, accesses: Sequence[CacheAccess]
) -> None:
    """Launch a kernel that prepares for the last one of the call, which leaves the values."""
    demand = ModelledKernel(work, work.accesses_of(accesses))
    name = work.name or call.operator.name
    machine.launch(
        StreamTask(Kind.KERNEL, call.gpu.stream, name=name, demand=demand), work.launch_ns
    )


def _load(machine: Machine, func: Any, work: KernelWork) -> None:
    for part in libraries_used(func, work):
        machine.host.load(part)
    machine.host.load("kernel", (func, work.arithmetic))


def _drawing(call: DispatchedCall) -> Callable[[], int]:
    """Return what draws the seed of each launch."""
    given = generator_in(call.operator.func, call.args, call.kwargs)
    return partial(next_seed, generator_for(given, call.gpu.index))


def mark_known(machine: Machine, tensor: VirtualTensor, *, known: bool) -> None:
    """Note a change: a storage is known after it only if what was written is, and is small."""
    key = tensor.layout_key
    values = tensor.storage_block.values
    whole = key.span_bytes >= values.size_bytes
    if not known:
        values.known = False
    elif whole:
        values.known = known_by_size(machine, key)


def _access(tensor: VirtualTensor, *, is_write: bool) -> CacheAccess:
    return CacheAccess(tensor.storage_block.address, tensor.layout_key.size_bytes, is_write)
