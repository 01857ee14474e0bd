"""Refer to the values of a tensor without keeping its device memory allocated."""

from typing import NamedTuple

import torch

from gpulab.virtual.simulator.values import ByteSpan
from gpulab.virtual.tensors._storage import TensorLayout, Values
from gpulab.virtual.tensors._tensor import VirtualTensor


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
        """Return the values as a CPU tensor over the same bytes, after they were computed."""
        return self.values.view(self.layout, self.offset)

    def raw(self) -> torch.Tensor:
        """Return the same CPU tensor with what was computed so far."""
        return self.values.raw(self.layout, self.offset)

    def set_to_zero(self) -> None:
        """Write zeros to all elements."""
        self.values.set_to_zero(self.layout, self.offset)

    def span(self) -> ByteSpan:
        """Return the range of bytes that the values cover, gaps included."""
        return self.values.span(self.layout, self.offset)


def reference(tensor: VirtualTensor) -> Reference:
    """Return a reference to the values of ``tensor``."""
    return Reference(tensor.storage_block.values, tensor.layout_key, tensor.offset)
