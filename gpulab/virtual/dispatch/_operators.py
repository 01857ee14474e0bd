"""Look up the properties of a PyTorch operator that do not depend on its arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.core.torch_private import (
    arguments_of,
    deterministic_mode,
    is_only_warned,
    set_deterministic_mode,
)
from gpulab.virtual.dispatch._host_reads import HostRead, reads_in
from gpulab.virtual.dispatch._placement import TAKES_LENGTHS
from gpulab.virtual.kernels import (
    computable,
    is_composite,
    is_random,
    operator_name,
    tf32_switch,
)
from gpulab.virtual.simulator import SimulatedGpu
from gpulab.virtual.tensors import VirtualTensor

aten = torch.ops.aten

# These replace all values of their first argument, so they do not read it.
OVERWRITING = {"copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential"}
_OVER_LISTS = ("_foreach", "_fused_ad", "_fused_sgd")


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
    host_reads
        What PyTorch reads back on the host inside it, so that the host waits.
    out_names
        Names of the arguments that receive its results, such as ``("out",)``.
    tf32_switch
        Which of PyTorch's switches decides whether it may use TF32, or None.
    overwrites
        Whether it replaces all values of its first argument without reading them.
    changes_arguments
        Whether it writes to some of its arguments, and takes no lists of them.
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
    tf32_switch: str | None
    takes_lengths: bool
    host_reads: tuple[HostRead, ...]
    is_over_lists: bool
    out_names: tuple[str, ...]
    overwrites: bool
    changes_arguments: bool
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

# The kernels of the CPU raise or warn in the deterministic mode, too. For the values of a virtual
# tensor that was decided before (_nondeterministic.py).
_ALERTING_ON_HOST = {"put", "max_unpool2d", "max_unpool3d"}

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
            _computing(func, name),
            name,
            is_composite=is_composite(func),
            is_random=is_random(func),
            tf32_switch=tf32_switch(name),
            takes_lengths=name in TAKES_LENGTHS,
            host_reads=reads_in(func, name),
            is_over_lists=name.startswith(_OVER_LISTS),
            out_names=tuple(argument.name for argument in arguments_of(func) if argument.is_out),
            overwrites=name in OVERWRITING and arguments_of(func)[0].alias_info is not None,
            changes_arguments=_changes_arguments(func, name),
            n_inside=_N_INSIDE.get(name, 0),
            into=_into_result(func),
        )
    return found


def _computing(func: Any, name: str) -> Callable[..., Any]:
    """Return the function that computes an operator; it never refuses deterministic algorithms."""
    compute: Callable[..., Any] = computable(func)
    return without_alerts(compute) if name in _ALERTING_ON_HOST else compute


def without_alerts(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that switches deterministic algorithms off while it runs ``call``.

    Examples
    --------
    >>> import torch
    >>> without_alerts(torch.are_deterministic_algorithms_enabled)()
    False
    """

    def quiet(*args: Any, **kwargs: Any) -> Any:
        if not deterministic_mode():
            return call(*args, **kwargs)
        warns = is_only_warned()
        set_deterministic_mode(False, warn_only=False)  # torch's signature
        try:
            return call(*args, **kwargs)
        finally:
            set_deterministic_mode(True, warn_only=warns)  # as above

    return quiet


def _changes_arguments(func: Any, name: str) -> bool:
    written = [item.alias_info for item in arguments_of(func) if item.alias_info is not None]
    return any(item.is_write for item in written) and not name.startswith(_OVER_LISTS)


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
