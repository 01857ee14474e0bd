"""Look up the properties of a PyTorch operator that do not depend on its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.torch_private import arguments_of
from gpulab.virtual.dispatch._placement import TAKES_LENGTHS
from gpulab.virtual.kernels import MATMULS, computable, is_composite, is_random, operator_name
from gpulab.virtual.simulator import SimulatedGpu
from gpulab.virtual.tensors import VirtualTensor

aten = torch.ops.aten

# These replace all values of their first argument, so they do not read it.
OVERWRITING = {"copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential"}
# The shape of their result depends on values, or the host needs the values, so PyTorch itself
# waits for the device in them. PyTorch marks most others with Tag.dynamic_output_shape.
_DATA_DEPENDENT = {
    "_unique",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
    "bincount",
    "equal",
    "histc",
}


@dataclass(slots=True, eq=False)
class Operator:
    """An operator and its properties; compared and hashed by identity, which is fast.

    Attributes
    ----------
    func
        The overload, such as ``aten.add.Tensor``.
    compute
        A function that computes it on the CPU: ``func`` itself, if the CPU has it.
    name
        The name without namespace and overload, such as ``"add"``.
    out_names
        Names of the arguments that receive its results, such as ``("out",)``.
    overwrites
        Whether it replaces all values of its first argument without reading them.
    n_inside
        How many operators PyTorch calls inside it, which are not dispatched one by one.
    into
        The overload that computes element by element into a given result, such as
        ``aten.add.out``, and the name of that argument; None for other operators.
    """

    func: Any
    compute: Callable[..., Any]
    name: str
    is_composite: bool
    is_random: bool
    is_matmul: bool
    takes_lengths: bool
    has_data_dependent_shape: bool
    is_index: bool
    is_over_lists: bool
    out_names: tuple[str, ...]
    overwrites: bool
    n_inside: int
    into: tuple[Any, str] | None


@dataclass(slots=True)
class DispatchedCall:
    """One call of an operator.

    Attributes
    ----------
    operator
        The operator.
    args, kwargs
        Its arguments.
    tensors
        The virtual tensors among the arguments; the indices in a plan refer to this list.
    unplanned
        The arguments whose values may differ under one plan: floats and host tensors.
    gpu
        The GPU that it runs on.
    """

    operator: Operator
    args: Any
    kwargs: Any
    tensors: list[VirtualTensor]
    unplanned: list[object]
    gpu: SimulatedGpu


# Operators that are functions of other operators in PyTorch's C++ code, and the number of these.
_N_INSIDE = {
    "_native_multi_head_attention": 7,
    "_transformer_encoder_layer_fwd": 13,
    "_euclidean_dist": 10,
    "multinomial": 10,
}

# By id, because hashing an OpOverload runs Python code of PyTorch. Each record refers to its
# operator, so the operator lives on and its id cannot be reused.
_known: dict[int, Operator] = {}


def operator_of(func: Any) -> Operator:
    """Return the properties of an operator, which are found on its first call."""
    found = _known.get(id(func))
    if found is None:
        name = operator_name(func)
        found = _known[id(func)] = Operator(
            func,
            computable(func),
            name,
            is_composite=is_composite(func),
            is_random=is_random(func),
            is_matmul=name in MATMULS,
            takes_lengths=name in TAKES_LENGTHS,
            has_data_dependent_shape=_has_data_dependent_shape(func, name),
            is_index=func is aten.index.Tensor,
            is_over_lists=name.startswith(("_foreach", "_fused_ad", "_fused_sgd")),
            out_names=tuple(argument.name for argument in arguments_of(func) if argument.is_out),
            overwrites=name in OVERWRITING and arguments_of(func)[0].alias_info is not None,
            n_inside=_N_INSIDE.get(name, 0),
            into=_into_result(func),
        )
    return found


def _into_result(func: Any) -> tuple[Any, str] | None:
    """Return the overload of a pointwise operator that writes to ``out=``, and its last name."""
    arguments = arguments_of(func)
    if torch.Tag.pointwise not in func.tags or any(item.alias_info for item in arguments):
        return None
    packet = func.overloadpacket
    for other in (getattr(packet, name) for name in packet.overloads()):
        *same, out = arguments_of(other)
        if out.is_out and [_named(item) for item in same] == [_named(item) for item in arguments]:
            return other, out.name
    return None


def _named(argument: Any) -> tuple[str, str]:
    return argument.name, str(argument.type)


def _has_data_dependent_shape(func: Any, name: str) -> bool:
    # ``index`` has the tag, too, but only an index by a mask depends on values.
    is_marked = torch.Tag.dynamic_output_shape in func.tags and func is not aten.index.Tensor
    return is_marked or name in _DATA_DEPENDENT
