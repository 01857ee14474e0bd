"""Describe which bytes PyTorch's tensors on the host cover, for the race detector.

Tensors of a real GPU are described alike; only their memory has another name. Those of the virtual
GPU know their own addresses (``gpulab.virtual.tensors``).
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from gpulab.happens_before import Checker, MemoryAccess, extent, user_site
from gpulab.torch_private import arguments_of


class TensorLabel(NamedTuple):
    """What a report says of a tensor."""

    dtype: torch.dtype
    sizes: tuple[int, ...]


def host_access(tensor: torch.Tensor, *, is_write: bool) -> MemoryAccess:
    """Return the access of all bytes of a tensor, in host memory unless renamed."""
    label = TensorLabel(tensor.dtype, tuple(tensor.shape))
    offset = int(tensor.storage_offset())
    covered = extent(label.sizes, tensor.stride(), offset, tensor.dtype.itemsize)
    return MemoryAccess(host_memory(tensor), covered, is_write, label)


def host_memory(tensor: torch.Tensor) -> tuple[str, int]:
    """Return what names the memory of a host tensor; views of one storage share it."""
    return "host", tensor.untyped_storage().data_ptr()


def forget_when_freed(checker: Checker, tensor: torch.Tensor) -> None:
    """Have the checker forget pinned memory when it is gone, before its address is used again."""
    storage = tensor.untyped_storage()
    if getattr(storage, "watched_by", None) is not checker:  # once for each buffer is enough
        storage.watched_by = checker  # type: ignore[attr-defined] # our mark on torch's object
        weakref.finalize(storage, checker.forget, host_memory(tensor)).atexit = False


def check_host_operation(
    checker: Checker,
    func: Any,  # noqa: ANN401 # operators have no public type
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> None:
    """Have the checker check what the host reads and writes in an operation on its own tensors."""
    for position, argument in enumerate(arguments_of(func)):
        given = kwargs.get(argument.name, args[position] if position < len(args) else None)
        is_write = argument.alias_info is not None and argument.alias_info.is_write
        for item in given if isinstance(given, (list, tuple)) else (given,):
            if isinstance(item, torch.Tensor) and item.numel():
                access = host_access(item, is_write=is_write)
                checker.host_access(access, func.overloadpacket.__name__, user_site())
