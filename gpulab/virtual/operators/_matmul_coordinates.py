"""Compute the coordinates of matmuls."""

from math import ceil, prod

from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall
from gpulab.virtual.operators._size_coordinates import log2_alignment, log2_size

# A usual size of a matmul's tiles; the library may have chosen another one.
_TILE = 128
# The multiprocessors of the GPU that was measured. How many of them the last wave of tiles leaves
# idle is a coordinate of matmuls.
_N_SMS = 132
# The file of surfaces that gpulab ships has these names, so "product" stays.
_MATMUL_SURFACES = {
    "float16": "half product",
    "bfloat16": "half product",
    "tf32": "tf32 product",
    "float32": "single product",
    "float64": "double product",
}


def matmul(call: OperatorCall) -> Coordinates:
    """Return the sizes of a matmul, the alignment of its rows, and how it fills the GPU."""
    a, b = call.reads[-2:]
    m, k, n = a.sizes[-2], a.sizes[-1], b.sizes[-1]
    batch = prod(a.sizes[:-2])
    width = a.dtype.itemsize
    aligned = (log2_alignment(n * width), log2_alignment(m * width))
    least_aligned = min(log2_alignment(k * width), aligned[0])
    second = "rows" if b.strides[-1] == 1 else "columns"
    n_tiles = batch * ceil(m / _TILE) * ceil(n / _TILE)
    waves = n_tiles / _N_SMS
    # The coordinate is 0 for full waves and 1 for half a wave. For less than that it stays 1.
    idle = log2_size(ceil(waves) / waves) if 2 * n_tiles > _N_SMS else 1.0
    first = "rows" if a.strides[-1] == 1 else "columns"
    return (
        log2_size(m),
        log2_size(n),
        log2_size(k),
        log2_size(batch),
        *aligned,
        least_aligned,
        log2_size(batch * m * n),
        second,
        call.name,
        first,
        f"{first} {second}",
        log2_size(n_tiles),
        idle,
    )


def surface_of_matmul(call: OperatorCall) -> str:
    """Return the surface of a matmul, by its arithmetic."""
    return _MATMUL_SURFACES[call.arithmetic]
