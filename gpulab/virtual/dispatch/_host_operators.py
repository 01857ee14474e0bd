"""Run an operator on host tensors, at a modelled cost of the host; the device goes on."""

from contextlib import nullcontext
from typing import Any

import torch

from gpulab.core.torch_private import results_of
from gpulab.happens_before.tensor_accesses import check_host_operation
from gpulab.virtual.dispatch._copies import pin
from gpulab.virtual.dispatch._deferred_values import conjugating_lazily, has_complex
from gpulab.virtual.operators import operator_of
from gpulab.virtual.simulator import active


def on_host(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator on host tensors, at a modelled cost of the host; the device goes on."""
    machine = active()
    # PyTorch would ask a driver for pinned memory, and there may be none: only a mark is set.
    pinned = kwargs.pop("pin_memory", False) if "pin_memory" in kwargs else False
    out: list[Any] = []
    size_bytes = sum(_size_bytes(arg) for arg in args if isinstance(arg, torch.Tensor))
    is_allocation = operator_of(func).model.allocates
    has_accesses = not is_allocation and not all(_is_view_result(r) for r in results_of(func))
    machine.host.charge("operator of the host")
    # A view or an allocation touches no bytes, so only the fixed cost of an operator counts.
    with conjugating_lazily() if has_complex(args) else nullcontext():
        machine.host.run(
            lambda: out.append(func(*args, **kwargs)), size_bytes=size_bytes if has_accesses else 0
        )
    if has_accesses and machine.hazards is not None:
        check_host_operation(machine.hazards, func, args, kwargs)
    if pinned:
        pin(out[0])
    # No reference to a new tensor may stay in this frame, which an error that was caught somewhere
    # may keep alive: PyTorch would return a copy made by another operator, which takes time.
    return out.pop()


def _size_bytes(tensor: torch.Tensor) -> int:
    """Return the size of a host tensor in bytes; 0 for a sparse or nested one."""
    is_dense = tensor.layout is torch.strided and not tensor.is_nested
    return tensor.nbytes if is_dense else 0


def _is_view_result(result: Any) -> bool:
    return result.alias_info is not None and not result.alias_info.is_write
