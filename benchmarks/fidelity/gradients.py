"""Single operators of backward passes and of optimizers."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.fidelity import layers as layer
from benchmarks.fidelity.operators import Tensor, normal, whole_numbers
from gpulab.device.work import Work


def gradient(call: Callable[[], Any], *inputs: Tensor) -> Work:
    """Return the backward pass alone; the forward pass runs here, once."""
    for tensor in inputs:
        tensor.requires_grad_()
    result = call()
    ones = torch.ones_like(result)
    return lambda: torch.autograd.grad(result, inputs, ones, retain_graph=True)


def conv_gradient(dtype: torch.dtype, **shape: Any) -> Work:  # noqa: ANN401 # numbers, and one name
    """Backward pass of a convolution, to images and weights."""
    x, weight, call = layer.convolution(dtype, shape)
    return gradient(call, x, weight)


def attention_gradient(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Backward pass of attention, to queries, keys and values."""
    inputs, call = layer.attending(dtype, op, shape)
    return gradient(call, *inputs)


def nll(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Pick the scores of the labels and take their mean."""
    x, labels = normal(dtype, rows, classes), whole_numbers(classes, rows)
    return lambda: functional.nll_loss(x, labels)


def nll_gradient(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Backward pass of the mean of the labels' scores."""
    x, labels = normal(dtype, rows, classes), whole_numbers(classes, rows)
    return gradient(lambda: functional.nll_loss(x, labels), x)


def softmax_gradient(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Backward pass of a softmax or of its logarithm."""
    x, call = normal(dtype, rows, columns), layer_of_rows[op]
    return gradient(lambda: call(x, -1), x)


layer_of_rows: dict[str, Callable[..., Tensor]] = {
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
}


def layer_norm_gradient(dtype: torch.dtype, rows: int, columns: int) -> Work:
    """Backward pass of a layer norm."""
    x, weight, bias = normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, columns)
    return gradient(lambda: functional.layer_norm(x, (columns,), weight, bias), x, weight, bias)


def batch_norm_gradient(dtype: torch.dtype, batch: int, channels: int, size: int) -> Work:
    """Backward pass of a batch norm in training."""
    x = normal(dtype, batch, channels, size, size)
    mean, variance, weight, bias = (torch.ones(channels, device="cuda") for _ in range(4))
    call = functional.batch_norm
    return gradient(lambda: call(x, mean, variance, weight, bias, training=True), x, weight, bias)


def embedding_gradient(dtype: torch.dtype, n: int, columns: int) -> Work:
    """Backward pass of an embedding, to its table."""
    table, index = normal(dtype, 32_000, columns), whole_numbers(32_000, n)
    return gradient(lambda: functional.embedding(index, table), table)


_POINTWISE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "sub": torch.sub,
    "div": torch.div,
    "sqrt": lambda a, _: a.sqrt(),
    "sigmoid": lambda a, _: a.sigmoid(),
    "silu": lambda a, _: functional.silu(a),
    "square": lambda a, _: a**2,
    "neg": lambda a, _: -a,
    "sin": lambda a, _: a.sin(),
    "log": lambda a, _: a.log(),
    "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "add number": lambda a, _: a + 1.0,
    "mul in place": lambda a, _: a.mul_(1.0),
    "gelu back": torch.ops.aten.gelu_backward,
    "relu back": lambda a, b: torch.ops.aten.threshold_backward(a, b, 0),
}


def pointwise(dtype: torch.dtype, op: str, n: int) -> Work:
    """Apply an operator that the other groups do not have."""
    a, b, call = normal(dtype, n), normal(dtype, n), _POINTWISE[op]
    return lambda: call(a, b)


FOREACH: dict[str, Callable[[list[list[Tensor]]], object]] = {
    "add number": lambda p: torch._foreach_add_(p[0], 1.0),
    "add": lambda p: torch._foreach_add_(p[0], p[1], alpha=-1e-3),
    "mul number": lambda p: torch._foreach_mul_(p[0], 0.9),
    "lerp": lambda p: torch._foreach_lerp_(p[0], p[1], 0.1),
    "addcmul": lambda p: torch._foreach_addcmul_(p[0], p[1], p[1], 0.1),
    "addcdiv": lambda p: torch._foreach_addcdiv_(p[0], p[1], p[2], 0.1),
    "addcdiv numbers": lambda p: torch._foreach_addcdiv_(p[0], p[1], p[2], [0.1] * len(p[0])),
    "sqrt": lambda p: torch._foreach_sqrt(p[2]),
    "div numbers": lambda p: torch._foreach_div_(p[0], [1.1] * len(p[0])),
    "mul tensor": lambda p: torch._foreach_mul_(p[0], p[0][0].new_ones(())),
    "norm": lambda p: torch._foreach_norm(p[0]),
}


def foreach(dtype: torch.dtype, op: str, n_tensors: int, n: int) -> Work:
    """Apply one operator to lists of tensors."""
    parts = [[normal(dtype, n).abs_() for _ in range(n_tensors)] for _ in range(3)]
    call = FOREACH[op]
    return lambda: call(parts)
