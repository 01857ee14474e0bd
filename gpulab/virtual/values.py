"""Values computed late: a kernel's result appears when the simulated kernel ends, not before.

So a program that reads too early reads the old values, as it does on hardware.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.virtual.kernels import is_random
from gpulab.virtual.machine import active
from gpulab.virtual.plans import Plan
from gpulab.virtual.private import disable_dispatch
from gpulab.virtual.storage import Layout, Values
from gpulab.virtual.tensor import VirtualTensor

_CPU = torch.device("cpu")
_HALVES = (torch.float16, torch.bfloat16)


@dataclass(frozen=True, slots=True)
class Reference:
    """Where a tensor's values are, without keeping the tensor and its memory alive."""

    values: Values
    layout: Layout
    offset: int

    def view(self) -> torch.Tensor:
        """Return the values as a CPU tensor over the same bytes."""
        return self.values.view(self.layout, self.offset)


def reference(tensor: VirtualTensor) -> Reference:
    """Return the place of ``tensor``'s values."""
    return Reference(tensor.storage_block.values, tensor.layout_key, tensor.offset)


def affords(plan: Plan, inputs: list[VirtualTensor]) -> bool:
    """Tell whether the values of a call will be computed: all inputs known, and cheap enough."""
    flops = plan.work.flops if plan.work is not None else 0
    known = all(inputs[i].has_values for i in plan.reads)
    return known and flops <= active().limits.max_flops


def late(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    results: list[Any],
    is_new: list[bool],
) -> Callable[[], None]:
    """Return the function that computes the values of a call when its kernel ends."""
    late_args = _to_references(args)
    late_kwargs = {name: _to_references(arg) for name, arg in kwargs.items()}
    late_kwargs.pop("pin_memory", None)
    if "device" in late_kwargs:
        late_kwargs["device"] = _CPU
    targets = [
        reference(item) if new and item.has_values else None
        for item, new in zip(results, is_new, strict=True)
    ]
    seed = active().next_random() if is_random(func) else None

    def compute() -> None:
        with _seeded(seed):
            out = _call(func, _to_views(late_args), _to_views(late_kwargs))
        outs = out if isinstance(out, (list, tuple)) else [out]
        for target, value in zip(targets, outs, strict=False):
            if target is not None and value is not None:
                target.view().copy_(value)

    return unseen(compute)


def unseen(payload: Callable[[], None]) -> Callable[[], None]:
    """Keep a payload's own tensor operations from the dispatcher: they are no one's work."""

    def run() -> None:
        guard = disable_dispatch()
        try:
            payload()
        finally:
            del guard

    return run


@contextmanager
def _seeded(seed: int | None) -> Iterator[None]:
    """Draw from the device's random numbers and leave the host's as they are."""
    if seed is None:
        yield
        return
    before = torch.get_rng_state()
    torch.default_generator.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _call(func: Any, args: Any, kwargs: Any) -> Any:
    """Call the operator; products of half precision in float32, which CPUs do 100 times faster."""
    name = func.overloadpacket.__name__
    if name in {"mm", "bmm", "addmm", "baddbmm", "convolution"}:
        args = [_widen(arg) for arg in args]
    return func(*args, **kwargs)


def _widen(arg: Any) -> Any:
    return arg.float() if isinstance(arg, torch.Tensor) and arg.dtype in _HALVES else arg


def _to_references(arg: Any) -> Any:
    if isinstance(arg, VirtualTensor):
        return reference(arg)
    if isinstance(arg, (list, tuple)):
        return [_to_references(item) for item in arg]
    return arg


def _to_views(arg: Any) -> Any:
    if isinstance(arg, Reference):
        return arg.view()
    if isinstance(arg, list):
        return [_to_views(item) for item in arg]
    if isinstance(arg, dict):
        return {name: _to_views(item) for name, item in arg.items()}
    return arg
