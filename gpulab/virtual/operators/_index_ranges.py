"""Which arguments of an operator are indices, and the least and greatest right number in each."""

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import Any, NamedTuple

import torch

from gpulab.virtual.tensors import Reference


class IndexRange(NamedTuple):
    """An index of the device or of the host, with the least and the greatest right number."""

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


# The CPU's kernels of these trust an index, and would read or write outside of their tensors. Most
# rely on a check by the forward pass, but here its error may come later. By their arguments.
_TRUSTING: dict[str, Callable[[Any, dict[str, Any]], IndexRange]] = {
    **dict.fromkeys(
        ("nll_loss_backward", "nll_loss2d_backward"),
        lambda args, _: IndexRange(args[2], 0, args[1].shape[args[1].dim() > 1] - 1, args[5]),
    ),
    "embedding_dense_backward": lambda args, _: IndexRange(args[1], 0, args[2] - 1),
    "_embedding_bag_backward": lambda args, _: IndexRange(args[1], 0, args[6] - 1),
    "_embedding_bag_dense_backward": lambda args, _: IndexRange(args[1], 0, args[5] - 1),
    "_embedding_bag_per_sample_weights_backward": lambda args, _: IndexRange(
        args[2], 0, len(args[1]) - 1
    ),
    "max_pool2d_with_indices_backward": lambda args, _: _of_pool(args[7], args[1], 2),
    "max_pool3d_with_indices_backward": lambda args, _: _of_pool(args[7], args[1], 3),
    "adaptive_max_pool2d_backward": lambda args, _: _of_pool(args[2], args[1], 2),
    "adaptive_max_pool3d_backward": lambda args, _: _of_pool(args[2], args[1], 3),
    "_ctc_loss": lambda args, _: _of_labels(args[1], args[3], args[0]),
    "_ctc_loss_backward": lambda args, _: _of_labels(args[2], args[4], args[1]),
    "_segment_reduce_backward": lambda args, options: _of_segments(args[2], **options),
}


def _of_pool(index: torch.Tensor, image: torch.Tensor, n_dims: int) -> IndexRange:
    return IndexRange(index, 0, prod(image.shape[-n_dims:]) - 1)


def _of_labels(labels: torch.Tensor, lengths: Any, scores: torch.Tensor) -> IndexRange:
    """Return the range of the labels that are used: rows of labels may end with any numbers."""
    n_used = torch.as_tensor(lengths)
    if labels.dim() > 1:
        labels = labels[torch.arange(labels.shape[1]) < n_used[:, None]]
    else:
        labels = labels[: n_used.sum()]
    return IndexRange(labels, 0, scores.shape[-1] - 1)


def _of_segments(
    data: torch.Tensor, lengths: Any = None, offsets: Any = None, axis: int = 0, **_: object
) -> IndexRange:
    n_rows = data.shape[axis]
    if lengths is None:
        return IndexRange(offsets, 0, n_rows)
    return IndexRange(lengths.sum(-1), n_rows, n_rows)


def never_trusting(name: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that computes an operator on the CPU, and first checks its index.

    ``compute`` is returned as it is if it checks the index itself.
    """
    range_of = _TRUSTING.get(name)
    if range_of is None:
        return compute

    @wraps(compute)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if not args[0].is_meta and not (indices := range_of(args, kwargs)).holds():
            raise IndexError(
                f"an index of {name} is out of range: not from {indices.least} to "
                f"{indices.greatest}; check the classes or indices that the program gives to it "
                "or to its forward pass"
            )
        return compute(*args, **kwargs)

    return checked
