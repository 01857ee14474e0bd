"""More elementwise operators, losses, matmuls, images and lists of tensors to record."""

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.fidelity import gradients
from benchmarks.fidelity.layers import forward_and_backward
from benchmarks.fidelity.operators import Tensor, normal, whole_numbers
from gpulab.device.work import Work

aten = torch.ops.aten
_FORWARD = False  # the gradient gets the input of the forward pass, and not its result

_UNARY: dict[str, Callable[[Tensor], object]] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("abs", "ceil", "cos", "erf", "erfinv", "expm1", "floor", "isnan", "log1p", "log2"),
            *("logical_not", "reciprocal", "round", "rsqrt", "sign", "sinh", "square", "tan"),
            *("trunc", "atan", "signbit", "frac", "digamma", "exp2", "isfinite", "nan_to_num"),
        )
    },
    **{
        name: getattr(functional, name)
        for name in (
            *("softplus", "leaky_relu", "elu", "hardswish", "hardtanh", "mish", "selu"),
            *("hardsigmoid", "logsigmoid", "relu6", "tanhshrink", "softsign", "glu"),
        )
    },
    "pow": lambda a: a.pow(3.5),
    "cube": lambda a: a**3,
    "add in place": lambda a: a.add_(1.0),
    "sub from number": lambda a: 1.0 - a,
    "div by number": lambda a: a / 3.0,
    "gt number": lambda a: a > 1.0,
    "relu in place": lambda a: a.relu_(),
    "clamp least": lambda a: a.clamp_min(0.1),
    "to bool": lambda a: a.bool(),
    "to int64": lambda a: a.long(),
    "to float64": lambda a: a.double(),
}


