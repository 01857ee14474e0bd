"""Coordinates of calls that move, index, select or order elements (see ``_coordinates``)."""

from math import ceil, prod
from typing import Any

import torch

from gpulab.virtual.kernels._coordinate_parts import (
    Coordinates,
    dtype_name,
    largest,
    largest_read,
    largest_written,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.kernels._operator_call import OperatorCall, n_indexed
from gpulab.virtual.tensors import TensorLayout

# Where the dimension is among the arguments of an operator, if it is not the second.
_DIM_AT = {"topk": 2, "kthvalue": 2, "roll": 2}
# PyTorch sorts rows of up to 32 elements by a warp and of up to 4,096 by a block. For longer rows
# the algorithm depends on whether there are at least 128.
_WARP_SORT, _BLOCK_SORT, _MANY_SEGMENTS = 32, 4_096, 128
# Rows of up to 2**13 elements are padded to a power of two before they are sorted.
_LONGEST_PADDED = 13
# A block of PyTorch's softmax along a dimension that is not the last.
_MOST_THREADS, _FEW_THREADS = 1_024, 64
# These only read the table.
_READERS = frozenset({"index", "_unsafe_index", "take", "gather", "index_select", "embedding"})
# Their first argument is what they add to a new table.
_GRADIENTS = frozenset({"embedding_dense_backward"})


def dims_of(call: OperatorCall) -> list[int]:
    """Return the dimensions that a call works along; empty if it takes the tensor as one line."""
    n_dims = max(1, len(call.reads[0].sizes))
    position = _DIM_AT.get(call.name, 1)
    given = call.kwargs.get("dim", call.args[position] if len(call.args) > position else None)
    if given is None and call.name in {"sort", "argsort", "topk", "kthvalue"}:
        given = -1
    items = given if isinstance(given, (list, tuple)) else [given]
    return [i % n_dims for i in items if isinstance(i, int) and not isinstance(i, bool)]


def side_of(call: OperatorCall, dims: list[int]) -> str:
    """Return whether the dimensions are the last one, another one, or several."""
    if len(dims) > 1:
        return "several"
    is_last = not dims or dims[0] == len(call.reads[0].sizes) - 1
    return "last" if is_last else "other"


def moved(call: OperatorCall) -> Coordinates:
    """Return the sizes of a call that only moves elements, and along which dimensions."""
    source, out = largest_read(call), largest_written(call)
    rows = [item.sizes[-1] if item.sizes else 1 for item in (source, out)]
    width = out.dtype.itemsize
    return (
        log2_size(out.n_elements),
        log2_size(source.n_elements),
        *(log2_size(row) for row in rows),
        *(log2_alignment(row * width) for row in rows),
        float(width),
        call.name,
        side_of(call, dims_of(call)) if call.name in {"roll", "flip"} else "",
    )


def strided(call: OperatorCall) -> Coordinates:
    """Return how the elements of a call's source lie in memory, in the order of its result.

    Dimensions whose elements follow one another in both are taken as one, as PyTorch does.
    """
    out, source = largest_written(call), _unlike(call)
    steps = _common_steps(out, source)
    (n, _, step), *rest = steps
    n_next, _, step_next = rest[0] if rest else (1, 0, 0)
    # The dimension along which the source's elements are neighbours.
    run, apart = next(((size, own) for size, own, other in steps if other == 1), (1, 0))
    width = out.dtype.itemsize
    return (
        log2_size(out.n_elements),
        float(len(steps)),
        log2_size(n),
        _step(step),
        log2_size(n_next),
        _step(step_next),
        log2_size(run),
        _step(apart),
        log2_alignment(n * width),
        log2_alignment(run * width),
        float(width),
        "copy" if call.name in {"clone", "copy", "_to_copy"} else "other",
        dtype_name(source),
    )


def is_rearranged(call: OperatorCall) -> bool:
    """Return whether a call's source or result has gaps, or their elements another order."""
    return len(_common_steps(largest_written(call), _unlike(call))) > 1


def _unlike(call: OperatorCall) -> TensorLayout:
    """Return the largest tensor among those that do not lie in memory as the result does."""
    out = largest_written(call)
    others = [item for item in call.reads if item.strides != out.strides]
    return largest(others or call.reads or call.writes)


def _step(step: int) -> float:
    """Return the logarithm of a stride; a repeated element counts as less than the next one."""
    return log2_size(step) if step else -1.0


def _common_steps(out: TensorLayout, source: TensorLayout) -> list[tuple[int, int, int]]:
    """Return size, stride in the result and stride in the source of each common dimension."""
    missing = len(out.sizes) - len(source.sizes)
    sizes = (*(1,) * missing, *source.sizes)
    strides = (*(0,) * missing, *source.strides)
    found: list[tuple[int, int, int]] = []
    # What is repeated along a dimension has no step there.
    theirs = [0 if size == 1 else step for size, step in zip(sizes, strides, strict=False)]
    for n, own, step in sorted(zip(out.sizes, out.strides, theirs, strict=False), key=_by_stride):
        if n == 1:
            continue
        if found and found[-1][0] * found[-1][1] == own and found[-1][0] * found[-1][2] == step:
            size, before, other = found[-1]
            found[-1] = (size * n, before, other)
        else:
            found.append((n, own, step))
    return found or [(1, 1, 1)]


def _by_stride(item: tuple[int, int, int]) -> int:
    return item[1]


def indexed(call: OperatorCall) -> Coordinates:
    """Return how many elements a call reads or writes by an index, in which pieces, and where."""
    reads = call.reads
    is_read, is_gradient = call.name in _READERS, call.name in _GRADIENTS
    table = largest_written(call) if is_gradient else reads[0]
    others = (reads if is_gradient else reads[1:]) or reads
    index = largest([item for item in others if not item.dtype.is_floating_point] or others)
    values = largest_written(call) if is_read else largest(others)
    if call.name == "index_fill":  # the value is a number
        n, last = n_indexed(call), table.sizes[-1] if table.sizes else 1
    else:
        n, last = values.n_elements, values.sizes[-1] if values.sizes else 1
    row = max(1, n // max(1, index.n_elements))
    width = table.dtype.itemsize
    is_expanded = index.span_bytes < index.n_elements * index.dtype.itemsize
    return (
        log2_size(n),
        log2_size(row),
        log2_size(last),
        log2_size(table.n_elements),
        log2_size(table.n_elements) - log2_size(n),
        log2_alignment(last * width),
        float(width),
        dtype_name(table),
        call.name,
        way_of(call),
        "expanded" if is_expanded else "whole",
        side_of(call, dims_of(call)) if call.name in {"gather", "scatter_add", "scatter"} else "",
    )


def way_of(call: OperatorCall) -> str:
    """Return what a call does with the values at its index: it writes them, adds them, or else."""
    if any(item.dtype is torch.bool for item in call.reads):
        return "mask"
    flag = next((item for item in call.args if isinstance(item, bool)), None)
    flag = call.kwargs.get("accumulate", flag)
    if call.name in {"index_put", "_index_put_impl", "put"} and flag:
        return "add"
    n_indices = sum(1 for item in _listed(call) if item is not None)
    word = next((item for item in call.args if isinstance(item, str)), "")
    return word or ("several" if n_indices > 1 else "")


def _listed(call: OperatorCall) -> list[Any]:
    return next((list(item) for item in call.args if isinstance(item, (list, tuple))), [])


def selected(call: OperatorCall) -> Coordinates:
    """Return the elements that are looked at and those that are selected."""
    source = call.reads[0]
    return (
        log2_size(source.n_elements),
        log2_size(call.n_out),
        float(len(source.sizes)),
        float(source.dtype.itemsize),
        call.name,
        dtype_name(source),
    )


def searched(call: OperatorCall) -> Coordinates:
    """Return how many elements are looked up, and among how many."""
    sizes = sorted((item.n_elements for item in call.reads), reverse=True)
    return (
        log2_size(call.n_out),
        log2_size(sizes[-1]),
        float(call.reads[0].dtype.itemsize),
        call.name,
    )


def ordered(call: OperatorCall) -> Coordinates:
    """Return the rows that are ordered, their length, and which of PyTorch's sorts is used."""
    source, dims = call.reads[0], dims_of(call)
    length = source.sizes[dims[0]] if dims and source.sizes else max(1, source.n_elements)
    rows = source.n_elements // max(1, length)
    width = source.dtype.itemsize
    return (
        log2_size(rows),
        log2_size(length),
        log2_size(rows) - log2_size(length),
        log2_alignment(length * width, 5),
        float(width),
        _sorter(rows, length),
        float(min(ceil(log2_size(length)), _LONGEST_PADDED)),
        call.name,
        dtype_name(source),
        side_of(call, dims),
    )


def _sorter(rows: int, length: int) -> str:
    """Return which of PyTorch's sorts is used: a warp or a block for each row, or passes."""
    if length <= _WARP_SORT:
        return "warp"
    if length <= _BLOCK_SORT:
        return "block"
    if rows == 1:
        return "all"
    return "segments" if rows < _MANY_SEGMENTS else "each"


def largest_few(call: OperatorCall) -> Coordinates:
    """Return the rows and their length, and how many elements of each are wanted."""
    *sizes, _, _, side = (*ordered(call)[:5], *ordered(call)[-3:])
    return (*sizes, float(call.args[1]), dtype_name(call.reads[0]), side)


def across(call: OperatorCall) -> Coordinates:
    """Return the sizes before, along and after the dimension that a call works along."""
    source, dims = largest_read(call), dims_of(call)
    dim = dims[0] if dims else len(source.sizes) - 1
    inner = prod(source.sizes[dim + 1 :])
    length = source.sizes[dim] if source.sizes else 1
    outer = source.n_elements / max(1, inner * length)
    width = source.dtype.itemsize
    # As PyTorch's softmax launches blocks (``SpatialSoftMax_getBlockSize``): if there are few
    # results next to one another, several threads share one.
    across_threads = min(max(inner, 1), _MOST_THREADS)
    along_threads = 1
    if across_threads <= _FEW_THREADS <= length:
        while across_threads * along_threads <= _MOST_THREADS and along_threads <= length:
            along_threads *= 2
        along_threads //= 2
    return (
        log2_size(length / along_threads),
        log2_size(along_threads),
        log2_size(outer * ceil(inner / across_threads)),
        log2_size(outer),
        log2_size(length),
        log2_size(inner),
        log2_size(source.n_elements),
        log2_alignment(inner * width),
        float(width),
        call.name,
        dtype_name(source),
    )
