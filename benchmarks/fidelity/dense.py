"""Thousands of random workloads to fit the model to, between the bounds of the unseen ones.

They have their own seed and more operators (single ones of backward passes and of optimizers). A
fifth of them has powers of two as sizes.
"""

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

from benchmarks.fidelity import layers as layer
from benchmarks.fidelity import operators as op
from benchmarks.fidelity.operators import Tensor, normal, whole_numbers
from benchmarks.fidelity.unseen import LARGEST_BYTES, SMALLEST_BYTES, Draw, drawn, draws, sizes_of
from benchmarks.fidelity.workload import Workload
from gpulab.device.work import Work

# Other seeds than those of `unseen`: the model must not be fitted to what examines it.
SEED, FOCUSED_SEED = 7_031, 7_032
DENSE = "dense"
_POWER_SHARE = 0.2
_ANY = "float16 bfloat16 float32"
_KI, _MI = 1 << 10, 1 << 20
# Number of workloads of each function; kernels that depend on more sizes need more.
_COUNTS = {
    "matmul": 1_000,
    "bmm": 500,
    "linear": 550,
    "elementwise": 900,
    "where": 60,
    "masked_fill": 60,
    "add_row": 200,
    "transposed_copy": 250,
    "cat": 280,
    "reduce_all": 400,
    "reduce_dim": 1_100,
    "cholesky": 60,
    "layer_norm": 350,
    "rms_norm": 250,
    "batch_norm": 300,
    "group_norm": 350,
    "dropout": 60,
    "embedding": 200,
    "gather": 200,
    "index_select": 200,
    "scatter_add": 200,
    "conv": 900,
    "conv_backward": 700,
    "images": 450,
    "attention": 450,
    "attention_backward": 300,
    # A cross entropy is a log_softmax and an nll_loss, and a correction belongs to one call. Both
    # are drawn by themselves in `_more`.
    "cross_entropy": 0,
    "cross_entropy_backward": 0,
    "optimizer": 80,
    "create": 150,
    "bernoulli": 30,
}
# The second draw: kinds whose left-out calls the first fit predicted worst.
_FOCUSED = {
    "conv": 950,
    "conv_backward": 330,
    "matmul": 330,
    "bmm": 190,
    "linear": 170,
    "reduce_dim": 130,
    "fft": 90,
    "index_select": 20,
    "dropout": 20,
}
_SIDES = (
    *(32, 48, 64, 96, 128, 192, 256, 384, 512, 640, 768, 1_024),
    *(1_280, 1_536, 2_048),
    *(2_560, 3_072, 4_096, 5_120, 6_144, 8_192),
)
_ARITHMETICS = ("float16", "bfloat16", "tf32", "float32", "float64")
_ROW_COUNTS = {"softmax": 500, "scan": 250, "sort": 400, "fft": 650, "topk": 280}


def gradient(call: Callable[[], Any], *inputs: Tensor) -> Work:
    """Return the backward pass alone; the forward pass runs here, once."""
    for tensor in inputs:
        tensor.requires_grad_()
    result = call()
    given = torch.ones_like(result)
    return lambda: torch.autograd.grad(result, inputs, given, retain_graph=True)


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


