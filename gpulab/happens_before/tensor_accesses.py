"""Describe which bytes PyTorch's tensors on the host cover, for the race detector.

Tensors of a CUDA GPU are described in the same way, under another name for their memory. Tensors
of the virtual GPU know their own addresses (``gpulab.virtual.tensors``).
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from gpulab.core.torch_private import arguments_of
from gpulab.happens_before import Checker, MemoryAccess, extent, user_site


class TensorLabel(NamedTuple):
    """Type and sizes of a tensor, for the report of a race."""

    dtype: torch.dtype
    sizes: tuple[int, ...]


def host_access(tensor: torch.Tensor, *, is_write: bool) -> MemoryAccess:
    """Return the access to all bytes of a tensor, under the name of host memory."""
    label = TensorLabel(tensor.dtype, tuple(tensor.shape))
    offset = int(tensor.storage_offset())
    covered = extent(label.sizes, tensor.stride(), offset, tensor.dtype.itemsize)
    return MemoryAccess(host_memory(tensor), covered, is_write, label)


def host_memory(tensor: torch.Tensor) -> tuple[str, int]:
    """Return the name of a host tensor's memory; views of one storage have the same name."""
    # The address of the storage and not of the tensor, which differs from view to view.
    return "host", tensor.untyped_storage().data_ptr()


def forget_when_freed(checker: Checker, tensor: torch.Tensor) -> None:
    """Make the checker forget pinned memory as soon as it is freed.

    Its address may be used again at once, and old accesses would look like races with new ones.
    """
    storage = tensor.untyped_storage()
    if getattr(storage, "watched_by", None) is not checker:  # one finalizer per buffer
        storage.watched_by = checker  # type: ignore[attr-defined] # our mark on torch's object
        # At the end of the process nobody reads the checker any more.
        weakref.finalize(storage, checker.forget, host_memory(tensor)).atexit = False


def check_host_operation(
    checker: Checker,
    func: Any,  # operators have no public type
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> None:
    """Check for races what an operation of the host reads and writes in its CPU tensors.

    The operator's schema says which arguments it writes to.
    """
    for position, argument in enumerate(arguments_of(func)):
        value = kwargs.get(argument.name, args[position] if position < len(args) else None)
        is_write = argument.alias_info is not None and argument.alias_info.is_write
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor) and item.numel():
                access = host_access(item, is_write=is_write)
                checker.host_access(access, func.overloadpacket.__name__, user_site())
