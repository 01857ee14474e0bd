"""Compute the coordinates that many operators share: sizes, alignments, types."""

from math import log2

from gpulab.virtual.tensors import TensorLayout

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
