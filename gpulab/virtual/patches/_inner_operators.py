"""What operators call inside on a CUDA GPU, for the profiler.

Many of PyTorch's operators call others: ``aten::t`` calls ``aten::transpose``. Those that are
written so for every device show it on meta tensors. What the kernels of CUDA call is in a table.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import (
    RecordedRange,
    call_inside,
    has_own_kernel,
    is_written_with_operators,
    record_ranges,
)
from gpulab.virtual.tensors import VirtualTensor

_EMPTY, _STRIDED = ("aten::empty",), ("aten::empty_strided",)
_ITSELF = ()
# What CUDA's kernels call besides launching, seen in profiles of an H100 with torch 2.11. Each
# tuple is a chain, in which each operator calls the next; an empty one is a launch by the
# operator itself.
_INSIDE: dict[str, tuple[tuple[str, ...], ...]] = {
    "aten::cumsum": (("aten::to",), _ITSELF),
    "aten::empty_like": (_STRIDED,),
    "aten::index_select": (_EMPTY, ("aten::resize_",), _ITSELF),
    "aten::native_layer_norm": (*(3 * (_EMPTY,)), *(2 * (("aten::view",),)), _ITSELF),
    "aten::native_layer_norm_backward": (*(3 * (_EMPTY,)), _ITSELF),
    "aten::nll_loss_backward": (("aten::zero_", "aten::fill_"), _ITSELF),
    "aten::nll_loss_forward": (("aten::resize_",), _ITSELF),
    "aten::pow": (("aten::result_type",), ("aten::to",), _ITSELF),
    "aten::relu": (("aten::clamp_min",),),
    "aten::relu_": (("aten::clamp_min_",),),
    "aten::where": (_EMPTY, ("aten::resize_",), _ITSELF),
    "aten::zero_": (("aten::fill_",),),
}
# A reduction sees its result without the dimensions that it does not keep.
_REDUCTIONS = frozenset(
    f"aten::{name}"
    for name in ("all", "amax", "amin", "any", "argmax", "argmin", "mean", "prod", "sum")
)
# These launch nothing.
_WITHOUT_LAUNCH = frozenset(
    f"aten::{name}"
    for name in (
        *("_reshape_alias", "_unsafe_view", "alias", "as_strided", "detach", "diagonal", "empty"),
        *("empty_like", "empty_strided", "expand", "new_empty", "new_empty_strided", "permute"),
        *("reshape", "resize_", "result_type", "select", "set_", "slice", "split", "squeeze", "t"),
        *("to", "transpose", "unfold", "unsqueeze", "view"),
    )
)


def chains_inside(name: str, outer: str) -> tuple[tuple[str, ...], ...]:
    """Return what CUDA's kernel of an operator calls, as chains in which each calls the next.

    An empty chain stands for a launch by the operator itself.

    ``outer`` is the operator that calls it.
    """
    # A clone asks for another memory format, others keep that of the tensor.
    if name == "aten::empty_like" and outer == "aten::clone":
        return (_EMPTY,)
    return _INSIDE.get(name, ())


def may_launch(name: str) -> bool:
    """Return whether an operator may launch a kernel or a copy."""
    return name not in _WITHOUT_LAUNCH


def record_inside(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Let PyTorch's profiler record which operators an operator calls on CUDA.

    It records nothing else meanwhile, and records nothing afterwards.
    """
    name = func.name().partition(".")[0]
    if name.startswith("aten::_foreach_"):
        # In torch._foreach_pow(2.0, exponents) a number comes first.
        tensors = next(arg for arg in args if isinstance(arg, (list, tuple)))
        if isinstance(tensors[0], VirtualTensor):
            # CUDA has kernels for lists, which write into the list or into new tensors.
            _record((() if name.endswith("_") else tensors), "aten::empty_strided")
            return
    if name in _REDUCTIONS:
        keeps = next((each for each in args[2:3] if isinstance(each, bool)), False)
        _record([] if kwargs.get("keepdim", keeps) else [None], "aten::as_strided")
        return
    if name in _INSIDE or not is_written_with_operators(func) or has_own_kernel(func, "CPU"):
        return
    stand_ins, options = _on_meta(args), _on_meta(kwargs)
    options.pop("pin_memory", None)
    record_ranges(True)  # noqa: FBT003 # as above
    try:
        call_inside(func, stand_ins, options)
    except (RuntimeError, NotImplementedError, IndexError, TypeError, ValueError):
        pass  # the operator raises the same error now, or meta tensors cannot show its parts
    finally:
        record_ranges(False)  # noqa: FBT003 # C++ has no names


def _record(items: Sequence[object], name: str) -> None:
    """Let PyTorch's profiler record an operator for each item."""
    record_ranges(True)  # noqa: FBT003 # as above
    for _ in items:
        with RecordedRange(name):
            pass
    record_ranges(False)  # noqa: FBT003 # as above


def _on_meta(value: Any) -> Any:
    """Return arguments with meta tensors in place of tensors, and without generators."""
    match value:
        case torch.Tensor():
            return torch.empty_strided(
                value.shape, value.stride(), dtype=value.dtype, device="meta"
            )
        case list() | tuple():
            return type(value)([_on_meta(each) for each in value])
        case dict():
            return {name: _on_meta(each) for name, each in value.items()}
        case torch.device():
            return torch.device("meta")
        case torch.Generator():
            return None
    return value


@cache
def is_shown_inside(name: str) -> bool:
    """Return whether the parts of an operator with this name are those of CUDA's kernel."""
    namespace, _, name = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    overloads = [] if packet is None else [getattr(packet, each) for each in packet.overloads()]
    return any(
        is_written_with_operators(each) and not has_own_kernel(each, "Meta") for each in overloads
    )
