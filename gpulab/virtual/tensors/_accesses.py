"""Describe which bytes of device memory an operator accesses, for the race detector."""

from collections.abc import Sequence

from gpulab.happens_before import MemoryAccess, extent
from gpulab.virtual.tensors._tensor import VirtualTensor


def device_access(tensor: VirtualTensor, *, is_write: bool) -> MemoryAccess:
    """Return a read or a write of all bytes of a virtual tensor, for the race detector."""
    if not is_write and tensor.read_access is not None:
        return tensor.read_access
    key = tensor.layout_key
    covered = extent(key.sizes, key.strides, tensor.offset, key.dtype.itemsize)
    access = MemoryAccess(tensor.storage_block.identity, covered, is_write, key)
    if not is_write:
        # Kept on the tensor, because a loop reads the same inputs again and again.
        tensor.read_access = access
    return access


def device_accesses(
    read: Sequence[VirtualTensor], written: Sequence[VirtualTensor]
) -> list[MemoryAccess]:
    """Return the accesses of a kernel, reads first.

    A tensor that is changed in place counts only as written, because a write conflicts with every
    access that a read conflicts with.
    """
    changed = {id(tensor) for tensor in written}
    accesses = [device_access(item, is_write=False) for item in read if id(item) not in changed]
    accesses += [device_access(item, is_write=True) for item in written]
    return accesses
