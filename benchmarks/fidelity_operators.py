"""The operators that are recorded: each function sets up its inputs and returns the call."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

Work = Callable[[], object]
Tensor = torch.Tensor

_VOCABULARY = 32_000


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


def linear(dtype: torch.dtype, batch: int, n_in: int, n_out: int) -> Work:
    """Apply a linear layer with bias."""
    x, weight, bias = normal(dtype, batch, n_in), normal(dtype, n_out, n_in), normal(dtype, n_out)
    return lambda: functional.linear(x, weight, bias)


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
    """Fill where a mask says so."""
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
    """Put matrices side by side."""
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
    """Factorize a symmetric matrix, without a check on the host."""
    a = normal(dtype, n, n)
    matrix = a @ a.t() + n * torch.eye(n, device="cuda", dtype=dtype)
    return lambda: torch.linalg.cholesky_ex(matrix)


def layer_norm(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Normalize each row."""
    x, weight, bias = normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, columns)
    return lambda: functional.layer_norm(x, (columns,), weight, bias)


def rms_norm(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Divide each row by its root mean square."""
    x, weight = normal(dtype, rows, columns), normal(dtype, columns)
    return lambda: functional.rms_norm(x, (columns,), weight)


def batch_norm(dtype: torch.dtype, batch: int, channels: int, size: int) -> Work:
    """Normalize each channel over the batch, as in training."""
    x = normal(dtype, batch, channels, size, size)
    mean, variance, weight, bias = (torch.ones(channels, device="cuda") for _ in range(4))
    return lambda: functional.batch_norm(x, mean, variance, weight, bias, training=True)


def group_norm(dtype: torch.dtype, batch: int, channels: int, size: int, groups: int) -> Work:
    """Normalize groups of channels."""
    x, weight, bias = (
        normal(dtype, batch, channels, size, size),
        normal(dtype, channels),
        normal(dtype, channels),
    )
    return lambda: functional.group_norm(x, groups, weight, bias)


def dropout(dtype: torch.dtype, n: int) -> Work:
    """Set a tenth of the elements to zero."""
    x = normal(dtype, n)
    return lambda: functional.dropout(x, 0.1, training=True)


def embedding(dtype: torch.dtype, n: int, columns: int) -> Work:
    """Look up rows of a table of 32,000."""
    table, index = normal(dtype, _VOCABULARY, columns), whole_numbers(_VOCABULARY, n)
    return lambda: functional.embedding(index, table)


def gather(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Take an element of each row for each element of the result."""
    a, index = normal(dtype, rows, columns), whole_numbers(columns, rows, columns)
    return lambda: a.gather(1, index)


def index_select(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Take rows in a random order."""
    a, index = normal(dtype, rows, columns), whole_numbers(rows, rows)
    return lambda: a.index_select(0, index)


def scatter_add(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Add each element to one of the same row."""
    target, source = normal(dtype, rows, columns), normal(dtype, rows, columns)
    index = whole_numbers(columns, rows, columns)
    return lambda: target.scatter_add_(1, index, source)


def _convolution(dtype: torch.dtype, shape: dict[str, Any]) -> tuple[Tensor, Tensor, Work]:
    groups, kernel, stride = shape.get("groups", 1), shape["kernel"], shape.get("stride", 1)
    x = normal(dtype, shape["batch"], shape["channels"], shape["size"], shape["size"])
    weight = normal(dtype, shape["filters"], shape["channels"] // groups, kernel, kernel)
    if shape.get("layout") == "channels_last":
        x = x.to(memory_format=torch.channels_last)
        weight = weight.to(memory_format=torch.channels_last)
    padding = kernel // 2
    call = functional.conv2d
    return x, weight, lambda: call(x, weight, None, stride, padding, 1, groups)


def conv(dtype: torch.dtype, **shape: Any) -> Work:  # noqa: ANN401 # numbers, and one name
    """Convolve images; ``float32`` uses TF32 in cuDNN, as PyTorch does unless told not to."""
    return _convolution(dtype, shape)[2]


def conv_backward(dtype: torch.dtype, **shape: Any) -> Work:  # noqa: ANN401 # as in conv
    """Convolve images, and go back to the images and the weights."""
    x, weight, call = _convolution(dtype, shape)
    return forward_and_backward(call, x, weight)


def forward_and_backward(call: Callable[[], Any], *inputs: Tensor) -> Work:
    """Return the call followed by its gradients, without accumulating these."""
    for tensor in inputs:
        tensor.requires_grad_()
    gradient = torch.ones_like(call())
    return lambda: torch.autograd.grad(call(), inputs, gradient)


IMAGES: dict[str, Callable[[Tensor], object]] = {
    "max_pool": lambda x: functional.max_pool2d(x, 2),
    "avg_pool": lambda x: functional.avg_pool2d(x, 2),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
}


def images(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Make images smaller or larger."""
    x, call = normal(dtype, batch, channels, size, size), IMAGES[op]
    return lambda: call(x)


def _attention(
    dtype: torch.dtype, op: str, shape: dict[str, int]
) -> tuple[list[Tensor], Callable[[], Tensor]]:
    q, k, v = inputs = [normal(dtype, *shape.values()) for _ in range(3)]
    causal = op.startswith("causal")
    call = functional.scaled_dot_product_attention
    return inputs, lambda: call(q, k, v, is_causal=causal)


def attention(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Attend, by the kernel that PyTorch chooses; batch, heads, length and dim."""
    return _attention(dtype, op, shape)[1]


def attention_backward(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Attend, and go back to queries, keys and values."""
    inputs, call = _attention(dtype, op, shape)
    return forward_and_backward(call, *inputs)


def cross_entropy(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Take the mean loss of a classification."""
    x, labels = normal(dtype, rows, classes), whole_numbers(classes, rows)
    return lambda: functional.cross_entropy(x, labels)


def cross_entropy_backward(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Take the mean loss of a classification, and its gradient."""
    x, labels = normal(dtype, rows, classes), whole_numbers(classes, rows)
    return forward_and_backward(lambda: functional.cross_entropy(x, labels), x)


OPTIMIZERS: dict[str, Callable[[list[Tensor]], Any]] = {
    "Adam foreach": lambda p: torch.optim.Adam(p, foreach=True).step,
    "Adam fused": lambda p: torch.optim.Adam(p, fused=True).step,
    "AdamW foreach": lambda p: torch.optim.AdamW(p, foreach=True).step,
    "AdamW fused": lambda p: torch.optim.AdamW(p, fused=True).step,
    "SGD foreach": lambda p: torch.optim.SGD(p, 1e-3, foreach=True).step,
    "SGD momentum foreach": lambda p: torch.optim.SGD(p, 1e-3, 0.9, foreach=True).step,
    "clip_grad_norm": lambda p: lambda: torch.nn.utils.clip_grad_norm_(p, 1.0),
}


def optimizer(dtype: torch.dtype, op: str, n_tensors: int, n: int) -> Work:
    """Change parameters by their gradients."""
    parameters = [normal(dtype, n).requires_grad_() for _ in range(n_tensors)]
    for parameter in parameters:
        parameter.grad = normal(dtype, n)
    call: Work = OPTIMIZERS[op](parameters)
    return call


CREATIONS: dict[str, Callable[..., object]] = {
    "arange": torch.arange,
    "zeros": torch.zeros,
    "ones": torch.ones,
    "randn": torch.randn,
    "rand": torch.rand,
}


def create(dtype: torch.dtype, op: str, n: int) -> Work:
    """Make a tensor on the GPU."""
    call = CREATIONS[op]
    return lambda: call(n, device="cuda", dtype=dtype)


def bernoulli(dtype: torch.dtype, n: int) -> Work:
    """Draw zeros and ones in place."""
    x = normal(dtype, n)
    return lambda: x.bernoulli_(0.5)
