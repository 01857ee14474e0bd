"""Refer to the values of a tensor without keeping its device memory allocated."""

from collections.abc import Hashable
from typing import NamedTuple

import torch

from gpulab.virtual.tensors import ByteRange, TensorLayout, Values, VirtualTensor


# A named tuple is faster to make than a dataclass, and each launch makes one for each tensor.
class Reference(NamedTuple):
    """The values of a tensor, without a reference to the tensor or its storage.

    A pending kernel refers to its tensors in this way, so that the allocator can give their memory
    to others once the program has dropped them, as on a CUDA GPU.
    """

    values: Values
    layout: TensorLayout
    offset: int

    def view(self) -> torch.Tensor:
        """Return the values as a CPU tensor over the same bytes, for reading."""
        return self.values.view(self.layout, self.offset)

    def to_write(self) -> torch.Tensor:
        """Return the same CPU tensor for writing."""
        return self.values.to_write(self.layout, self.offset)

    def write(self, values: torch.Tensor) -> None:
        """Copy ``values`` to these."""
        self.values.write(self.layout, self.offset, values)

    def set_to_zero(self) -> None:
        """Write zeros to all elements."""
        self.values.set_to_zero(self.layout, self.offset)

    def content(self, longest_digest_bytes: int) -> Hashable:
        """Return a name for the values as they are now; see :meth:`Values.content`."""
        return self.values.content(self.layout, self.offset, longest_digest_bytes)

    def has_content(self, name: Hashable) -> bool:
        """Return whether the values have this name."""
        return self.values.has_content(self.layout, self.offset, name)

    def name_content(self, name: Hashable) -> None:
        """Name the values, which have been written."""
        self.values.name_content(self.layout, self.offset, name)

    def forget_content(self) -> None:
        """Forget the name of the values, which will be written."""
        self.values.forget_content(self.layout, self.offset)

    def bytes(self) -> ByteRange:
        """Return the range of bytes that the values cover."""
        return self.values.bytes_of(self.layout, self.offset)


def reference(tensor: VirtualTensor) -> Reference:
    """Return a reference to the values of ``tensor``."""
    return Reference(tensor.storage_block.values, tensor.layout_key, tensor.offset)
