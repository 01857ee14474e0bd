"""Look up what is known of an operator of PyTorch, whatever its arguments."""

from dataclasses import dataclass
from typing import Any

import torch

from gpulab.torch_private import arguments_of
from gpulab.virtual.dispatch._placement import TAKES_LENGTHS
from gpulab.virtual.kernels import MATMULS, is_composite, is_random, operator_name
from gpulab.virtual.simulator import SimulatedGpu
from gpulab.virtual.tensors import VirtualTensor

aten = torch.ops.aten

# These replace what they write to, so that the old values do not matter.
OVERWRITING = {"copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential"}
# The shape of their result depends on values, so PyTorch itself waits for the device in them;
# most are marked so by PyTorch.
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
    """An operator and its properties; compared and hashed by identity, which is quick.

    Attributes
    ----------
    func
        The overload, such as ``aten.add.Tensor``.
    name
        Its bare name, such as ``"add"``.
    out_names
        The names of the arguments that it writes its results to, such as ``("out",)``.
    overwrites
        Whether it replaces its first argument, whatever that held.
    """

    func: Any
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


# By identity, because PyTorch hashes an operator in Python; each is kept here with its record, so
# that no other can have its identity.
_known: dict[int, Operator] = {}


def operator_of(func: Any) -> Operator:
    """Return what is known of an operator."""
    found = _known.get(id(func))
    if found is None:
        name = operator_name(func)
        found = _known[id(func)] = Operator(
            func,
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
        )
    return found


def _has_data_dependent_shape(func: Any, name: str) -> bool:
    is_marked = torch.Tag.dynamic_output_shape in func.tags and func is not aten.index.Tensor
    return is_marked or name in _DATA_DEPENDENT
