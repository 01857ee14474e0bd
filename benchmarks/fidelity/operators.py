"""Operators to record: each function sets up its inputs and returns the call."""

from collections.abc import Callable

import torch
from torch.nn import functional

from gpulab.device.work import Work

Tensor = torch.Tensor


def normal(dtype: torch.dtype, *shape: int) -> Tensor:
    """Return random numbers on the GPU."""
    return torch.randn(shape, device="cuda", dtype=dtype)


def whole_numbers(high: int, *shape: int) -> Tensor:
    """Return random whole numbers below ``high`` on the GPU."""
    return torch.randint(high, shape, device="cuda")


def matmul(dtype: torch.dtype, m: int, k: int, n: int) -> Work:
    """Multiply two matrices."""
    a, b = normal(dtype, m, k), normal(dtype, k, n)
    return lambda: a @ b


def bmm(dtype: torch.dtype, batch: int, m: int, k: int, n: int) -> Work:
    """Multiply a batch of matrices."""
    a, b = normal(dtype, batch, m, k), normal(dtype, batch, k, n)
    return lambda: torch.bmm(a, b)


ELEMENTWISE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "add in place": lambda a, b: a.add_(b),
    "exp": lambda a, _: a.exp(),
    "relu": lambda a, _: a.relu(),
    "gelu": lambda a, _: functional.gelu(a),
    "tanh": lambda a, _: a.tanh(),
    "clamp": lambda a, _: a.clamp(-1.0, 1.0),
    "copy": lambda a, b: b.copy_(a),
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "to float16": lambda a, _: a.to(torch.float16),
    "to bfloat16": lambda a, _: a.to(torch.bfloat16),
    "to float32": lambda a, _: a.to(torch.float32),
    "fill": lambda a, _: a.fill_(1.0),
    "zero": lambda a, _: a.zero_(),
}


def elementwise(dtype: torch.dtype, op: str, n: int) -> Work:
    """Apply an operator element by element."""
    a, b, call = normal(dtype, n), normal(dtype, n), ELEMENTWISE[op]
    return lambda: call(a, b)


def where(dtype: torch.dtype, n: int) -> Work:
    """Choose between two tensors."""
    a, b, mask = normal(dtype, n), normal(dtype, n), normal(torch.float32, n) > 0
    return lambda: torch.where(mask, a, b)


def masked_fill(dtype: torch.dtype, n: int) -> Work:
    """Fill where a mask is true."""
    a, mask = normal(dtype, n), normal(torch.float32, n) > 0
    return lambda: a.masked_fill(mask, 0.0)


def add_row(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Add one row to every row."""
    a, row = normal(dtype, rows, columns), normal(dtype, columns)
    return lambda: a + row


def transposed_copy(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Write the transpose of a matrix to new memory."""
    a = normal(dtype, rows, columns)
    return lambda: a.t().contiguous()


def cat(dtype: torch.dtype, n_parts: int, rows: int, columns: int) -> Work:
    """Concatenate matrices side by side."""
    parts = [normal(dtype, rows, columns) for _ in range(n_parts)]
    return lambda: torch.cat(parts, dim=1)


REDUCTIONS: dict[str, Callable[..., object]] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "max": torch.max,
    "argmax": torch.argmax,
    "var": torch.var,
}


def reduce_all(dtype: torch.dtype, op: str, n: int) -> Work:
    """Reduce a whole tensor to one number."""
    a, call = normal(dtype, n), REDUCTIONS[op]
    return lambda: call(a)


def reduce_dim(dtype: torch.dtype, op: str, rows: int, columns: int, dim: int) -> Work:
    """Reduce a matrix along one dimension."""
    a, call = normal(dtype, rows, columns), REDUCTIONS[op]
    return lambda: call(a, dim=dim)


ALONG_ROWS: dict[str, Callable[[Tensor], object]] = {
    "softmax": lambda a: a.softmax(-1),
    "log_softmax": lambda a: a.log_softmax(-1),
    "cumsum": lambda a: a.cumsum(-1),
    "sort": lambda a: a.sort(-1),
    "argsort": lambda a: a.argsort(-1),
    "topk 8": lambda a: a.topk(8, -1),
    "topk 64": lambda a: a.topk(64, -1),
    "rfft": torch.fft.rfft,
    "fft": torch.fft.fft,
}


def along_rows(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Apply an operator along each row of a matrix."""
    a, call = normal(dtype, rows, columns), ALONG_ROWS[op]
    return lambda: call(a)


def cholesky(dtype: torch.dtype, n: int) -> Work:
    """Compute a Cholesky factor, without a check on the host."""
    a = normal(dtype, n, n)
    # Positive definite, or there would be no factor.
    matrix = a @ a.t() + n * torch.eye(n, device="cuda", dtype=dtype)
    return lambda: torch.linalg.cholesky_ex(matrix)


def gather(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Gather elements within each row."""
    a, index = normal(dtype, rows, columns), whole_numbers(columns, rows, columns)
    return lambda: a.gather(1, index)


def index_select(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Take rows in a random order."""
    a, index = normal(dtype, rows, columns), whole_numbers(rows, rows)
    return lambda: a.index_select(0, index)


def scatter_add(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Add each element to a random one of the same row."""
    target, source = normal(dtype, rows, columns), normal(dtype, rows, columns)
    index = whole_numbers(columns, rows, columns)
    return lambda: target.scatter_add_(1, index, source)


CREATIONS: dict[str, Callable[..., object]] = {
    "arange": torch.arange,
    "zeros": torch.zeros,
    "ones": torch.ones,
    "randn": torch.randn,
    "rand": torch.rand,
}


def create(dtype: torch.dtype, op: str, n: int) -> Work:
    """Create a tensor on the GPU."""
    call = CREATIONS[op]
    return lambda: call(n, device="cuda", dtype=dtype)


def bernoulli(dtype: torch.dtype, n: int) -> Work:
    """Draw zeros and ones in place."""
    x = normal(dtype, n)
    return lambda: x.bernoulli_(0.5)
