"""The tensors of the virtual GPU, their memory, and the bytes that an operator accesses."""

from gpulab.virtual.tensors._accesses import device_access, device_accesses
from gpulab.virtual.tensors._storage import (
    MissingValues,
    Reference,
    Storage,
    TensorLayout,
    layout,
    layout_of,
)
from gpulab.virtual.tensors._tensor import (
    VirtualTensor,
    cuda_device,
    reference,
    set_dispatch,
    wrap,
)

__all__ = [
    "MissingValues",
    "Reference",
    "Storage",
    "TensorLayout",
    "VirtualTensor",
    "cuda_device",
    "device_access",
    "device_accesses",
    "layout",
    "layout_of",
    "reference",
    "set_dispatch",
    "wrap",
]
