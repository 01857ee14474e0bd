"""Operators that select or order elements, to record: masks, sorts, medians, searches, sets."""

from collections.abc import Callable

import torch

from benchmarks.fidelity.operators import Tensor, normal
from gpulab.device.work import Work

_BY_VALUE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "masked_select": torch.masked_select,
    "mask index": lambda a, mask: a[mask],
    "nonzero": lambda _, mask: mask.nonzero(),
    "where": lambda _, mask: torch.where(mask),
    "write by mask": lambda a, mask: a.index_put_((mask,), a.new_ones(())),
    "unique": lambda a, _: a.unique(),
    "unique_consecutive": lambda a, _: a.unique_consecutive(),
}


def selected(dtype: torch.dtype, op: str, n: int) -> Work:
    """Select elements, so that the size of the result depends on values."""
    a, call = normal(dtype, n), _BY_VALUE[op]
    mask = normal(torch.float32, n) > 0
    return lambda: call(a, mask)


_LINES: dict[str, Callable[[Tensor, Tensor], object]] = {
    "sort": lambda a, _: a.sort(),
    "argsort down": lambda a, _: a.argsort(descending=True),
    "median": lambda a, _: a.median(),
    "kthvalue": lambda a, _: a.kthvalue(1 + len(a) // 3),
    "topk": lambda a, _: a.topk(10),
    "isin": torch.isin,
    "searchsorted": lambda a, few: torch.searchsorted(few, a),
    "bucketize": torch.bucketize,
    "quantile": lambda a, _: a.float().quantile(0.9),
}


def ordered(dtype: torch.dtype, op: str, n: int, few: int) -> Work:
    """Order or search a line; ``few`` is the number of elements that are searched in."""
    a, call = normal(dtype, n), _LINES[op]
    searched = normal(dtype, few).sort().values
    return lambda: call(a, searched)


_ROWS: dict[str, Callable[[Tensor], object]] = {
    "median": lambda a: a.median(-1),
    "kthvalue": lambda a: a.kthvalue(1 + a.shape[-1] // 3),
    "topk": lambda a: a.topk(5),
    "topk smallest": lambda a: a.topk(16, largest=False),
    "sort": lambda a: a.sort(),
    "sort down": lambda a: a.sort(descending=True),
    "stable sort": lambda a: a.sort(stable=True),
    "sort columns": lambda a: a.sort(0),
    "argsort columns": lambda a: a.argsort(0),
}


def ordered_rows(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Order each row or column of a matrix, or select from it."""
    a, call = normal(dtype, rows, columns), _ROWS[op]
    return lambda: call(a)


def drawn_rows(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Draw indices by their weights, or in a random order."""
    weights = torch.rand(rows, columns, device="cuda", dtype=dtype)
    calls: dict[str, Work] = {
        "multinomial": lambda: weights.multinomial(1),
        "without replacement": lambda: weights.multinomial(8),
        "randperm": lambda: torch.randperm(rows * columns, device="cuda"),
        "exponential": weights.exponential_,
        "normal": weights.normal_,
        "uniform": weights.uniform_,
        "randint": lambda: torch.randint(100, (rows, columns), device="cuda"),
    }
    return calls[op]
