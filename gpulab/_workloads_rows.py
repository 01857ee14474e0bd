"""Work along rows, or over a whole vector: reductions, norms, scans, sorts and transforms."""

import math
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from gpulab._workloads_problem import Problem, Tensor, normal, whole

_COLUMNS = 4096
_CLASSES = 32_000  # about the vocabulary of a language model
_TOP = 8
_TRANSFORM = 1024


def total(n: int) -> Problem:
    """Sum of n elements.

    FLOPs: n - 1 additions, counted as n.
    Bytes: n elements are read and one is written.
    """
    return Problem(inputs=(normal(n),), call=torch.sum, n_flops=n, n_elements=n + 1, n_terms=n)


def mean(n: int) -> Problem:
    """Mean of n elements.

    FLOPs: n - 1 additions and a division: n.
    Bytes: n elements are read and one is written.
    """
    return Problem(inputs=(normal(n),), call=torch.mean, n_flops=n, n_elements=n + 1, n_terms=n)


def argmax(n: int) -> Problem:
    """Index of the largest of n elements.

    FLOPs: none; n - 1 comparisons are not counted.
    Bytes: n elements are read and one index is written.
    """
    return Problem(inputs=(normal(n),), call=torch.argmax, compared=_at, n_elements=n, n_indices=1)


def _at(index: Tensor, x: Tensor) -> Tensor:
    return x[index]


def softmax(n: int) -> Problem:
    """Softmax of each of n rows of 4,096.

    FLOPs: 4 for each element: subtract the largest, exponential, add, divide.
    Bytes: each element is read once and written once.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.softmax, dim=-1),
        n_flops=4 * n * _COLUMNS,
        n_elements=2 * n * _COLUMNS,
        n_terms=16,
    )


def layer_norm(n: int) -> Problem:
    """Layer norm of each of n rows of 4,096, with weight and bias.

    FLOPs: 8 for each element: one for the mean, three for the variance (subtract, square, add),
    four for the result (subtract, scale, weight, bias).
    Bytes: each element is read once and written once; weight and bias, 2 x 4,096, are read.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS), normal(_COLUMNS), normal(_COLUMNS)),
        call=_layer_norm,
        n_flops=8 * n * _COLUMNS,
        n_elements=2 * n * _COLUMNS + 2 * _COLUMNS,
        n_terms=16,
    )


def _layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.layer_norm(x, (_COLUMNS,), weight, bias)


def rms_norm(n: int) -> Problem:
    """RMS norm of each of n rows of 4,096, with weight.

    FLOPs: 4 for each element: square, add, scale, weight.
    Bytes: each element is read once and written once; the weight, 4,096, is read.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS), normal(_COLUMNS)),
        call=_rms_norm,
        n_flops=4 * n * _COLUMNS,
        n_elements=2 * n * _COLUMNS + _COLUMNS,
        n_terms=16,
    )


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, (_COLUMNS,), weight)


def cross_entropy(n: int) -> Problem:
    """Mean cross entropy of n rows over 32,000 classes.

    FLOPs: 3 for each logit: subtract the largest, exponential, add; logarithms are one a row and
    are not counted.
    Bytes: each logit and each label is read once, and one number is written.
    """
    return Problem(
        inputs=(normal(n, _CLASSES), whole(_CLASSES, n)),
        call=functional.cross_entropy,
        n_flops=3 * n * _CLASSES,
        n_elements=n * _CLASSES + 1,
        n_indices=n,
        n_terms=16,
    )


def cumsum(n: int) -> Problem:
    """Cumulative sum along each of n rows of 4,096.

    FLOPs: one addition for each element.
    Bytes: each element is read once and written once.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.cumsum, dim=-1),
        n_flops=n * _COLUMNS,
        n_elements=2 * n * _COLUMNS,
        n_terms=_COLUMNS,
    )


def sort(n: int) -> Problem:
    """Sort of each of n rows of 4,096, with the indices.

    FLOPs: none; comparisons are not counted.
    Bytes: each element is read once and written once, and its index is written.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.sort, dim=-1),
        compared=_values_and_pointed,
        n_elements=2 * n * _COLUMNS,
        n_indices=n * _COLUMNS,
    )


def topk(n: int) -> Problem:
    """Top 8 of each of n rows of 4,096, with their indices.

    FLOPs: none; comparisons are not counted.
    Bytes: each element is read once; 8 elements and 8 indices a row are written.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.topk, k=_TOP, dim=-1),
        compared=_values_and_pointed,
        n_elements=n * (_COLUMNS + _TOP),
        n_indices=n * _TOP,
    )


def _values_and_pointed(result: Any, x: Tensor) -> Tensor:  # noqa: ANN401 # torch's named tuples
    """Return the values beside those that the indices point to: both must be right."""
    return torch.stack([result.values, x.gather(-1, result.indices)])


def fft(n: int) -> Problem:
    """Discrete Fourier transform of each of n real rows of 1,024, all frequencies kept.

    FLOPs: 5 m log2 m for each row of m, as is usual for a complex transform.
    Bytes: each real element is read, and a complex one, twice as long, is written.
    """
    return Problem(
        inputs=(normal(n, _TRANSFORM),),
        call=torch.fft.fft,
        compared=_real_and_imaginary,
        n_flops=5 * n * _TRANSFORM * int(math.log2(_TRANSFORM)),
        n_elements=3 * n * _TRANSFORM,
        n_terms=int(math.log2(_TRANSFORM)),
    )


def _real_and_imaginary(result: Tensor, _x: Tensor) -> Tensor:
    return torch.view_as_real(result)
