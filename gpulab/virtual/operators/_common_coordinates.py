"""Compute the coordinates that many operators share: sizes, alignments, types, dimensions.

The module ``_surface_points`` says what a coordinate is and which calls use these.
"""

from math import log2

from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.simulator.costs import Coordinate
from gpulab.virtual.tensors import TensorLayout

Coordinates = tuple[Coordinate, ...]
# The widest load of a thread is 16 bytes, which is 2**4.
VECTOR = 4


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


def side_of(call: OperatorCall) -> str:
    """Return whether a call works along the last dimension, another one, or several."""
    dims = call.dims()
    if len(dims) > 1:
        return "several"
    is_last = not dims or dims[0] == len(call.reads[0].sizes) - 1
    return "last" if is_last else "other"
