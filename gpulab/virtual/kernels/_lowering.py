"""Lower a call of a PyTorch operator to the kernels that CUDA would run, and to their work.

The driver's records of an H200 with torch 2.11 showed which kernels each operator runs. An
operator without an entry in a table counts as one kernel over its elements.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import (
    allows_tf32,
    flash_attention_for_cpu,
    flop_formulas,
    has_kernel,
)
from gpulab.virtual.kernels._lower_elementwise import ELEMENTWISE_LOWERINGS, elementwise
from gpulab.virtual.kernels._lower_layers import LAYER_LOWERINGS, foreach
from gpulab.virtual.kernels._lower_matmul import MATMUL_LOWERINGS
from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.kernels._out_dtype import place_of_out_dtype
from gpulab.virtual.kernels._surface_points import surface_point_of
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout

# Operators whose arithmetic depends on whether TF32 is allowed.
MATMULS = frozenset({"mm", "bmm", "baddbmm", "addmm", "addbmm", "addmv", "mv", "linear"})
# On the CPU PyTorch composes these of other operators; on CUDA each has a kernel of its own.
_FUSED = {"aten::_fused_rms_norm"}
_LOWERINGS = ELEMENTWISE_LOWERINGS | LAYER_LOWERINGS | MATMUL_LOWERINGS
_HALVES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}


def operator_name(func: Any) -> str:
    """Return the name of an operator without overload and trailing underscore.

    Examples
    --------
    >>> import torch
    >>> operator_name(torch.ops.aten.add_.Tensor)
    'add'
    """
    return str(func.overloadpacket.__name__).removesuffix("_")


def lower(
    func: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    layouts: tuple[list[TensorLayout], list[TensorLayout]],
) -> KernelWork:
    """Return the work of the kernels that CUDA would run for a call of ``func``.

    Parameters
    ----------
    func, args, kwargs, out
        The operator, its arguments and its result, with stand-ins for the tensors.
    layouts
        The layouts of the tensors that it reads, and of those that it writes.

    Examples
    --------
    >>> import torch
    >>> from gpulab.virtual.tensors import TensorLayout
    >>> x = torch.empty(8, 8, device="meta")
    >>> layout = TensorLayout((8, 8), (8, 1), torch.float32)
    >>> work = lower(torch.ops.aten.mm.default, (x, x), {}, x, ([layout, layout], [layout]))
    >>> work.family, work.flops
    ('gemm', 1024)
    """
    reads, writes = layouts
    name = operator_name(func)
    # The first floating-point tensor decides: in mixed calls, such as an embedding, the others
    # are indices or masks.
    found = [item for item in (*reads, *writes) if item.dtype.is_floating_point]
    position = place_of_out_dtype(func)
    if position is not None:
        # What is added to the product may be float32; the factors come last.
        args, found = args[:position] + args[position + 1 :], reads[-1:]
    dtype = found[0].dtype if found else torch.float32
    arithmetic = _arithmetic(name, dtype)
    flops = _flops(func, args, kwargs, out)
    is_in_place = func.overloadpacket.__name__.endswith("_")
    return lower_call(
        OperatorCall(name, args, kwargs, reads, writes, arithmetic, flops, is_in_place)
    )


def lower_call(call: OperatorCall) -> KernelWork:
    """Return the work of a call's kernels, with the call's point on the efficiency surface."""
    lowering = _LOWERINGS.get(call.name)
    if lowering is None:
        lowering = foreach if call.name.startswith("_foreach") else elementwise
    work = lowering(call)
    surface_point = surface_point_of(call, work.family)
    # Whole calls were measured, so all kernels of a call get the same correction.
    before = tuple(replace(step, surface_point=surface_point) for step in work.before)
    return replace(work, before=before, surface_point=surface_point)


def libraries_used(func: Any, work: KernelWork) -> tuple[str, ...]:
    """Return the parts of CUDA that the operator loads at its first use.

    Examples
    --------
    >>> import torch
    >>> from gpulab.virtual.simulator.costs import KernelWork
    >>> libraries_used(torch.ops.aten.mm.default, KernelWork("gemm", "float16"))
    ('gemm16',)
    """
    if work.family in {"gemm", "linear"}:
        return ("gemm16",) if work.arithmetic.endswith("16") else ("gemm",)
    if work.family == "conv":
        return ("conv",)
    return ("random",) if is_random(func) else ()


def tf32_switch(name: str) -> str | None:
    """Return which of PyTorch's switches allows TF32 for an operator, or None.

    Examples
    --------
    >>> tf32_switch("mm"), tf32_switch("convolution"), tf32_switch("add")
    ('matmul', 'conv', None)
    """
    if "convolution" in name:
        return "conv"
    return "matmul" if name in MATMULS else None


@cache
def is_composite(func: Any) -> bool:
    """Return whether PyTorch composes the operator of other operators, on every device.

    Examples
    --------
    >>> import torch
    >>> is_composite(torch.ops.aten.matmul.default), is_composite(torch.ops.aten.mm.default)
    (True, False)
    """
    if func.name() in _FUSED:
        return False
    try:
        return bool(has_kernel(func.name(), "CompositeImplicitAutograd"))
    except RuntimeError:  # the dispatcher has no such name, e.g. aten::dim
        return False


@cache
def is_random(func: Any) -> bool:
    """Return whether the operator draws random numbers.

    Examples
    --------
    >>> import torch
    >>> is_random(torch.ops.aten.native_dropout.default)
    True
    """
    # The CPU's attention operator has the tag, but accepts no dropout.
    is_tagged = torch.Tag.nondeterministic_seeded in func.tags
    return is_tagged and func.overloadpacket is not flash_attention_for_cpu


def _arithmetic(name: str, dtype: torch.dtype) -> str:
    if dtype in _HALVES:
        return _HALVES[dtype]
    if dtype is torch.float64:
        return "float64"
    switch = tf32_switch(name)
    return "tf32" if switch is not None and allows_tf32(switch) else "float32"


def _flops(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    formula = flop_formulas.get(func.overloadpacket)
    return int(formula(*args, **kwargs, out_val=out)) if formula is not None else 0
