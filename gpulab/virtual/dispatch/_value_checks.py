"""Find wrong indices and other wrong values when a kernel ends, although nobody reads its results.

A kernel of CUDA has assertions, and the next call that waits raises their error. Here most of them
only need a look at the index or the probabilities. The results themselves may wait.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from gpulab.virtual.dispatch._value_references import Reference
from gpulab.virtual.values import ByteSpan, Obligation


class ValueRange(NamedTuple):
    """A tensor among the arguments of a call, and the values that it may contain.

    Attributes
    ----------
    tensor
        The tensor, on the device or on the host.
    lowest, highest
        The limits, both included.
    ignored
        Another value that is right, or None.
    """

    tensor: Reference | torch.Tensor
    lowest: float
    highest: float
    ignored: int | None = None

    def holds(self) -> bool:
        """Return whether all values are right; call it after they were computed."""
        values = self.tensor.raw() if isinstance(self.tensor, Reference) else self.tensor
        if self.ignored is not None:
            values = values[values != self.ignored]
        if not values.numel():
            return True
        lowest, highest = torch.aminmax(values)
        return self.lowest <= lowest.item() and highest.item() <= self.highest


def obligation_of(name: str, args: list[Any], writes: Sequence[ByteSpan]) -> Obligation | None:
    """Return what must be done about a call before the program goes on, or None.

    Parameters
    ----------
    name
        The operator's name.
    args
        Its arguments.
    writes
        The bytes that it writes. Without any it is an assertion, and must be computed.
    """
    if not writes or name in _COMPUTED_AT_ONCE:
        return Obligation(None)
    ranges_of = _RANGES.get(name)
    ranges = ranges_of(args) if ranges_of is not None else []
    if ranges is None:
        return Obligation(None)
    if not ranges:
        return None
    on_device = [item.tensor for item in ranges if isinstance(item.tensor, Reference)]
    spans = [item.span() for item in on_device if item.layout.n_elements]
    return Obligation(spans, partial(_hold, ranges))


def _hold(ranges: Sequence[ValueRange]) -> bool:
    return all(item.holds() for item in ranges)


# None if only computing the call shows whether its values are right.
Ranges = list[ValueRange] | None


def _index(tensor: Any, size: int, *, is_from_the_end: bool = False) -> ValueRange:
    """Return the range of an index into ``size`` elements; some may count from the end."""
    return ValueRange(tensor, -size if is_from_the_end else 0, size - 1)


def _along_dimension(args: list[Any]) -> Ranges:
    """Return the range of the index of ``gather``, ``index_add`` and others like them."""
    sizes, dimension, index = args[0].layout.sizes, args[1], args[2]
    # A tensor without dimensions counts as one of a single element.
    return [_index(index, sizes[dimension] if sizes else 1)]


def _of_each_dimension(args: list[Any]) -> Ranges:
    """Return the ranges of the indices of ``x[i, j]``."""
    sizes, indices = args[0].layout.sizes, args[1]
    # A mask stands for several dimensions.
    if any(_is_mask(index) for index in indices):
        return None
    return [
        _index(index, size, is_from_the_end=True)
        for index, size in zip(indices, sizes, strict=False)
        if index is not None
    ]


def _classes(args: list[Any], scores: int, target: int, ignored: int) -> Ranges:
    """Return the range of the classes of a loss; the numbers are positions of arguments."""
    sizes = args[scores].layout.sizes
    # The dimension of the classes comes after that of the batch.
    n_classes = sizes[0] if len(sizes) == 1 else sizes[1]
    return [_index(args[target], n_classes)._replace(ignored=args[ignored])]


def _probabilities(args: list[Any]) -> Ranges:
    """Return the range of the probabilities of ``bernoulli``, if they are a tensor."""
    return _if_tensor(args[1] if len(args) > 1 else args[0], 1)


def _if_tensor(given: Any, highest: float) -> Ranges:
    is_tensor = isinstance(given, (Reference, torch.Tensor))
    return [ValueRange(given, 0, highest)] if is_tensor else []


def _is_mask(index: Reference | torch.Tensor | None) -> bool:
    dtype = index.layout.dtype if isinstance(index, Reference) else getattr(index, "dtype", None)
    return dtype in {torch.bool, torch.uint8}


_RANGES: dict[str, Callable[[list[Any]], Ranges]] = {
    **dict.fromkeys(
        (
            *("gather", "index_select", "index_add", "index_copy", "index_fill", "index_reduce"),
            *("scatter", "scatter_add", "scatter_reduce"),
        ),
        _along_dimension,
    ),
    **dict.fromkeys(
        ("index", "index_put", "_index_put_impl", "_unsafe_index", "_unsafe_index_put"),
        _of_each_dimension,
    ),
    **dict.fromkeys(
        ("take", "put"),
        lambda args: [_index(args[1], args[0].layout.n_elements, is_from_the_end=True)],
    ),
    **dict.fromkeys(
        ("max_unpool2d", "max_unpool3d"), lambda args: [_index(args[1], math.prod(args[2]))]
    ),
    **dict.fromkeys(
        ("nll_loss_forward", "nll_loss2d_forward"),
        partial(_classes, scores=0, target=1, ignored=4),
    ),
    **dict.fromkeys(
        ("nll_loss_backward", "nll_loss2d_backward"),
        partial(_classes, scores=1, target=2, ignored=5),
    ),
    "embedding": lambda args: [_index(args[1], args[0].layout.sizes[0])],
    "bernoulli": _probabilities,
    "normal": lambda args: _if_tensor(args[1] if len(args) > 1 else None, math.inf),
    "poisson": lambda args: _if_tensor(args[0], math.inf),
    "binary_cross_entropy": lambda args: [ValueRange(item, 0, 1) for item in args[:2]],
}
# To know whether these are right takes as long as to compute them, or they are rare.
_COMPUTED_AT_ONCE = frozenset(
    {
        *("multi_margin_loss", "multi_margin_loss_backward"),
        *("multilabel_margin_loss_forward", "multilabel_margin_loss_backward"),
        *("fractional_max_pool2d_backward", "fractional_max_pool3d_backward"),
        *("masked_scatter", "embedding_renorm", "_embedding_bag", "_embedding_bag_forward_only"),
        *("multinomial", "_ctc_loss", "searchsorted", "segment_reduce"),
        *("cholesky", "linalg_eig", "linalg_lstsq", "linalg_lu_solve", "lu_unpack"),
        *("_linalg_eigh", "_linalg_svd"),
    }
)
