"""The tensors of the virtual GPU, their memory, and the bytes that an operator accesses."""

from gpulab.virtual.tensors._accesses import (
    device_access,
    device_accesses,
)
from gpulab.virtual.tensors._content_names import new_name
from gpulab.virtual.tensors._results_in_memory import ComputedResult
from gpulab.virtual.tensors._storage import (
    ByteRange,
    MissingValues,
    Storage,
    TensorLayout,
    Values,
    is_same,
    layout,
    layout_of,
)
from gpulab.virtual.tensors._tensor import VirtualTensor, cuda_device, set_dispatch, wrap

__all__ = [
    "ByteRange",
    "ComputedResult",
    "MissingValues",
    "Storage",
    "TensorLayout",
    "Values",
    "VirtualTensor",
    "cuda_device",
    "device_access",
    "device_accesses",
    "is_same",
    "layout",
    "layout_of",
    "new_name",
    "set_dispatch",
    "wrap",
]
