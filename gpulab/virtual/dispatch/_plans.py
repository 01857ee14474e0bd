"""Plan what an operator does to shapes and memory, once for each kind of call.

The key of a plan is the operator, the layouts of its tensors and its other arguments. To make a
plan, the operator runs on meta tensors, which takes 0.1 to 0.6 ms; a lookup takes a few µs.
"""

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gpulab.core.torch_private import allows_tf32
from gpulab.virtual.dispatch._dry_run import dry_run, overlaps
from gpulab.virtual.dispatch._effects import CallEffects, Effect, NewResult, effects_of
from gpulab.virtual.dispatch._meta_execution import execute_on_meta
from gpulab.virtual.dispatch._placement import named_gpu, refuse_far_apart
from gpulab.virtual.dispatch._value_limits import host_s, too_slow
from gpulab.virtual.operators import Operator, lower
from gpulab.virtual.simulator import SimulatedGpu, active
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import MissingValues, VirtualTensor

# A limit for programs whose shapes never repeat, because their plans would fill the memory.
_N_PLANS_KEPT = 20_000
# The numbers at which operators begin to refuse a float: 0, 1, and the largest ones of types. 0
# and 1 themselves are apart from the numbers on both sides.
_NOTED = (
    *(-torch.finfo(torch.float32).max, -torch.finfo(torch.float16).max, 0.0, math.ulp(0.0)),
    *(1.0, math.nextafter(1.0, 2.0), torch.finfo(torch.float16).max),
    *(torch.finfo(torch.float32).max, math.inf),
)


