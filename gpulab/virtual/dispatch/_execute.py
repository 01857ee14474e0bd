"""Execute the plan of an operator call: allocate its results and launch its kernels."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from gpulab.core.torch_private import next_sequence_number
from gpulab.virtual._generators import (
    captured_seeds,
    generator_for,
    next_seed,
)
from gpulab.virtual.dispatch._copies import read_back
from gpulab.virtual.dispatch._deferred_values import DeferredValues
from gpulab.virtual.dispatch._dispatched_call import DispatchedCall
from gpulab.virtual.dispatch._effects import (
    ArgumentResult,
    Effect,
    NewResult,
    PlainResult,
    ViewResult,
)
from gpulab.virtual.dispatch._in_place_reshape import reshape
from gpulab.virtual.dispatch._moved_values import clear
from gpulab.virtual.dispatch._plans import ExecutionPlan
from gpulab.virtual.dispatch._value_limits import missing_by_size
from gpulab.virtual.operators import CallArguments, HostRead, Operator, When, libraries_used
from gpulab.virtual.simulator import (
    CacheAccess,
    Kind,
    Machine,
    ModelledKernel,
    SimulatedStream,
    StreamTask,
    active,
)
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import (
    MissingValues,
    Storage,
    VirtualTensor,
    device_accesses,
    reference,
    wrap,
)

# About how long it takes to simulate an operator with values.
_SIMULATED_S = 50e-6


def execute_plan(plan: ExecutionPlan, call: DispatchedCall) -> Any:
    """Allocate the results of a call, launch its kernels, and return the results."""
    machine, tensors, effects = active(), call.tensors, plan.effects
    with machine.host.uncharged() if call.operator.model.is_recurrent else nullcontext():
        machine.host.begin_operator(
            call.operator,
            next_sequence_number(),
            launch_ns=plan.launch_ns,
            takes_lists=call.operator.is_over_lists,
        )
    if call.operator.model.n_inside:
        machine.host.charge("operator inside another", call.operator.model.n_inside)
    # Before the reshapes: a tensor that grows gets new storage, and the reads are of the old one.
    missing = _missing(plan, tensors, machine)
    for change in effects.reshaped:
        reshape(tensors[change.index], change)
    # Before the launch, as on CUDA: an error for too little memory comes before any kernel.
    results = [_make_result(item, machine, call, missing) for item in effects.results]
    if plan.work is not None:
        _launch(machine, plan, plan.work, call, results, missing=missing)
    elif effects.effect is Effect.VIEW:
        machine.host.spend(machine.host.costs.view_ns)
    else:
        machine.host.spend(machine.host.costs.empty_ns)
    # No reference to a new tensor may stay in this frame; see _on_host().
    return results.pop() if effects.container is None else effects.container(results)


def reads_of(call: DispatchedCall) -> Sequence[HostRead]:
    """Return what PyTorch reads back on the host in this call."""
    arguments = CallArguments(call.operator.func, call.args, call.kwargs)
    return [read for read in call.operator.host_reads if read.condition(arguments)]


def execute_and_read(plan: ExecutionPlan, call: DispatchedCall, reads: Sequence[HostRead]) -> Any:
    """Execute a plan, and read back on the host what PyTorch reads before and after it."""
    arguments = CallArguments(call.operator.func, call.args, call.kwargs)
    for read in reads:
        if read.when is When.BEFORE:
            read_back(call.gpu, by_library=read.by_library)
            read.check(arguments)
    result = execute_plan(plan, call)
    for read in reads:
        if read.when is When.AFTER:
            read_back(call.gpu, by_library=read.by_library)
    return result


def _missing(
    plan: ExecutionPlan, inputs: list[VirtualTensor], machine: Machine
) -> MissingValues | None:
    """Return why the values of a call are not computed, or None if they are."""
    # A result computed from missing values has none either, and for the same reason.
    for i in plan.effects.reads:
        missing = inputs[i].storage_block.values.missing
        if missing is not None:
            return missing
    return None if plan.host_s <= machine.limits.budget_s else plan.too_slow


def _make_result(
    item: NewResult | ViewResult | ArgumentResult | PlainResult,
    machine: Machine,
    call: DispatchedCall,
    missing: MissingValues | None,
) -> Any:
    if isinstance(item, NewResult):
        key = item.layout
        if missing is None:
            missing = missing_by_size(machine, key)
        return wrap(key, Storage(machine, call.gpu, key.span_bytes, missing))
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
    missing: MissingValues | None,
) -> None:
    tensors = call.tensors
    n_simulated = 1 + len(work.before) if call.operator.model.is_recurrent else 1
    machine.host.estimated_real_s += n_simulated * _SIMULATED_S
    machine.host.estimated_real_s += plan.host_s if missing is None else 0.0
    read = [tensors[i] for i in plan.effects.reads]
    changed = [tensors[i] for i in plan.effects.writes]
    written = changed + [results[i] for i in plan.effects.new_results]
    for tensor in changed:
        if missing is None or not _is_flag(call, tensor):
            mark_written(machine, tensor, missing)
        elif not tensor.has_values:  # values are switched off, and the flag has none yet
            tensor.storage_block.set_missing(None)
            clear(reference(tensor))
    # Checked here and not in _load(), because most launches are on a machine that is warm.
    if machine.host.first_use:
        _load(machine, call.operator, work)
    accesses = [
        CacheAccess(tensor.storage_block.address, tensor.layout_key.size_bytes, is_write)
        for is_write, tensors_of_kind in ((False, read), (True, written))
        for tensor in tensors_of_kind
    ]
    # A call may launch several kernels. The last one leaves the values; the others only take time.
    stream = call.gpu.stream
    for kernel in work.before:
        machine.launch(kernel_task(call.operator, kernel, stream, accesses), kernel.launch_ns)
    task = kernel_task(call.operator, work, stream, accesses)
    # A kernel that writes nothing is an assertion (torch._assert_async), and must run.
    if missing is None and (not written or any([item.has_values for item in written])):  # noqa: C419 # a list is quicker here
        task.payload = DeferredValues(machine.values, call, results, changed, plan)
    if call.operator.is_random:
        # Each replay draws new numbers, from where the generator is at that time.
        is_captured = machine.capture is not None and machine.capture.includes(task)
        task.draw = _drawing(call, is_captured=is_captured)
    memory_accesses = device_accesses(read, written) if machine.lists_accesses else ()
    launch_ns = work.launch_ns if work.before else plan.launch_ns
    machine.launch(task, launch_ns, memory_accesses)


def _is_flag(call: DispatchedCall, tensor: VirtualTensor) -> bool:
    """Return whether a tensor is an argument that has values even if the others have none."""
    position = call.operator.model.flag_at
    return position is not None and tensor is call.args[position]


def kernel_task(
    operator: Operator, work: KernelWork, stream: SimulatedStream, accesses: Sequence[CacheAccess]
) -> StreamTask:
    """Return the task of one kernel of a call; ``accesses`` are those of the whole call."""
    demand = ModelledKernel(work, work.accesses_of(accesses))
    return StreamTask(Kind.KERNEL, stream, name=work.name or operator.name, demand=demand)


def _load(machine: Machine, operator: Operator, work: KernelWork) -> None:
    for part in libraries_used(operator, work):
        machine.host.load(part)
    # CUDA loads each kernel when it is first launched, and another type is another kernel.
    machine.host.load("kernel", (operator.func, work.arithmetic))


def _drawing(call: DispatchedCall, *, is_captured: bool) -> Callable[[], int]:
    """Return a function that draws the seed for each launch of the call."""
    generator = generator_for(call.generator, call.gpu.index)
    return captured_seeds(generator) if is_captured else partial(next_seed, generator)


def mark_written(
    machine: Machine, tensor: VirtualTensor, missing: MissingValues | None = None
) -> None:
    """Update whether a storage has values, before a kernel writes to ``tensor``.

    ``missing`` is why the written values are not computed, or None if they are.
    """
    storage = tensor.storage_block
    if missing is None:
        # A write to a part of a storage cannot give it values that the rest does not have.
        if tensor.layout_key.span_bytes < storage.values.size_bytes:
            return
        counted_bytes = storage.counted_bytes
        missing = missing_by_size(machine, tensor.layout_key, counted_bytes=counted_bytes)
    storage.set_missing(missing)
