"""Reductions, scans and softmax to record, beyond those of ``operators``: statistics of rows."""

from collections.abc import Callable

import torch

from benchmarks.fidelity.operators import REDUCTIONS, Tensor, normal
from gpulab.device.work import Work

STATISTICS: dict[str, Callable[..., object]] = {
    "std": torch.std,
    "var_mean": torch.var_mean,
    "norm": torch.linalg.vector_norm,
    "norm 1": lambda a, dim=None: torch.linalg.vector_norm(a, 1, dim=dim),
    "norm inf": lambda a, dim=None: torch.linalg.vector_norm(a, torch.inf, dim=dim),
    "logsumexp": lambda a, dim=0: torch.logsumexp(a, dim=dim),
    "min": torch.min,
    "argmin": torch.argmin,
    "amin": torch.amin,
    "aminmax": torch.aminmax,
    "prod": torch.prod,
    "all": torch.all,
    "any": torch.any,
    "nansum": torch.nansum,
    "count_nonzero": torch.count_nonzero,
    "sum in float32": lambda a, **dim: torch.sum(a, dtype=torch.float32, **dim),
}


def statistic(dtype: torch.dtype, op: str, rows: int, columns: int, dim: int) -> Work:
    """Compute a statistic of each row, or of each column."""
    a, call = normal(dtype, rows, columns), STATISTICS[op]
    return lambda: call(a, dim=dim)


def statistic_of_all(dtype: torch.dtype, op: str, n: int) -> Work:
    """Compute a statistic of a whole tensor."""
    a, call = normal(dtype, n), STATISTICS[op]
    return lambda: call(a)


def reduce_middle(dtype: torch.dtype, op: str, outer: int, length: int, inner: int) -> Work:
    """Reduce the middle one of three dimensions."""
    a, call = normal(dtype, outer, length, inner), (REDUCTIONS | STATISTICS)[op]
    return lambda: call(a, dim=1)


_OVER_IMAGES: dict[str, Callable[[Tensor], object]] = {
    "sum of channels": lambda x: x.sum((0, 2, 3)),
    "mean of images": lambda x: x.mean((2, 3)),
    "var of channels": lambda x: x.var((0, 2, 3)),
    "max of images": lambda x: x.amax((2, 3)),
    "sum over channels": lambda x: x.sum(1),
    "argmax over channels": lambda x: x.argmax(1),
    "sum over batch": lambda x: x.sum(0),
}


def reduce_images(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Reduce some of the dimensions of images."""
    x, call = normal(dtype, batch, channels, size, size), _OVER_IMAGES[op]
    return lambda: call(x)


_SCANS: dict[str, Callable[[Tensor, int], object]] = {
    "cumsum": torch.cumsum,
    "cumprod": torch.cumprod,
    "cummax": torch.cummax,
    "cummin": torch.cummin,
    "logcumsumexp": torch.logcumsumexp,
}


def scan(dtype: torch.dtype, op: str, rows: int, columns: int, dim: int) -> Work:
    """Scan each row, or each column."""
    a, call = normal(dtype, rows, columns), _SCANS[op]
    return lambda: call(a, dim)


_ACROSS: dict[str, Callable[[Tensor], object]] = {
    "softmax": lambda a: a.softmax(1),
    "log_softmax": lambda a: a.log_softmax(1),
}


def softmax_across(dtype: torch.dtype, op: str, outer: int, length: int, inner: int) -> Work:
    """Apply a softmax along the middle one of three dimensions."""
    a, call = normal(dtype, outer, length, inner), _ACROSS[op]
    return lambda: call(a)
