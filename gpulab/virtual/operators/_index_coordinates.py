"""Compute the coordinates of calls with an index: gather, scatter, embeddings, selections."""

from typing import Any

import torch

from gpulab.virtual.operators._operator_call import (
    Coordinates,
    OperatorCall,
    largest,
    n_indexed,
)
from gpulab.virtual.operators._size_coordinates import (
    dtype_name,
    last_size,
    log2_alignment,
    log2_size,
)


def indexed(
    call: OperatorCall, *, is_read: bool = False, is_gradient: bool = False
) -> Coordinates:
    """Return how many elements a call reads or writes by an index, in which pieces, and where.

    With ``is_read`` the call only reads the table; with ``is_gradient`` its first argument is what
    it adds to a new table.
    """
    reads = call.reads
    table = call.largest_written if is_gradient else reads[0]
    others = (reads if is_gradient else reads[1:]) or reads
    index = largest([item for item in others if not item.dtype.is_floating_point] or others)
    values = call.largest_written if is_read else largest(others)
    if call.name == "index_fill":  # the value is a number
        n, last = n_indexed(call), last_size(table)
    else:
        n, last = values.n_elements, last_size(values)
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
        _way_of(call),
        "expanded" if is_expanded else "whole",
        call.side if call.name in {"gather", "scatter_add", "scatter"} else "",
    )


def _way_of(call: OperatorCall) -> str:
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


def surface_of_index(call: OperatorCall) -> str:
    """Return the surface of reads by an index, or by a mask."""
    return "selection" if _way_of(call) == "mask" else "index"


def surface_of_index_put(call: OperatorCall) -> str:
    """Return the surface of writes by an index, or of additions."""
    # Additions that may meet at one element are sorted first.
    return "index add" if _way_of(call) == "add" else "index write"
