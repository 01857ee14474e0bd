"""Lower an operator of PyTorch to the CUDA kernels that it would launch, and to their work."""

from gpulab.virtual.kernels._lowering import (
    MATMULS,
    is_composite,
    is_random,
    libraries_used,
    lower,
    operator_name,
    tf32_allowed,
)

__all__ = [
    "MATMULS",
    "is_composite",
    "is_random",
    "libraries_used",
    "lower",
    "operator_name",
    "tf32_allowed",
]
