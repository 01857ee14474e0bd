"""What the hazard checker is told: which bytes an operation reads and writes."""

import weakref
from collections.abc import Sequence
from typing import Any

import torch

from gpulab.happens_before import Checker, Touch, extent, user_site
from gpulab.virtual.tensors._storage import layout_of
from gpulab.virtual.tensors._tensor import VirtualTensor


def device_touch(tensor: VirtualTensor, *, is_write: bool) -> Touch:
    """Return the bytes of a virtual tensor."""
    if not is_write and tensor.read_touch is not None:
        return tensor.read_touch
    key = tensor.layout_key
    bytes_touched = extent(key.sizes, key.strides, tensor.offset, key.dtype.itemsize)
    touch = Touch(tensor.storage_block.identity, bytes_touched, is_write, key)
    if not is_write:
        tensor.read_touch = touch  # inputs are read again and again
    return touch


def device_touches(read: Sequence[VirtualTensor], written: Sequence[VirtualTensor]) -> list[Touch]:
    """Return the bytes that a kernel reads and those that it writes.

    What is changed in place counts as written: that is in conflict with whatever reading is.
    """
    changed = {id(tensor) for tensor in written}
    touches = [device_touch(item, is_write=False) for item in read if id(item) not in changed]
    touches += [device_touch(item, is_write=True) for item in written]
    return touches


def host_touch(tensor: torch.Tensor, *, is_write: bool) -> Touch:
    """Return the bytes of a host tensor."""
    # The address of the storage names host memory, as several tensors may share it.
    key = layout_of(tensor)
    offset = int(tensor.storage_offset())
    bytes_touched = extent(key.sizes, key.strides, offset, key.dtype.itemsize)
    return Touch(host_memory(tensor), bytes_touched, is_write, key)


def host_memory(tensor: torch.Tensor) -> tuple[str, int]:
    """Return what names the memory of a host tensor."""
    return "host", tensor.untyped_storage().data_ptr()


def forget_later(checker: Checker, tensor: torch.Tensor) -> None:
    """Have the checker forget pinned memory when it is gone, before its address is used again."""
    storage = tensor.untyped_storage()
    if getattr(storage, "watched_by", None) is not checker:  # once for each buffer is enough
        storage.watched_by = checker  # type: ignore[attr-defined] # our mark
        weakref.finalize(storage, checker.forget, host_memory(tensor)).atexit = False


def host_reads_and_writes(
    checker: Checker, func: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Tell the checker that the host runs an operation on its own tensors."""
    for position, argument in enumerate(func._schema.arguments):
        given = kwargs.get(argument.name, args[position] if position < len(args) else None)
        is_write = argument.alias_info is not None and argument.alias_info.is_write
        for item in given if isinstance(given, (list, tuple)) else (given,):
            if isinstance(item, torch.Tensor) and item.numel():
                touch = host_touch(item, is_write=is_write)
                checker.host_access(touch, func.overloadpacket.__name__, user_site())
