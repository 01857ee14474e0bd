"""Refer to the values of a tensor without keeping the tensor and its memory alive."""

from typing import NamedTuple

import torch

from gpulab.virtual.tensors import ByteRange, TensorLayout, Values, VirtualTensor


class Reference(NamedTuple):  # made for each tensor of each launch, and quicker than a dataclass
    """Where a tensor's values are, without keeping the tensor and its memory alive."""

    values: Values
    layout: TensorLayout
    offset: int

    def view(self) -> torch.Tensor:
        """Return the values as a CPU tensor over the same bytes, to read."""
        return self.values.view(self.layout, self.offset)

    def to_write(self) -> torch.Tensor:
        """Return the same, to write into."""
        return self.values.to_write(self.layout, self.offset)

    def bytes(self) -> ByteRange:
        """Return where they lie."""
        return self.values.bytes_of(self.layout, self.offset)


def reference(tensor: VirtualTensor) -> Reference:
    """Return where ``tensor``'s values are."""
    return Reference(tensor.storage_block.values, tensor.layout_key, tensor.offset)