def _more() -> Iterator[Draw]:
    scores = {"rows": (16, 16 * _KI), "classes": (10, 128 * _KI)}
    matrix = {"rows": (16, 64 * _KI), "columns": (16, 64 * _KI)}
    images = {"batch": (1, 128), "channels": (8, 512), "size": (7, 256)}
    lists = {"n_tensors": (1, 200), "n": (_KI, 4 * _MI)}

    def times(n: int) -> Callable[[dict[str, Any]], int]:
        return lambda p: n * math.prod(size for size in p.values() if isinstance(size, int))

    yield Draw(120, "loss", nll, "float32", scores, times(1))
    yield Draw(120, "loss", nll_gradient, "float32", scores, times(3))
    names = "softmax,log_softmax"
    yield Draw(300, "softmax", softmax_gradient, _ANY, matrix, times(3), names)
    yield Draw(200, "norm", layer_norm_gradient, _ANY, matrix, times(3))
    yield Draw(150, "norm", batch_norm_gradient, _ANY, images, lambda p: 3 * _pixels(p))
    lookup = {"n": (64, 256 * _KI), "columns": (16, 4 * _KI)}
    yield Draw(100, "gather", embedding_gradient, _ANY, lookup, lambda p: 40_000 * p["columns"])
    line = {"n": (128, 128 * _MI)}
    yield Draw(350, "elementwise", pointwise, _ANY, line, times(3), ",".join(_POINTWISE))
    yield Draw(450, "optimizer", foreach, "float32", lists, times(3), ",".join(FOREACH))


def _pixels(p: dict[str, Any]) -> int:
    return int(p["batch"] * p["channels"] * p["size"] ** 2)


def dense(seed: int = SEED) -> Iterator[Workload]:
    """Draw the workloads, the same ones each time."""
    yield from repeated_draw(seed, (*_scaled({**_COUNTS, **_ROW_COUNTS}), *_more()), set())


def focused(seed: int = FOCUSED_SEED) -> Iterator[Workload]:
    """Draw more of the kinds that were predicted worst, and list square matmuls of usual sizes."""
    taken = {sizes_of(workload) for workload in dense()}
    for n, dtype in itertools.product(_SIDES, _ARITHMETICS):
        square = Workload(DENSE, "matmul", op.matmul, dtype, {"m": n, "k": n, "n": n})
        taken.add(sizes_of(square))
        yield square
    yield from repeated_draw(seed, _scaled(_FOCUSED), taken)


def _scaled(counts: dict[str, int]) -> Iterator[Draw]:
    """Return the draws of the unseen workloads with other counts, and backward passes alone."""

    def kind(draw: Draw) -> str:
        return draw.make.__name__ if draw.make is not op.along_rows else draw.family

    totals = Counter[str]()
    for draw in draws():
        totals[kind(draw)] += draw.n
    for draw in draws():
        n = round(counts.get(kind(draw), 0) * draw.n / totals[kind(draw)])
        yield replace(draw, n=n, make=_GRADIENTS.get(draw.make, draw.make))


def repeated_draw(
    seed: int, some: Iterable[Draw], taken: set[tuple[object, ...]]
) -> Iterator[Workload]:
    """Draw workloads from a seed, with sizes that are not taken; a fifth has powers of two."""
    rng = random.Random(seed)  # noqa: S311 # a draw that can be repeated, not a secret
    for draw in some:
        names = draw.ops.split(",")
        for i in range(draw.n):
            workload = _with_powers(rng, draw, names[i % len(names)], taken)
            taken.add(sizes_of(workload))
            yield replace(workload, role=DENSE)


_GRADIENTS: dict[Callable[..., Work], Callable[..., Work]] = {
    layer.conv_backward: conv_gradient,
    layer.attention_backward: attention_gradient,
}


def _with_powers(
    rng: random.Random, draw: Draw, name: str, taken: set[tuple[object, ...]]
) -> Workload:
    workload = drawn(rng, draw, name, taken)
    if rng.random() >= _POWER_SHARE:
        return workload
    sizes = {
        key: 1 << round(math.log2(value)) if key in draw.sizes else value
        for key, value in workload.parameters.items()
    }
    # A depthwise convolution stays one: as many groups and filters as channels.
    if sizes.get("groups", 1) == workload.parameters.get("channels"):
        sizes["groups"] = sizes["filters"] = sizes["channels"]
    found = replace(workload, parameters=sizes)
    dtype = torch.float32 if found.dtype == "tf32" else getattr(torch, found.dtype)
    size_bytes = draw.n_elements(sizes) * dtype.itemsize
    return found if SMALLEST_BYTES <= size_bytes <= LARGEST_BYTES else workload
