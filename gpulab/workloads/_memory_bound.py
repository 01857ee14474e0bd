"""Workloads that are limited by memory: element-wise, indexed, and over rows or whole vectors.

The element-wise ones are arithmetic, copies, dropout and an optimizer's step. The indexed ones are
look-ups, gathers and scattered additions. The others are reductions, norms, scans, sorts and
transforms.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional

from gpulab.workloads._problem import Problem, Tensor, indices, normal

_DROPPED = 0.1


def add(n: int) -> Problem:
    """Sum of two vectors of n elements.

    FLOPs: one for each element.
    Bytes: two are read and one is written for each: 3 n elements.
    """
    return Problem(inputs=(normal(n), normal(n)), call=torch.add, n_flops=n, n_elements=3 * n)


def exp(n: int) -> Problem:
    """Exponential of n elements.

    FLOPs: one for each element; an exponential counts as one, however the hardware computes it.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n),), call=torch.exp, n_flops=n, n_elements=2 * n)


def gelu(n: int) -> Problem:
    """GELU of n elements, by the error function: x/2 (1 + erf(x / sqrt 2)).

    FLOPs: 5 for each element: three multiplications, an addition, and erf as one.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n),), call=functional.gelu, n_flops=5 * n, n_elements=2 * n)


def dropout(n: int) -> Problem:
    """Dropout of a tenth of n elements.

    FLOPs: one multiplication for each element; drawing the random numbers is not counted.
    Bytes: n elements are read and n written. If a gradient is needed, PyTorch also writes a mask
    of n bytes; here it is not.
    """
    return Problem(
        inputs=(normal(n),),
        call=partial(functional.dropout, p=_DROPPED, training=True),
        n_flops=n,
        n_elements=2 * n,
    )


def copy(n: int) -> Problem:
    """Copy of n elements into memory that is already allocated: a copy by the driver, no kernel.

    FLOPs: none.
    Bytes: n elements are read and n written.
    """
    return Problem(inputs=(normal(n), normal(n)), call=_copy, n_elements=2 * n)


def _copy(source: Tensor, target: Tensor) -> Tensor:
    return target.copy_(source)


def transposed_copy(n: int) -> Problem:
    """Transpose of a square matrix of side n, written to new memory.

    FLOPs: none.
    Bytes: n**2 elements are read and n**2 written. Either reading or writing goes across the rows,
    so a kernel that does not collect tiles on the chip first moves more.
    """
    return Problem(inputs=(normal(n, n),), call=_transposed_copy, n_elements=2 * n**2)


def _transposed_copy(x: Tensor) -> Tensor:
    # t() alone changes only the strides, and moves nothing.
    return x.t().contiguous()


def adam(n: int) -> Problem:
    """One step of Adam on n parameters, in its fused form.

    FLOPs: 13 for each parameter: 3 and 4 for the two moments, and 6 from the moments to the
    parameter (two divisions by the bias corrections, root, epsilon, quotient, subtraction).
    Bytes: parameter, gradient and both moments are read, and all but the gradient are written:
    7 n elements.
    """
    return Problem(
        inputs=(normal(n), normal(n)),
        call=_adam_step,
        prepared=True,
        n_flops=13 * n,
        n_elements=7 * n,
    )


def _adam_step(start: Tensor, gradient: Tensor) -> Callable[[], Tensor]:
    # A copy, because the optimizer writes into its parameter.
    parameter = start.clone().requires_grad_()
    parameter.grad = gradient
    # PyTorch's default form launches several kernels for one step, the fused one few.
    optimizer = torch.optim.Adam([parameter], fused=True)

    def work() -> Tensor:
        optimizer.step()
        return parameter

    return work


_VOCABULARY = 32_000
_TABLE_COLUMNS = 1024


def embedding(n: int) -> Problem:
    """Look-up of n random rows in a table of 32,000 rows of 1,024.

    FLOPs: none.
    Bytes: n indices and n rows are read, and n rows are written. If n is above 32,000, each row of
    the table needs to be read only once.
    """
    return Problem(
        inputs=(indices(_VOCABULARY, n), normal(_VOCABULARY, _TABLE_COLUMNS)),
        call=functional.embedding,
        n_elements=(min(n, _VOCABULARY) + n) * _TABLE_COLUMNS,
        n_indices=n,
    )


def gather(n: int) -> Problem:
    """Gather, for each of n rows of 1,024, 1,024 of its elements at random places.

    FLOPs: none.
    Bytes: rows and indices are read, and as many elements are written. Only about 63 % of the
    elements are used, but memory moves in sectors of 32 bytes, so whole rows count.
    """
    return Problem(
        inputs=(normal(n, _TABLE_COLUMNS), indices(_TABLE_COLUMNS, n, _TABLE_COLUMNS)),
        call=_gather,
        n_elements=2 * n * _TABLE_COLUMNS,
        n_indices=n * _TABLE_COLUMNS,
    )


def _gather(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index)


def scatter_add(n: int) -> Problem:
    """Adding each element of n rows of 1,024 to a random place of the same row of a target.

    FLOPs: one addition for each element.
    Bytes: elements, indices and target are read and the target is written: 3 n 1024 elements and
    n 1024 indices. The whole target counts, for the same reason as in ``gather``.
    """
    return Problem(
        inputs=(
            normal(n, _TABLE_COLUMNS),
            indices(_TABLE_COLUMNS, n, _TABLE_COLUMNS),
            normal(n, _TABLE_COLUMNS),
        ),
        call=_scatter_add,
        n_flops=n * _TABLE_COLUMNS,
        n_elements=3 * n * _TABLE_COLUMNS,
        n_indices=n * _TABLE_COLUMNS,
    )


def _scatter_add(target: Tensor, index: Tensor, source: Tensor) -> Tensor:
    return target.scatter_add_(1, index, source)


_COLUMNS = 4096
_CLASSES = 32_000  # about the vocabulary of a language model
_TOP = 8
_TRANSFORM = 1024


def total(n: int) -> Problem:
    """Sum of n elements.

    FLOPs: n - 1 additions, counted as n.
    Bytes: n elements are read and one is written.
    """
    return Problem(inputs=(normal(n),), call=torch.sum, n_flops=n, n_elements=n + 1)


def mean(n: int) -> Problem:
    """Mean of n elements.

    FLOPs: n - 1 additions and a division: n.
    Bytes: n elements are read and one is written.
    """
    return Problem(inputs=(normal(n),), call=torch.mean, n_flops=n, n_elements=n + 1)


def argmax(n: int) -> Problem:
    """Index of the largest of n elements.

    FLOPs: none; n - 1 comparisons are not counted.
    Bytes: n elements are read and one index is written.
    """
    return Problem(inputs=(normal(n),), call=torch.argmax, n_elements=n, n_indices=1)


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
    )


def _rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(x, (_COLUMNS,), weight)


def cross_entropy(n: int) -> Problem:
    """Mean cross entropy of n rows over 32,000 classes.

    FLOPs: 3 for each logit: subtract the largest, exponential, add. There is one logarithm per
    row, which is not counted.
    Bytes: each logit and each label is read once, and one number is written.
    """
    return Problem(
        inputs=(normal(n, _CLASSES), indices(_CLASSES, n)),
        call=functional.cross_entropy,
        n_flops=3 * n * _CLASSES,
        n_elements=n * _CLASSES + 1,
        n_indices=n,
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
    )


def sort(n: int) -> Problem:
    """Sort of each of n rows of 4,096, with the indices.

    FLOPs: none; comparisons are not counted.
    Bytes: each element is read once and written once, and its index is written.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.sort, dim=-1),
        n_elements=2 * n * _COLUMNS,
        n_indices=n * _COLUMNS,
    )


def topk(n: int) -> Problem:
    """Top 8 of each of n rows of 4,096, with their indices.

    FLOPs: none; comparisons are not counted.
    Bytes: each element is read once; 8 elements and 8 indices per row are written.
    """
    return Problem(
        inputs=(normal(n, _COLUMNS),),
        call=partial(torch.topk, k=_TOP, dim=-1),
        n_elements=n * (_COLUMNS + _TOP),
        n_indices=n * _TOP,
    )


def fft(n: int) -> Problem:
    """Discrete Fourier transform of each of n real rows of 1,024, all frequencies kept.

    FLOPs: 5 m log2 m for each row of m, as is usual for a complex transform.
    Bytes: each real element is read, and a complex one, twice as long, is written.
    """
    return Problem(
        inputs=(normal(n, _TRANSFORM),),
        call=torch.fft.fft,
        n_flops=5 * n * _TRANSFORM * int(math.log2(_TRANSFORM)),
        n_elements=3 * n * _TRANSFORM,
    )