class CallKey:
    """Builds the key of a call, and collects its tensors and the values that it leaves out."""

    __slots__ = ("_last", "has_host_numbers", "host_tensors", "tensors", "unplanned")

    def __init__(self, tensors: list[VirtualTensor]) -> None:
        self._last = -math.inf
        self.tensors = tensors
        self.host_tensors: list[torch.Tensor] = []
        self.has_host_numbers = False
        self.unplanned: list[object] = []

    def of(self, value: Any) -> Hashable:
        """Return the key of an argument, which may be a list."""
        kind = type(value)
        if kind is VirtualTensor:
            self.tensors.append(value)
            key: Hashable = value.layout_key
            return key
        if kind is float:
            # Not the value: an optimizer's step size changes, and each would need a plan. But
            # some operators refuse a negative number, a probability above 1, or two numbers in
            # the wrong order.
            self.unplanned.append(value)
            is_ascending, self._last = value >= self._last, value
            return bisect_right(_NOTED, value) if is_ascending else ~bisect_right(_NOTED, value)
        if kind is list or kind is tuple:
            # From a list, which is faster than from a generator.
            return tuple([self.of(item) for item in value])
        if isinstance(value, torch.Tensor):
            if isinstance(value, VirtualTensor):  # a tensor without sizes has a class of its own
                self.tensors.append(value)
                return value.layout_key
            return self._of_host_tensor(value)
        if kind is complex:
            self.unplanned.append(value)  # a plan may have been made for -0j, which equals 0j
        # With the type, because 1 and True are equal and would share a plan.
        return (kind, value)

    def _of_host_tensor(self, value: torch.Tensor) -> Hashable:
        self.unplanned.append(value)
        if is_lazy(value):
            return str(type(value))
        if value.dim() or value.is_meta:
            self.host_tensors.append(value)
        else:
            self.has_host_numbers = True
        # A nested tensor has no shape, so the name of its class stands for it.
        return (value.dtype, str(type(value)) if value.is_nested else tuple(value.shape))

    def of_state(self, operator: Operator) -> Iterator[Hashable]:
        """Yield what else decides the plan of a call, beside the operator and its arguments."""
        # A program may switch TF32 between two calls, and a plan contains the kernel's arithmetic.
        if operator.model.tf32 is not None:
            yield allows_tf32(operator.model.tf32)
        # The lengths of sequences decide the shapes, so their values are part of the key.
        if operator.model.takes_lengths:
            yield from (str(item.tolist()) for item in self.host_tensors)
        # A call that writes to memory which it also reads has a plan, or an error, of its own.
        if operator.changes_arguments and len(self.tensors) > 1:
            yield from overlaps(self.tensors, is_out=bool(operator.out_names))

    def gpu(
        self,
        device: torch.device | None,
        func: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> SimulatedGpu:
        """Return the GPU that the call runs on: the one that has all its tensors.

        Without tensors it is the GPU named by ``device``, or else the current one.

        Raises
        ------
        RuntimeError
            If the tensors are on several GPUs, with PyTorch's message.
        VirtualGpuError
            If a tensor belongs to another virtual machine.
        """
        tensors = self.tensors
        if not tensors or (device is not None and device.type == "cuda"):
            return named_gpu(device)
        first = tensors[0].storage_block
        gpu = first.gpu
        for tensor in tensors:
            if tensor.storage_block.gpu is not gpu:
                refuse_far_apart(tensors, func, args, kwargs)
        if first.machine is not active():
            refuse_far_apart(tensors, func, args, kwargs)
        return gpu

    def of_mapping(self, kwargs: dict[str, Any]) -> Hashable:
        """Return the key of the arguments given by name."""
        return tuple((name, self.of(value)) for name, value in kwargs.items())


@dataclass(frozen=True, slots=True, eq=False)
class ExecutionPlan:
    """How to run one kind of call; compared by identity, as calls with other arguments differ."""

    effects: CallEffects
    work: KernelWork | None  # None if no kernel is launched
    launch_ns: int  # host time of all launches
    is_complex: bool  # whether an argument is complex
    is_wider: bool  # whether the host computes the values with wider types
    host_s: float  # estimated time that the host takes to compute the values
    too_slow: MissingValues  # the reason for missing values if that is over the limit


_plans: dict[Hashable, ExecutionPlan] = {}


def plan_for(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[VirtualTensor],
    key: Hashable,
) -> ExecutionPlan:
    """Return the plan stored under ``key``, or make and store it."""
    plan = _plans.get(key)
    if plan is None:
        # All plans are dropped at once: tracking which were used last would slow down each call
        # more than it saves.
        if len(_plans) >= _N_PLANS_KEPT:
            _plans.clear()
        # A real GPU makes no plans, so what runs here to make one takes none of the host's time.
        with active().host.uncharged():
            plan = _plans[key] = _make_plan(operator, args, kwargs, tensors)
    return plan


def _make_plan(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tensors: list[VirtualTensor],
) -> ExecutionPlan:
    for check in operator.model.checks:
        check(*args, **kwargs)
    execution = execute_on_meta(operator, args, kwargs)
    effects = effects_of(operator, args, kwargs, tensors, execution)
    # As after the call: the kernel writes an ``out=`` that was resized in its new layout.
    layout_after = {item.index: item.layout for item in effects.reshaped}
    layouts = (
        [tensors[i].layout_key for i in effects.reads],
        [layout_after.get(i, tensors[i].layout_key) for i in effects.writes]
        + [item.layout for item in effects.results if isinstance(item, NewResult)],
    )
    is_kernel = effects.effect is Effect.KERNEL
    is_wider = is_kernel and dry_run(
        operator, args, kwargs, tensors, sum(each.n_elements for each in layouts[1])
    )
    work, launch_ns, duration_s = None, 0, 0.0
    # PyTorch launches no kernel for results without elements.
    if is_kernel and (not layouts[1] or any(each.n_elements for each in layouts[1])):
        work = lower(operator, execution.args, execution.kwargs, execution.out, layouts)
        launch_ns = sum(kernel.launch_ns for kernel in (*work.before, work))
        # The limit is for one operator, and PyTorch runs such a layer as many.
        counted = replace(work, flops=0, before=()) if operator.model.is_recurrent else work
        duration_s = host_s(counted, (*layouts[0], *layouts[1]), is_random=operator.is_random)
    return ExecutionPlan(
        effects,
        work,
        launch_ns,
        any(item.layout_key.dtype.is_complex for item in tensors),
        is_wider,
        duration_s,
        too_slow(str(operator.func), duration_s),
    )
