"""Lower a call of a PyTorch operator to the kernels that CUDA would run, and to their work.

The driver's records of an H200 with torch 2.11 showed which kernels each operator runs. An
operator without a lowering in its model counts as one kernel over its elements.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from gpulab.core.torch_private import allows_tf32, flop_formulas
from gpulab.virtual.operators import _layer_coordinates as layers
from gpulab.virtual.operators import _row_coordinates as rows
from gpulab.virtual.operators._index_coordinates import indexed
from gpulab.virtual.operators._kernel_names import RULES, as_launched
from gpulab.virtual.operators._matmul_coordinates import matmul
from gpulab.virtual.operators._model import OperatorModel
from gpulab.virtual.operators._operator_call import (
    ADD_BIAS,
    CallArguments,
    Coordinates,
    OperatorCall,
)
from gpulab.virtual.operators._operators import Operator
from gpulab.virtual.operators._size_coordinates import concatenation, foreach, sizes, strided
from gpulab.virtual.simulator.costs import KernelWork, SurfacePoint
from gpulab.virtual.tensors import TensorLayout

_ARITHMETIC = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
}
# The surfaces of operators whose models name none, by the family of their last kernel.
_BY_FAMILY = {
    **dict.fromkeys(
        ("elementwise", "fill", "copy", "cast", "error function", "index"), "elementwise"
    ),
    **{name: name for name in ("uniform", "normal", "dropout", "broadcast", "strided")},
    **{name: name for name in ("concatenation", "fourier", "factorization", "foreach")},
    **dict.fromkeys(("scan", "scan of one row"), "scan"),
    **dict.fromkeys(("row sort", "radix pass"), "sort"),
    **dict.fromkeys(("reduction", "first axis"), "reduction"),
}
# The coordinates of calls that are described by more than their sizes. The fit of the surfaces
# (``python -m benchmarks.fidelity fit``) chooses which ones each surface uses, and the file of
# surfaces has their positions. So a change of such a function needs a new fit, or new positions.
_COORDINATES: dict[str, Callable[[OperatorCall], Coordinates]] = {
    "foreach": foreach,
    "concatenation": concatenation,
    "strided": strided,
    **dict.fromkeys(("reduction", "extreme", "variance"), rows.reduction),
    **dict.fromkeys(("softmax", "softmax backward", "multinomial"), rows.along_last),
    **dict.fromkeys(("likelihood", "likelihood backward"), rows.along_last),
    **dict.fromkeys(("scan", "sort", "order", "topk"), rows.along_dimension),
    **dict.fromkeys(("norm", "norm backward"), rows.norm),
    "softmax across": rows.across,
    "fourier": rows.fourier,
    **dict.fromkeys(
        ("index", "gather", "index_select", "embedding"), partial(indexed, is_read=True)
    ),
    "embedding backward": partial(indexed, is_gradient=True),
    **dict.fromkeys(("index write", "index add", "scatter"), indexed),
    **dict.fromkeys(("half product", "tf32 product", "single product", "double product"), matmul),
    **dict.fromkeys(("convolution", "half convolution", "depthwise"), layers.convolution),
    **dict.fromkeys(
        ("convolution backward", "half convolution backward", "depthwise backward"),
        layers.convolution_backward,
    ),
    **dict.fromkeys(("batch norm", "batch norm backward"), layers.channels),
    **dict.fromkeys(("group norm", "group norm backward"), layers.groups),
    **dict.fromkeys(("attention", "attention backward"), layers.attention),
}


def lower(
    operator: Operator,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    out: Any,
    layouts: tuple[list[TensorLayout], list[TensorLayout]],
) -> KernelWork:
    """Return the work of the kernels that CUDA would run for a call of ``operator``.

    Arguments and result have stand-ins for the tensors; ``layouts`` are of those that it reads,
    and of those that it writes.
    """
    reads, writes = layouts
    func, position = operator.func, operator.out_dtype_at
    # The first floating-point tensor decides: in mixed calls, such as an embedding, the others
    # are indices or masks.
    floating = [item for item in (*reads, *writes) if item.dtype.is_floating_point]
    if position is not None:
        # What is added to the product may be float32; the factors come last.
        args, floating = args[:position] + args[position + 1 :], reads[-1:]
    dtype = floating[0].dtype if floating else torch.float32
    formula = flop_formulas.get(func.overloadpacket)
    call = OperatorCall(
        operator.name,
        args,
        kwargs,
        reads,
        writes,
        _ARITHMETIC.get(dtype) or _single_precision(operator),
        flops=int(formula(*args, **kwargs, out_val=out)) if formula is not None else 0,
        is_in_place=func.overloadpacket.__name__.endswith("_"),
        dim=CallArguments(func, args, kwargs)(operator.dim_name) if operator.dim_name else None,
    )
    return lower_call(call, operator.model)


def lower_call(call: OperatorCall, model: OperatorModel) -> KernelWork:
    """Return the work of a call's kernels: those of its model, or those that are known to run."""
    work = model.lowering(call)
    surface = None
    if call.writes:
        surface = model.surface(call) if callable(model.surface) else model.surface
        surface = surface or _BY_FAMILY.get(work.family)
    if surface is not None:  # something like it was measured
        # Whole calls were measured, so all kernels of a call get the same correction.
        point = SurfacePoint(surface, _COORDINATES.get(surface, sizes)(call))
        before = tuple(
            step if step.name == ADD_BIAS else replace(step, surface_point=point)
            for step in work.before
        )
        work = replace(work, before=before, surface_point=point)
    known = RULES.get(call.name)
    try:
        names = known(call) if callable(known) else known
    except IndexError:
        # Autograd and PyTorch's functions pass arguments by their places. A direct call of an
        # operator may pass them by name, or its result as its only tensor.
        names = None
    return work if names is None else as_launched(work, names, call.reads, call.writes)


def _single_precision(operator: Operator) -> str:
    switch = operator.model.tf32
    return "tf32" if switch is not None and allows_tf32(switch) else "float32"


def libraries_used(operator: Operator, work: KernelWork) -> tuple[str, ...]:
    """Return the parts of CUDA that the operator loads at its first use."""
    if work.family in {"gemm", "linear"}:
        return ("gemm16",) if work.arithmetic.endswith("16") else ("gemm",)
    if work.family == "conv":
        return ("conv",)
    return ("random",) if operator.is_random else ()
