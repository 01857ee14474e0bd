"""Workloads that are limited by arithmetic: matmuls, convolutions and attention."""

from functools import partial

import torch
from torch.nn import functional

from gpulab.workloads._problem import Problem, normal

_BATCH = 64
_FEATURES = 4096
_HEADS, _HEAD_DIM, _SEQUENCES = 16, 64, 4
_IMAGE = 56  # pixels a side, as in the first stages of a ResNet


def matmul(n: int) -> Problem:
    """Matmul of two square matrices of side n.

    FLOPs: each of the n**2 results is n multiplications and n additions: 2 n**3.
    Bytes: two matrices are read and one is written: 3 n**2 elements.
    """
    return _matmul(n, n, n)


def matmul_odd(n: int) -> Problem:
    """Matmul of an (n + 1) x (n + 3) matrix and an (n + 3) x (n - 1) one.

    For an even n all sides are odd. So rows start at unaligned addresses and tiles do not fit,
    which costs more time than the few extra elements.

    FLOPs: 2 (n + 1) (n + 3) (n - 1), as for any matmul.
    Bytes: each of the three matrices once.
    """
    return _matmul(n + 1, n + 3, n - 1)


def _matmul(m: int, k: int, n: int) -> Problem:
    return Problem(
        inputs=(normal(m, k), normal(k, n)),
        call=torch.matmul,
        n_flops=2 * m * k * n,
        n_elements=m * k + k * n + m * n,
        tensor_cores="matmul",
    )


def bmm(n: int) -> Problem:
    """64 matmuls of square matrices of side n, in one call.

    FLOPs: 64 times 2 n**3.
    Bytes: 64 times 3 n**2 elements.
    """
    return Problem(
        inputs=(normal(_BATCH, n, n), normal(_BATCH, n, n)),
        call=torch.bmm,
        n_flops=2 * _BATCH * n**3,
        n_elements=3 * _BATCH * n**2,
        tensor_cores="matmul",
    )


def linear(n: int) -> Problem:
    """Linear layer from 4,096 to 4,096 features, with bias, on n rows.

    FLOPs: 2 n 4096**2 for the matmul and n 4096 for the bias.
    Bytes: rows in, weights, bias and rows out: 2 n 4096 + 4096**2 + 4096 elements. With few rows,
    reading the weights takes most of the time.
    """
    return Problem(
        inputs=(normal(n, _FEATURES), normal(_FEATURES, _FEATURES), normal(_FEATURES)),
        call=functional.linear,
        n_flops=2 * n * _FEATURES**2 + n * _FEATURES,
        n_elements=2 * n * _FEATURES + _FEATURES**2 + _FEATURES,
        tensor_cores="matmul",
    )


def conv1x1(n: int) -> Problem:
    """Convolution by 1x1 from 256 to 64 channels on n images of 56 x 56.

    FLOPs: 2 x 256 for each of the n 64 56**2 results.
    Bytes: images in and out, and the 64 x 256 weights.
    """
    return _convolution(n, n_in=256, n_out=64, side=1)


def conv3x3(n: int) -> Problem:
    """Convolution by 3x3 from 64 to 64 channels on n images of 56 x 56, zeros at the border.

    FLOPs: 2 x 64 x 9 for each of the n 64 56**2 results, those with the border's zeros included.
    Bytes: images in and out, and the 64 x 64 x 9 weights.
    """
    return _convolution(n, n_in=64, n_out=64, side=3)


def conv_depthwise(n: int) -> Problem:
    """Convolution by 3x3 of each of 128 channels by itself, on n images of 56 x 56.

    FLOPs: 2 x 9 for each of the n 128 56**2 results.
    Bytes: images in and out, and the 128 x 9 weights.
    """
    return _convolution(n, n_in=128, n_out=128, side=3, groups=128)


def _convolution(n: int, *, n_in: int, n_out: int, side: int, groups: int = 1) -> Problem:
    n_pixels, n_weights = _IMAGE**2, n_in // groups * side**2
    return Problem(
        inputs=(normal(n, n_in, _IMAGE, _IMAGE), normal(n_out, n_in // groups, side, side)),
        call=partial(functional.conv2d, padding=side // 2, groups=groups),
        n_flops=2 * n_weights * n * n_out * n_pixels,
        n_elements=n * (n_in + n_out) * n_pixels + n_out * n_weights,
        tensor_cores="cudnn",
    )


def attention(n: int) -> Problem:
    """Attention over 4 sequences of n tokens with 16 heads of 64 dimensions.

    FLOPs: two matmuls of 2 n**2 64 for each of the 64 heads, and 4 for each of the n**2 scores
    (subtract the largest, exponential, add, divide).
    Bytes: queries, keys and values are read and the result is written: 4 x 4 x 16 n 64 elements;
    the scores need never leave the chip.
    """
    n_heads = _SEQUENCES * _HEADS
    qkv = normal(_SEQUENCES, _HEADS, n, _HEAD_DIM)
    return Problem(
        inputs=(qkv, qkv, qkv),
        call=functional.scaled_dot_product_attention,
        n_flops=n_heads * (4 * n**2 * _HEAD_DIM + 4 * n**2),
        n_elements=4 * n_heads * n * _HEAD_DIM,
        tensor_cores="matmul",
    )
