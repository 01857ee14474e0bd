"""Which arguments of an operator are indices, and the least and greatest right number in each."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from gpulab.virtual.tensors import Reference


class IndexRange(NamedTuple):
    """An index of the device or of the host, with the least and the greatest right number.

    Examples
    --------
    >>> IndexRange(torch.tensor([0, 3]), 0, 2).holds()
    False
    """

    tensor: Reference | torch.Tensor
    least: int
    greatest: int
    # Another number that is right, such as that of a class to ignore.
    other: int | None = None

    def holds(self) -> bool:
        """Return whether all numbers are right; call it after they were computed."""
        index = self.tensor.raw() if isinstance(self.tensor, Reference) else self.tensor
        if self.other is not None:
            index = index[index != self.other]
        if not index.numel():
            return True
        least, greatest = torch.aminmax(index)
        return self.least <= least.item() and greatest.item() <= self.greatest


def along_dimension(args: list[Any]) -> list[IndexRange]:
    """Return the range of the index of ``gather``, ``index_add`` and others like them."""
    sizes, dimension, index = args[0].layout.sizes, args[1], args[2]
    # A tensor without dimensions counts as one of a single element.
    return [IndexRange(index, 0, sizes[dimension] - 1 if sizes else 0)]


def of_each_dimension(args: list[Any]) -> list[IndexRange]:
    """Return the ranges of the indices of ``x[i, j]``."""
    pairs = zip(args[1], args[0].layout.sizes, strict=False)
    return [IndexRange(index, -size, size - 1) for index, size in pairs if index is not None]


def of_rows(args: list[Any]) -> list[IndexRange]:
    """Return the range of the index of an embedding."""
    return [IndexRange(args[1], 0, args[0].layout.sizes[0] - 1)]


def of_gradient_rows(args: list[Any]) -> list[IndexRange]:
    """Return the range of the index of an embedding in its backward pass."""
    return [IndexRange(args[1], 0, args[2] - 1)]


def of_classes(scores: int) -> Callable[[list[Any]], list[IndexRange]]:
    """Return a function for the classes of a loss; its scores are the argument at ``scores``."""

    def ranges(args: list[Any]) -> list[IndexRange]:
        sizes = args[scores].layout.sizes
        # The dimension of the classes comes after that of the batch.
        n_classes = sizes[0] if len(sizes) == 1 else sizes[1]
        return [IndexRange(args[scores + 1], 0, n_classes - 1, args[scores + 4])]

    return ranges
