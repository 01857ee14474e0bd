"""Look up an operator: what PyTorch's schema says of one overload, and its model."""

from collections.abc import Callable
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
from gpulab.virtual.operators._argument_checks import HALVES
from gpulab.virtual.operators._host_reads import SIZE, HostRead, When
from gpulab.virtual.operators._index_ranges import never_trusting
from gpulab.virtual.operators._model import OperatorModel
from gpulab.virtual.operators._models import model_of

_OVER_LISTS = ("_foreach", "_fused_ad", "_fused_sgd")


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

    __slots__ = (
        *("changes_arguments", "compute", "depends_on_state", "dim_name", "func", "host_numbers"),
        *("host_reads", "into", "is_composite", "is_over_lists", "is_random", "may_fail", "model"),
        *("name", "out_dtype_at", "out_names", "overwrites"),
    )

    def __init__(self, func: Any) -> None:
        arguments = arguments_of(func)
        names = [argument.name for argument in arguments]
        self.func = func
        self.name = operator_name(func)
        self.model = model = model_of(self.name)
        # Others have an argument of this name, too, such as _scaled_mm.
        is_wide = model.tf32 == "matmul" and "out_dtype" in names
        self.out_dtype_at = names.index("out_dtype") if is_wide else None
        self.compute = _computing(func, model, self.out_dtype_at)
        is_composite = has_own_kernel(func, "CompositeImplicitAutograd")
        self.is_composite = is_composite and not model.is_fused
        self.is_random = _is_random(func)
        self.host_numbers = _host_numbers(func, model)
        self.host_reads = _host_reads(func, model)
        self.is_over_lists = self.name.startswith(_OVER_LISTS)
        self.out_names = tuple(argument.name for argument in arguments if argument.is_out)
        self.dim_name = next((name for name in names if name in {"dim", "dims"}), None)
        self.overwrites = model.overwrites and arguments[0].alias_info is not None
        written = [item.alias_info for item in arguments if item.alias_info is not None]
        self.changes_arguments = not self.is_over_lists and any(item.is_write for item in written)
        takes_state = model.takes_lengths or model.tf32 is not None
        self.depends_on_state = self.changes_arguments or takes_state
        # After its kernels PyTorch reads whether a factorization has failed, and raises an error.
        has_status = any(read.when is When.AFTER for read in self.host_reads)
        checks_values = model.may_find_wrong_values or model.index_ranges is not None
        self.may_fail = checks_values or has_status
        self.into = _into_result(func)


# By id, because hashing an OpOverload runs Python code of PyTorch. Each record refers to its
# operator, so the operator lives on and its id cannot be reused.
_known: dict[int, Operator] = {}


def operator_of(func: Any) -> Operator:
    """Return the record of an operator, which is made on its first call."""
    return _known.get(id(func)) or _known.setdefault(id(func), Operator(func))


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
        return _with_out_dtype(func, position)
    if model.compute is not None and overload_name(func) == "default":
        return model.compute
    # Some kernels of the CPU raise or warn in the deterministic mode, too. For the values of a
    # virtual tensor that was decided before.
    compute = without_alerts(func) if model.nondeterministic is not None else func
    return never_trusting(operator_name(func), compute)


def _with_out_dtype(func: Any, position: int) -> Callable[..., Any]:
    """Return a function that computes a matmul with ``out_dtype=``, which is at ``position``.

    PyTorch has them for CUDA only, so there is nothing to call for meta tensors or on the CPU.
    """
    plain = func.overloadpacket.default

    def compute(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
        # As the hardware does, the products of two halves are added up in float32.
        wide = [arg.float() if arg.dtype in HALVES else arg for arg in args[:position]]
        result: torch.Tensor = plain(*wide, *args[position + 1 :], **kwargs).to(args[position])
        return result if out is None else out.copy_(result)

    return compute


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
