"""Reads, writes and additions at places that an index gives, to record."""

from collections.abc import Callable

import torch

from benchmarks.fidelity.operators import Tensor, normal, whole_numbers
from gpulab.device.work import Work

_NOT_SCALED = False  # by the frequency of an index

# Each takes the table, the index and one value for each place of the index.
_ROWS: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "index_add": lambda t, i, v: t.index_add_(0, i, v),
    "index_copy": lambda t, i, v: t.index_copy_(0, i, v),
    "index_fill": lambda t, i, _: t.index_fill_(0, i, 1.0),
    "index_put": lambda t, i, v: t.index_put_((i,), v),
    "index_put add": lambda t, i, v: t.index_put_((i,), v, accumulate=True),
    "embedding back": lambda t, i, v: torch.ops.aten.embedding_dense_backward(
        v, i, len(t), -1, _NOT_SCALED
    ),
    "index": lambda t, i, _: t[i],
    "index_select": lambda t, i, _: t.index_select(0, i),
    "gather": lambda t, i, v: t.gather(0, i[:, None].expand(v.shape)),
    "scatter_add": lambda t, i, v: t.scatter_add_(0, i[:, None].expand(v.shape), v),
    "scatter": lambda t, i, v: t.scatter_(0, i[:, None].expand(v.shape), v),
    "scatter max": lambda t, i, v: t.scatter_reduce_(0, i[:, None].expand(v.shape), v, "amax"),
}


def indexed_rows(dtype: torch.dtype, op: str, targets: int, n: int, columns: int) -> Work:
    """Read, write or add rows of a table at random places."""
    table, values, call = normal(dtype, targets, columns), normal(dtype, n, columns), _ROWS[op]
    index = whole_numbers(targets, n)
    return lambda: call(table, index, values)


_PLACES: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "put": lambda t, i, v: t.put_(i, v),
    "put add": lambda t, i, v: t.put_(i, v, accumulate=True),
    "take": lambda t, i, _: t.take(i),
    "index": lambda t, i, _: t[i],
    "index_put": lambda t, i, v: t.index_put_((i,), v),
    "index_put add": lambda t, i, v: t.index_put_((i,), v, accumulate=True),
    "scatter_add": lambda t, i, v: t.scatter_add_(0, i, v),
    "scatter": lambda t, i, v: t.scatter_(0, i, v),
    "scatter mean": lambda t, i, v: t.scatter_reduce_(0, i, v, "mean"),
    "index_add": lambda t, i, v: t.index_add_(0, i, v),
}


def indexed_places(dtype: torch.dtype, op: str, targets: int, n: int) -> Work:
    """Read, write or add single elements at random places."""
    table, values, call = normal(dtype, targets), normal(dtype, n), _PLACES[op]
    index = whole_numbers(targets, n)
    return lambda: call(table, index, values)


_COUNTED: dict[str, Callable[[Tensor, int], object]] = {
    "bincount": lambda i, bins: torch.bincount(i, minlength=bins),
    "histc": lambda i, bins: torch.histc(i.float(), bins, 0, bins),
    "one_hot": lambda i, _: torch.nn.functional.one_hot(i, 16),
}


def counted(dtype: torch.dtype, op: str, bins: int, n: int) -> Work:
    """Count whole numbers, or write them as ones and zeros."""
    index, call = whole_numbers(bins if op != "one_hot" else 16, n).to(dtype), _COUNTED[op]
    return lambda: call(index, bins)


def pairs(dtype: torch.dtype, op: str, rows: int, columns: int, n: int) -> Work:
    """Read, write or add the elements of a matrix at pairs of random places."""
    table, values = normal(dtype, rows, columns), normal(dtype, n)
    index = (whole_numbers(rows, n), whole_numbers(columns, n))
    calls: dict[str, Work] = {
        "read": lambda: table[index],
        "write": lambda: table.index_put_(index, values),
        "add": lambda: table.index_put_(index, values, accumulate=True),
    }
    return calls[op]
