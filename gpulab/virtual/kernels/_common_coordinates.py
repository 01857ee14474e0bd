"""Compute the coordinates that many operators share: sizes, alignments, types, dimensions.

The module ``_surface_points`` says what a coordinate is and which calls use these.
"""

from math import log2

from gpulab.virtual.kernels._operator_call import OperatorCall
from gpulab.virtual.simulator.costs import Coordinate
from gpulab.virtual.tensors import TensorLayout

Coordinates = tuple[Coordinate, ...]
# The widest load of a thread is 16 bytes, which is 2**4.
VECTOR = 4
# Where the dimension is among the arguments of an operator, if it is not the second.
_DIM_AT = {"topk": 2, "kthvalue": 2, "roll": 2}


def log2_size(n: float) -> float:
    """Return the logarithm of a size to the base 2; an empty size counts as 1."""
    return log2(max(n, 1))


def log2_alignment(n_bytes: int, most: int = VECTOR) -> float:
    """Return the logarithm of the largest power of two that divides ``n_bytes``.

    It says how wide the loads of a kernel can be. ``most`` is the highest result.
    """
    return float(min((n_bytes & -n_bytes).bit_length() - 1, most)) if n_bytes else float(most)


def dtype_name(item: TensorLayout) -> str:
    """Return the name of a tensor's type."""
    return str(item.dtype).removeprefix("torch.")


def largest(items: list[TensorLayout]) -> TensorLayout:
    """Return the tensor with the most elements."""
    return max(items, key=lambda item: item.n_elements)


def largest_read(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor that a call reads."""
    return largest(call.reads or call.writes)


def largest_written(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor that a call writes."""
    return largest(call.writes)


def dims_of(call: OperatorCall) -> list[int]:
    """Return the dimensions that a call works along; empty if it takes the tensor as one line."""
    n_dims = max(1, len(call.reads[0].sizes))
    position = _DIM_AT.get(call.name, 1)
    given = call.kwargs.get("dim", call.args[position] if len(call.args) > position else None)
    if given is None and call.name in {"sort", "argsort", "topk", "kthvalue"}:
        given = -1
    items = given if isinstance(given, (list, tuple)) else [given]
    return [i % n_dims for i in items if isinstance(i, int) and not isinstance(i, bool)]


def side_of(call: OperatorCall, dims: list[int]) -> str:
    """Return whether the dimensions are the last one, another one, or several."""
    if len(dims) > 1:
        return "several"
    is_last = not dims or dims[0] == len(call.reads[0].sizes) - 1
    return "last" if is_last else "other"
