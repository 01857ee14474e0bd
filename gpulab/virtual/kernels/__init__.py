"""Lower an operator of PyTorch to the CUDA kernels that it would launch, and to their work.

:func:`lower` returns the work of an operator's kernels: FLOPs, bytes, rows, tiles, and the point
on the surfaces of measured efficiencies. ``gpulab.virtual.simulator.costs`` makes times of it.
"""

from gpulab.virtual.kernels._lowering import (
    MATMULS,
    is_composite,
    is_random,
    libraries_used,
    lower,
    operator_name,
    tf32_switch,
)
from gpulab.virtual.kernels._out_dtype import check_out_dtype, computable, place_of_out_dtype

__all__ = [
    "MATMULS",
    "check_out_dtype",
    "computable",
    "is_composite",
    "is_random",
    "libraries_used",
    "lower",
    "operator_name",
    "place_of_out_dtype",
    "tf32_switch",
]
