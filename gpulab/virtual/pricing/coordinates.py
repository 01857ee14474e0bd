"""What coordinates are made of: logarithms of sizes, and how these are aligned."""

from collections.abc import Callable
from math import log2

from gpulab.virtual.core.surfaces import Coordinate
from gpulab.virtual.pricing.calls import Call
from gpulab.virtual.storage import Layout

Coordinates = tuple[Coordinate, ...]
Finder = Callable[[Call], Coordinates]

VECTOR = 4  # logarithm of the bytes of the widest load


def log(n: float) -> float:
    """Return the logarithm of a size to the base 2; 0 of what is empty."""
    return log2(max(n, 1))


def alignment(n_bytes: int, most: int = VECTOR) -> float:
    """Return the logarithm of the largest power of two of bytes that divides a size."""
    return float(min((n_bytes & -n_bytes).bit_length() - 1, most)) if n_bytes else float(most)


def word(item: Layout) -> str:
    """Return the name of a tensor's type."""
    return str(item.dtype).removeprefix("torch.")


def _largest(items: list[Layout]) -> Layout:
    return max(items, key=lambda item: item.n_elements)


def source_of(call: Call) -> Layout:
    """Return the largest tensor that a call reads."""
    return _largest(call.reads or call.writes)


def result_of(call: Call) -> Layout:
    """Return the largest tensor that a call writes."""
    return _largest(call.writes)