def unary(dtype: torch.dtype, op: str, n: int) -> Work:
    """Apply an operator to each element of one tensor."""
    a, call = normal(dtype, 2 * (n // 2 + 1)), _UNARY[op]
    return lambda: call(a)


_BINARY: dict[str, Callable[[Tensor, Tensor], object]] = {
    **{
        name: getattr(torch, name)
        for name in (
            *("maximum", "minimum", "atan2", "fmod", "remainder", "hypot", "logaddexp", "ne"),
            *("logical_and", "floor_divide", "copysign", "fmax", "le", "true_divide", "xlogy"),
        )
    },
    "pow": torch.pow,
    "add scaled": lambda a, b: a.add(b, alpha=0.5),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, b),
    "lerp tensor": lambda a, b: torch.lerp(a, b, b),
    "mul in place": lambda a, b: a.mul_(b),
    "sub in place": lambda a, b: a.sub_(b),
    "div in place": lambda a, b: a.div_(b),
    "sigmoid back": aten.sigmoid_backward,
    "tanh back": aten.tanh_backward,
    "silu back": aten.silu_backward,
    "leaky_relu back": lambda a, b: aten.leaky_relu_backward(a, b, 0.1, _FORWARD),
    "hardtanh back": lambda a, b: aten.hardtanh_backward(a, b, -1.0, 1.0),
    "elu back": lambda a, b: aten.elu_backward(a, 1.0, 1.0, 1.0, _FORWARD, b),
    "gelu tanh": lambda a, _: functional.gelu(a, approximate="tanh"),
    "mse back": lambda a, b: aten.mse_loss_backward(a, a, b, 1),
}


def binary(dtype: torch.dtype, op: str, n: int) -> Work:
    """Apply an operator to each pair of elements of two tensors."""
    a, b, call = normal(dtype, n), normal(dtype, n), _BINARY[op]
    return lambda: call(a, b)


_WHOLE: dict[str, Callable[[Tensor, Tensor], object]] = {
    "add": torch.add,
    "mul": torch.mul,
    "eq": torch.eq,
    "add number": lambda a, _: a + 1,
    "remainder": lambda a, _: a % 7,
    "floor_divide": lambda a, _: a // 3,
    "and": torch.bitwise_and,
    "or": torch.logical_or,
    "to float32": lambda a, _: a.float(),
    "clone": lambda a, _: a.clone(),
    "sum": lambda a, _: a.sum(),
    "max": lambda a, _: a.max(),
    "cumsum": lambda a, _: a.cumsum(0),
    "sort": lambda a, _: a.sort(),
}


def whole(dtype: torch.dtype, op: str, n: int) -> Work:
    """Apply an operator to whole numbers."""
    a, b = whole_numbers(100, n).to(dtype), whole_numbers(100, n).to(dtype)
    call = _WHOLE[op]
    return lambda: call(a, b)


_BROADCAST: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "mul row": lambda a, row, _: a * row,
    "sub column": lambda a, _, column: a - column,
    "div column": lambda a, _, column: a / column,
    "add row in place": lambda a, row, _: a.add_(row),
    "mul column in place": lambda a, _, column: a.mul_(column),
    "outer": lambda _, row, column: column * row,
    "gt column": lambda a, _, column: a > column,
    "where row": lambda a, row, _: torch.where(row > 0, a, 0.0),
    "fill by row": lambda a, row, _: a.masked_fill_(row.isnan(), 1.0),
    "add half": lambda a, row, _: a[:, : a.shape[1] // 2] + row[: a.shape[1] // 2],
}


def broadcast(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Combine a matrix with a row or a column."""
    a, row, column = normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, rows, 1)
    call = _BROADCAST[op]
    return lambda: call(a, row, column)


_COMPARED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mse": functional.mse_loss,
    "l1": functional.l1_loss,
    "smooth_l1": functional.smooth_l1_loss,
    "huber": functional.huber_loss,
    "soft margin": functional.soft_margin_loss,
    "cosine": lambda a, b: functional.cosine_similarity(a[None], b[None]),
    "bce with logits": functional.binary_cross_entropy_with_logits,
    "bce": lambda a, b: functional.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
    "kl_div": lambda a, b: functional.kl_div(a, b, reduction="batchmean"),
    "mse of each": lambda a, b: functional.mse_loss(a, b, reduction="none"),
}


def compared(dtype: torch.dtype, op: str, n: int) -> Work:
    """Compute the loss between two tensors."""
    a, b, call = normal(dtype, n), normal(dtype, n), _COMPARED[op]
    return lambda: call(a, b)


def compared_backward(dtype: torch.dtype, op: str, n: int) -> Work:
    """Compute the loss between two tensors, and its gradient."""
    a, b, call = normal(dtype, n), normal(dtype, n), _COMPARED[op]
    return forward_and_backward(lambda: call(a, b), a)


def turned_matmul(dtype: torch.dtype, op: str, m: int, k: int, n: int) -> Work:
    """Multiply matrices of which one or both are transposed, as backward passes do."""
    a = normal(dtype, m, k) if op[0] == "N" else normal(dtype, k, m).t()
    b = normal(dtype, k, n) if op[1] == "N" else normal(dtype, n, k).t()
    return lambda: a @ b


def turned_bmm(dtype: torch.dtype, op: str, batch: int, **sizes: int) -> Work:
    """Multiply a batch of matrices of which one or both are transposed."""
    m, k, n = sizes.values()
    a = normal(dtype, batch, m, k) if op[0] == "N" else normal(dtype, batch, k, m).mT
    b = normal(dtype, batch, k, n) if op[1] == "N" else normal(dtype, batch, n, k).mT
    return lambda: torch.bmm(a, b)


_VECTORS: dict[str, Callable[[Tensor, Tensor, Tensor], object]] = {
    "mv": lambda a, row, _: a @ row,
    "vm": lambda a, _, column: column @ a,
    "mv transposed": lambda a, _, column: a.t() @ column,
    "dot": lambda _, row, __: row @ row,
    "addmv": lambda a, row, column: torch.addmv(column, a, row),
    "outer": lambda _, row, column: torch.outer(column, row),
    "addr": lambda a, row, column: torch.addr(a, column, row),
}


def with_vector(dtype: torch.dtype, op: str, rows: int, columns: int) -> Work:
    """Multiply a matrix by a vector, or two vectors."""
    a, row, column = normal(dtype, rows, columns), normal(dtype, columns), normal(dtype, rows)
    call = _VECTORS[op]
    return lambda: call(a, row, column)


_MORE_IMAGES: dict[str, Callable[[Tensor], Tensor]] = {
    "adaptive_avg 1": lambda x: functional.adaptive_avg_pool2d(x, 1),
    "adaptive_avg 7": lambda x: functional.adaptive_avg_pool2d(x, 7),
    "adaptive_max 4": lambda x: functional.adaptive_max_pool2d(x, 4),
    "max_pool 3": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "max_pool 2": lambda x: functional.max_pool2d(x, 2),
    "avg_pool 3": lambda x: functional.avg_pool2d(x, 3, 1, 1),
    "avg_pool 2": lambda x: functional.avg_pool2d(x, 2),
    "nearest": lambda x: functional.interpolate(x, scale_factor=2),
    "bilinear": lambda x: functional.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic": lambda x: functional.interpolate(x, scale_factor=2, mode="bicubic"),
    "smaller": lambda x: functional.interpolate(x, scale_factor=0.5, mode="bilinear"),
}


def resized(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Pool or resize images."""
    x, call = normal(dtype, batch, channels, size, size), _MORE_IMAGES[op]
    return lambda: call(x)


def resized_gradient(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Backward pass of pooling or resizing."""
    x, call = normal(dtype, batch, channels, size, size), _MORE_IMAGES[op]
    return gradients.gradient(lambda: call(x), x)


_NORMS: dict[str, Callable[..., Tensor]] = {
    "batch norm eval": lambda x, w, b, m, v: functional.batch_norm(x, m, v, w, b),
    "instance norm": lambda x, w, b, *_: functional.instance_norm(x, weight=w, bias=b),
    "group norm": lambda x, w, b, *_: functional.group_norm(x, 4, w, b),
}


def normalized(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Normalize images."""
    inputs, call = _for_norm(dtype, batch, channels, size), _NORMS[op]
    return lambda: call(*inputs)


def normalized_gradient(dtype: torch.dtype, op: str, batch: int, channels: int, size: int) -> Work:
    """Backward pass of a norm of images."""
    inputs, call = _for_norm(dtype, batch, channels, size), _NORMS[op]
    return gradients.gradient(lambda: call(*inputs), *inputs[:3])


def _for_norm(dtype: torch.dtype, batch: int, channels: int, size: int) -> list[Tensor]:
    channels = 4 * (channels // 4 + 1)
    of_channels = [torch.ones(channels, device="cuda", dtype=dtype) for _ in range(4)]
    return [normal(dtype, batch, channels, size, size), *of_channels]


_CONVOLUTIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "conv1d": lambda x, w: functional.conv1d(x.flatten(2), w[:, :, 0], padding=1),
    "transposed": lambda x, w: functional.conv_transpose2d(x, w.transpose(0, 1), None, 2, 1),
    "dilated": lambda x, w: functional.conv2d(x, w, None, 1, 2, 2),
    "patches": lambda x, w: functional.conv2d(x, w, None, w.shape[-1]),
}


def other_conv(dtype: torch.dtype, op: str, **shape: int) -> Work:
    """Convolve in another way than images with a padded, square window."""
    batch, channels, filters, size = shape.values()
    x, w = normal(dtype, batch, channels, size, size), normal(dtype, filters, channels, 3, 3)
    call = _CONVOLUTIONS[op]
    return lambda: call(x, w)


_LISTS: dict[str, Callable[[list[list[Tensor]]], object]] = {
    **gradients.FOREACH,
    "mul": lambda p: torch._foreach_mul(p[0], p[1]),
    "add new": lambda p: torch._foreach_add(p[0], p[1]),
    "zero": lambda p: torch._foreach_zero_(p[0]),
    "copy": lambda p: torch._foreach_copy_(p[0], p[1]),
    "neg": lambda p: torch._foreach_neg_(p[0]),
    "exp": lambda p: torch._foreach_exp(p[0]),
    "maximum": lambda p: torch._foreach_maximum_(p[0], p[1]),
    "div": lambda p: torch._foreach_div_(p[0], p[1]),
    "sub": lambda p: torch._foreach_sub_(p[0], p[1]),
    "norm inf": lambda p: torch._foreach_norm(p[0], torch.inf),
    "pow": lambda p: torch._foreach_pow(p[2], 2.0),
    "abs": lambda p: torch._foreach_abs(p[0]),
}


def lists(dtype: torch.dtype, op: str, n_tensors: int, n: int) -> Work:
    """Apply one operator to lists of tensors."""
    parts = [[normal(dtype, n).abs_() for _ in range(n_tensors)] for _ in range(3)]
    call = _LISTS[op]
    return lambda: call(parts)


_FACTORED: dict[str, Callable[[Tensor, Tensor], object]] = {
    "solve": torch.linalg.solve_ex,
    "inverse": lambda a, _: torch.linalg.inv_ex(a),
    "lu": lambda a, _: torch.linalg.lu_factor_ex(a),
    "det": lambda a, _: torch.linalg.det(a),
    "qr": lambda a, _: torch.linalg.qr(a),
    "eigh": lambda a, _: torch.linalg.eigh(a),
    "triangular": lambda a, b: torch.linalg.solve_triangular(a, b, upper=True),
}


def factored(dtype: torch.dtype, op: str, batch: int, n: int) -> Work:
    """Factor matrices, or solve with them."""
    a = normal(dtype, batch, n, n)
    # Symmetric and well conditioned, so that each of the operators succeeds.
    matrix, call = a @ a.mT + n * torch.eye(n, device="cuda", dtype=dtype), _FACTORED[op]
    right_sides = normal(dtype, batch, n, 8)
    return lambda: call(matrix, right_sides)
