"""Provide the tensors of the virtual GPU, their memory, and which bytes an operator accesses."""

from gpulab.virtual.tensors._accesses import (
    device_touch,
    device_touches,
    forget_later,
    host_reads_and_writes,
    host_touch,
)
from gpulab.virtual.tensors._storage import Storage, TensorLayout, Values, layout, layout_of
from gpulab.virtual.tensors._tensor import VirtualTensor, cuda_device, set_dispatch, wrap

__all__ = [
    "Storage",
    "TensorLayout",
    "Values",
    "VirtualTensor",
    "cuda_device",
    "device_touch",
    "device_touches",
    "forget_later",
    "host_reads_and_writes",
    "host_touch",
    "layout",
    "layout_of",
    "set_dispatch",
    "wrap",
]
