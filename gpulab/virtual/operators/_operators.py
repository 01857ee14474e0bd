"""Look up an operator: what PyTorch's schema says of one overload, and its model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gpulab.core.torch_private import (
    arguments_of,
    deterministic_mode,
    flash_attention_for_cpu,
    has_own_kernel,
    is_only_warned,
    overload_name,
    set_deterministic_mode,
)
from gpulab.virtual.operators._host_reads import SIZE, HostRead, When
from gpulab.virtual.operators._index_ranges import never_trusting
from gpulab.virtual.operators._model import OperatorModel
from gpulab.virtual.operators._models import model_of
from gpulab.virtual.operators._out_dtype import computable

_OVER_LISTS = ("_foreach", "_fused_ad", "_fused_sgd")


@dataclass(slots=True, eq=False)
class Operator:
    """An overload of an operator; compared and hashed by identity, which is fast.

    Attributes
    ----------
    func
        The overload, such as ``aten.add.Tensor``.
    name
        The name without namespace, overload and trailing underscore, such as ``"add"``.
    model
        How the virtual GPU models it.
    compute
        A function that computes it on the CPU: ``func`` itself, if the CPU has it.
    is_composite
        Whether PyTorch composes it of other operators, on every device.
    is_random
        Whether it draws random numbers.
    host_numbers
        Names of the arguments that may be a host tensor without dimensions.
    host_reads
        What PyTorch reads back on the host inside it, so that the host waits.
    is_over_lists
        Whether it takes lists of tensors.
    out_names
        Names of the arguments that receive its results, such as ``("out",)``.
    dim_name
        Name of the argument with the dimensions that it works along: ``"dim"``, ``"dims"``, None.
    out_dtype_at
        Position of the argument ``out_dtype`` of a matmul, or None.
    overwrites
        Whether it replaces all values of its first argument without reading them.
    changes_arguments
        Whether it writes to some of its arguments, and takes no lists of them.
    depends_on_state
        Whether its plan may depend on more than its arguments.
    may_fail
        Whether it finds some values wrong.
    into
        The overload that computes element by element into a given result, such as
        ``aten.add.out``, and the name of that argument; None for other operators.
    """

    func: Any
    name: str
    model: OperatorModel
    compute: Callable[..., Any]
    is_composite: bool
    is_random: bool
    host_numbers: frozenset[str]
    host_reads: tuple[HostRead, ...]
    is_over_lists: bool
    out_names: tuple[str, ...]
    dim_name: str | None
    out_dtype_at: int | None
    overwrites: bool
    changes_arguments: bool
    depends_on_state: bool
    may_fail: bool
    into: tuple[Any, str] | None


# By id, because hashing an OpOverload runs Python code of PyTorch. Each record refers to its
# operator, so the operator lives on and its id cannot be reused.
_known: dict[int, Operator] = {}


def operator_of(func: Any) -> Operator:
    """Return the record of an operator, which is made on its first call."""
    return _known.get(id(func)) or _known.setdefault(id(func), _made(func))


def _made(func: Any) -> Operator:
    name = operator_name(func)
    model = model_of(name)
    arguments = arguments_of(func)
    is_over_lists = name.startswith(_OVER_LISTS)
    names = [argument.name for argument in arguments]
    # Others have an argument of this name, too, such as _scaled_mm.
    is_wide = model.tf32 == "matmul" and "out_dtype" in names
    position = names.index("out_dtype") if is_wide else None
    written = [item.alias_info for item in arguments if item.alias_info is not None]
    changes_arguments = any(item.is_write for item in written) and not is_over_lists
    host_reads = _host_reads(func, model)
    return Operator(
        func,
        name,
        model,
        _computing(func, model, position),
        is_composite=has_own_kernel(func, "CompositeImplicitAutograd") and not model.is_fused,
        is_random=_is_random(func),
        host_numbers=_host_numbers(func, model),
        host_reads=host_reads,
        is_over_lists=is_over_lists,
        out_names=tuple(argument.name for argument in arguments if argument.is_out),
        dim_name=next((name for name in names if name in {"dim", "dims"}), None),
        out_dtype_at=position,
        overwrites=model.overwrites and arguments[0].alias_info is not None,
        changes_arguments=changes_arguments,
        depends_on_state=changes_arguments or model.takes_lengths or model.tf32 is not None,
        # After its kernels PyTorch reads whether a factorization has failed, and raises an error.
        may_fail=model.may_find_wrong_values
        or model.index_ranges is not None
        or any(read.when is When.AFTER for read in host_reads),
        into=_into_result(func),
    )


def _host_numbers(func: Any, model: OperatorModel) -> frozenset[str]:
    if model.host_numbers is not None:
        return frozenset(model.host_numbers)
    # Only the overload that returns a new tensor has the mark.
    plain = getattr(torch.ops.aten, operator_name(func), func.overloadpacket)
    overloads = (func, *(getattr(plain, name) for name in plain.overloads()))
    is_pointwise = any(torch.Tag.pointwise in overload.tags for overload in overloads)
    takes = is_pointwise or operator_name(func).startswith("_foreach")
    return frozenset(item.name for item in arguments_of(func) if takes and not item.is_out)


def operator_name(func: Any) -> str:
    """Return the name of an operator without overload and trailing underscore."""
    return str(func.overloadpacket.__name__).removesuffix("_")


def _computing(func: Any, model: OperatorModel, position: int | None) -> Callable[..., Any]:
    """Return the function that computes an operator; it never refuses deterministic algorithms."""
    if position is not None:
        return computable(func, position)
    if model.compute is not None and overload_name(func) == "default":
        return model.compute
    # Some kernels of the CPU raise or warn in the deterministic mode, too. For the values of a
    # virtual tensor that was decided before.
    compute = without_alerts(func) if model.nondeterministic is not None else func
    return never_trusting(operator_name(func), compute)


def without_alerts(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that switches deterministic algorithms off while it runs ``call``."""

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


def _is_random(func: Any) -> bool:
    # The CPU's attention operator has the tag, but accepts no dropout.
    is_tagged = torch.Tag.nondeterministic_seeded in func.tags
    return is_tagged and func.overloadpacket is not flash_attention_for_cpu


def _host_reads(func: Any, model: OperatorModel) -> tuple[HostRead, ...]:
    # ``index`` has the tag, too, but only an index by a mask depends on values.
    is_sized_by_values = torch.Tag.dynamic_output_shape in func.tags and not model.host_reads
    return (SIZE,) if is_sized_by_values else model.host_reads


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
