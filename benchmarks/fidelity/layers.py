"""Layers, losses and optimizers to record: each function sets up inputs and returns the call."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from benchmarks.fidelity.operators import Tensor, normal, whole_numbers
from gpulab.device.work import Work

_VOCABULARY = 32_000


def linear(dtype: torch.dtype, batch: int, n_in: int, n_out: int) -> Work:
    """Apply a linear layer with bias."""
    x, weight, bias = normal(dtype, batch, n_in), normal(dtype, n_out, n_in), normal(dtype, n_out)
    return lambda: functional.linear(x, weight, bias)


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


def convolution(dtype: torch.dtype, shape: dict[str, Any]) -> tuple[Tensor, Tensor, Work]:
    """Return images, weights, and the call that convolves them."""
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
    """Convolve images; with ``float32`` cuDNN uses TF32, which is PyTorch's default."""
    return convolution(dtype, shape)[2]


def conv_backward(dtype: torch.dtype, **shape: Any) -> Work:  # noqa: ANN401 # as in conv
    """Convolve images, and compute the gradients of images and weights."""
    x, weight, call = convolution(dtype, shape)
    return forward_and_backward(call, x, weight)


def forward_and_backward(call: Callable[[], Any], *inputs: Tensor) -> Work:
    """Return the call followed by its backward pass, without accumulating gradients."""
    for tensor in inputs:
        tensor.requires_grad_()
    # The forward pass runs once here, so that libraries are loaded and the shape is known.
    gradient = torch.ones_like(call())
    return lambda: torch.autograd.grad(call(), inputs, gradient)


IMAGES: dict[str, Callable[[Tensor], object]] = {
    "max_pool": lambda x: functional.max_pool2d(x, 2),
    "avg_pool": lambda x: functional.avg_pool2d(x, 2),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2, mode="nearest"),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
}


def images(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Pool images or scale them up."""
    x, call = normal(dtype, batch, channels, size, size), IMAGES[op]
    return lambda: call(x)


def attending(
    dtype: torch.dtype, op: str, shape: dict[str, int]
) -> tuple[list[Tensor], Callable[[], Tensor]]:
    """Return queries, keys and values, and the call of attention on them."""
    q, k, v = inputs = [normal(dtype, *shape.values()) for _ in range(3)]
    causal = op.startswith("causal")
    call = functional.scaled_dot_product_attention
    return inputs, lambda: call(q, k, v, is_causal=causal)


def attention(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Apply attention with the kernel that PyTorch chooses; sizes: batch, heads, length, dim."""
    return attending(dtype, op, shape)[1]


def attention_backward(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Apply attention, and compute the gradients of queries, keys and values."""
    inputs, call = attending(dtype, op, shape)
    return forward_and_backward(call, *inputs)


def cross_entropy(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Compute the mean loss of a classification."""
    x, labels = normal(dtype, rows, classes), whole_numbers(classes, rows)
    return lambda: functional.cross_entropy(x, labels)


def cross_entropy_backward(dtype: torch.dtype, rows: int, classes: int) -> Work:
    """Compute the mean loss of a classification and its gradient."""
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
    """Step an optimizer, or clip the gradients."""
    parameters = [normal(dtype, n).requires_grad_() for _ in range(n_tensors)]
    for parameter in parameters:
        parameter.grad = normal(dtype, n)
    call: Work = OPTIMIZERS[op](parameters)
    return call
