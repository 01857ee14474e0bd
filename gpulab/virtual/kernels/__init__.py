"""Lower an operator of PyTorch to the CUDA kernels that it would launch, and to their work."""

from gpulab.virtual.kernels._lowering import (
    PRODUCTS,
    is_composite,
    is_random,
    operator_name,
    parts_used,
    tf32_allowed,
    work_of,
)

__all__ = [
    "PRODUCTS",
    "is_composite",
    "is_random",
    "operator_name",
    "parts_used",
    "tf32_allowed",
    "work_of",
]
