"""Find a wrong index when a kernel ends, although nobody reads its results.

A kernel of CUDA has assertions, and the next call that waits raises their error. Here most of them
need only a look at the index; the results themselves may wait.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch

from gpulab.virtual.dispatch._host_reads import When
from gpulab.virtual.dispatch._operators import Operator
from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.simulator.values import LogEntry


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


def may_fail(operator: Operator) -> bool:
    """Return whether an operator finds some values wrong."""
    # After its kernels PyTorch reads whether a factorization has failed, and then raises an error.
    has_status = any(read.when is When.AFTER for read in operator.host_reads)
    return has_status or operator.name in _RANGES or operator.name in _COMPUTED_AT_ONCE


def note_check(entry: LogEntry, name: str, args: list[Any]) -> None:
    """Make the entry of a call due: the call is an assertion, or may find a wrong value."""
    entry.is_due = True
    ranges_of = _RANGES.get(name)
    if ranges_of is not None:
        ranges = ranges_of(args)
        indices = [item.tensor for item in ranges if isinstance(item.tensor, Reference)]
        entry.checked = [item.span() for item in indices if item.layout.n_elements]
        entry.check = partial(_hold, ranges)


def _hold(ranges: list[IndexRange]) -> bool:
    return all(item.holds() for item in ranges)


def _along_dimension(args: list[Any]) -> list[IndexRange]:
    """Return the range of the index of ``gather``, ``index_add`` and others like them."""
    sizes, dimension, index = args[0].layout.sizes, args[1], args[2]
    # A tensor without dimensions counts as one of a single element.
    return [IndexRange(index, 0, sizes[dimension] - 1 if sizes else 0)]


def _of_each_dimension(args: list[Any]) -> list[IndexRange]:
    """Return the ranges of the indices of ``x[i, j]``."""
    pairs = zip(args[1], args[0].layout.sizes, strict=False)
    return [IndexRange(index, -size, size - 1) for index, size in pairs if index is not None]


def _classes(args: list[Any], scores: int) -> list[IndexRange]:
    """Return the range of a loss's classes; the scores are the argument at that position."""
    sizes = args[scores].layout.sizes
    # The dimension of the classes comes after that of the batch.
    n_classes = sizes[0] if len(sizes) == 1 else sizes[1]
    return [IndexRange(args[scores + 1], 0, n_classes - 1, args[scores + 4])]


_RANGES: dict[str, Callable[[list[Any]], list[IndexRange]]] = {
    **dict.fromkeys(
        (
            *("gather", "index_select", "index_add", "index_copy", "index_fill", "index_reduce"),
            *("scatter", "scatter_add", "scatter_reduce"),
        ),
        _along_dimension,
    ),
    **dict.fromkeys(("index", "_unsafe_index"), _of_each_dimension),
    **dict.fromkeys(("nll_loss_forward", "nll_loss2d_forward"), partial(_classes, scores=0)),
    **dict.fromkeys(("nll_loss_backward", "nll_loss2d_backward"), partial(_classes, scores=1)),
    "embedding": lambda args: [IndexRange(args[1], 0, args[0].layout.sizes[0] - 1)],
}
# To find out whether their values are right takes about as long as to compute them.
_COMPUTED_AT_ONCE = frozenset(
    {
        *("index_put", "_index_put_impl", "_unsafe_index_put", "put", "take", "masked_scatter"),
        *("bernoulli", "poisson", "multinomial", "binary_cross_entropy", "_ctc_loss"),
        *("multi_margin_loss", "multi_margin_loss_backward"),
        *("multilabel_margin_loss_forward", "multilabel_margin_loss_backward"),
        *("max_unpool2d", "max_unpool3d"),
        *("fractional_max_pool2d_backward", "fractional_max_pool3d_backward"),
        *("embedding_renorm", "_embedding_bag", "_embedding_bag_forward_only"),
        *("segment_reduce", "lu_unpack", "linalg_lu_solve", "linalg_ldl_solve"),
        *(
            "_linear_cross_entropy_batch_chunked",
            "_linear_cross_entropy_batch_chunked_no_reduction",
        ),
    }
)
