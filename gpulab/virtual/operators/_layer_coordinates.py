"""Compute the coordinates of layers and losses: batch norm, pooling, convolution, attention."""

from math import ceil, prod
from typing import Any

import torch

from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall
from gpulab.virtual.operators._size_coordinates import (
    VECTOR,
    dtype_name,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.tensors import TensorLayout

_FEW_CHANNELS_BYTES = 16
_QUERIES_PER_TILE = 128
# cuDNN's depthwise kernels: square filters, at least so many channels and pixels in a row.
_CUDNN_FILTERS = {(n, n) for n in (1, 3, 5)}
_CUDNN_CHANNELS, _CUDNN_WIDTH = 32, 7


def channels(call: OperatorCall) -> Coordinates:
    """Return the sizes of a batch norm, and whether it trains."""
    x = call.reads[0] if call.name != "native_batch_norm_backward" else call.reads[1]
    sizes = (*x.sizes, 1, 1)
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (
        log2_size(sizes[0]),
        log2_size(sizes[1]),
        log2_size(area),
        log2_alignment(area * width),
    )
    # Evaluation takes mean and variance as they are given.
    is_backward = call.name.endswith("backward")
    trains = call.args[7 if is_backward else 5]
    # PyTorch's own kernels were measured with halves, cuDNN's with float32.
    is_whole = not (trains or is_backward) and normalizes_by_cudnn(x, call.args[1])
    words = ("float32" if is_whole else dtype_name(x), "training" if trains else "evaluation")
    return (*sides, log2_size(x.n_elements), *words)


def normalizes_by_cudnn(x: TensorLayout, weight: Any) -> bool:  # a stand-in or None
    """Return whether cuDNN normalizes a batch: images, with weights of float32 or float64.

    Parameters
    ----------
    x
        The images.
    weight
        The weights, or None. PyTorch's own kernels take weights of half precision, or none.
    """
    if weight is None or len(x.sizes) <= 2:  # noqa: PLR2004 # batch and channels
        return False
    return x.dtype is not torch.bfloat16 and weight.dtype in {torch.float32, torch.float64}


def surface_of_batch_norm(call: OperatorCall) -> str | None:
    """Return the surface of a batch norm; None for a layout that was not measured."""
    is_backward = call.name.endswith("backward")
    if is_channels_last(call.reads[1 if is_backward else 0]):
        return None
    return "batch norm backward" if is_backward else "batch norm"


def is_channels_last(x: TensorLayout) -> bool:
    """Return whether the channels of images, or of rows, are side by side in memory."""
    return len(x.sizes) > 1 and x.strides[1] == 1 and x.sizes[1] > 1


def groups(call: OperatorCall) -> Coordinates:
    """Return the number of groups of a group norm, and their sizes."""
    # The gradient has the result's gradient first, and all numbers two places later.
    later = 2 if call.name.endswith("backward") else 0
    x = call.reads[1 if later else 0]
    n_groups = max(1, call.args[3 + later]) * call.args[6 + later]
    area = prod(x.sizes[2:])
    width = x.dtype.itemsize
    sides = (
        log2_size(n_groups),
        log2_size(x.n_elements / n_groups),
        log2_size(area),
        log2_alignment(area * width),
    )
    return (*sides, log2_size(x.n_elements), dtype_name(x))


def convolution(call: OperatorCall) -> Coordinates:
    """Return a convolution's sizes, padding and groups."""
    x, weight = call.reads[0], call.reads[1]
    padding, is_transposed = call.args[4], call.args[6]
    others = (
        float(max(padding)),
        "transposed" if is_transposed else f"{len(x.sizes)} dimensions",
        log2_size(x.sizes[1] // max(1, weight.sizes[1])),
        _library(x, weight, call.args[8], call.args[3]),
    )
    return (*_convolved(call, x, weight, call.largest_written, call.args[3]), *others)


def convolution_backward(call: OperatorCall) -> Coordinates:
    """Return the sizes of a convolution whose gradients are wanted, and the library."""
    out, x, weight = call.reads[:3]
    library = _library(x, weight, call.args[9], call.args[4])
    return (*_convolved(call, x, weight, out, call.args[4]), library)


def _library(x: TensorLayout, weight: TensorLayout, n_groups: int, stride: Any) -> str:
    return "PyTorch" if is_by_pytorch(x, weight, n_groups, stride) else "cuDNN"


def _convolved(
    call: OperatorCall, x: TensorLayout, weight: TensorLayout, out: TensorLayout, stride: object
) -> Coordinates:
    """Return a convolution's sizes, the alignment of its channels, and the memory format.

    Some sizes are there twice, as those of images and as those of the matmul that computes the
    convolution, because cuDNN chooses its algorithm by both.
    """
    width = x.dtype.itemsize
    n_in, n_out = x.sizes[1], out.sizes[1]
    taps = prod(weight.sizes[2:])
    step = stride[0] if isinstance(stride, (list, tuple)) and stride else 1
    area = prod(out.sizes[2:])
    sides = (log2_alignment(n_in * width), log2_alignment(n_out * width))
    layout = "channels" if x.strides[1] == 1 else "planes"
    fit = "aligned" if min(sides) == VECTOR else "not"
    return (
        log2_size(x.sizes[0]),
        log2_size(n_in),
        log2_size(n_out),
        log2_size(area),
        log2_size(taps),
        float(step),
        *sides,
        min(sides),
        layout,
        call.arithmetic,
        "1" if taps == 1 else "more",
        "few" if n_in * width <= _FEW_CHANNELS_BYTES else "many",
        f"{fit} {layout} {call.arithmetic}",
        log2_size(x.sizes[0] * area),
        log2_size(n_in * taps),
    )


def attention(call: OperatorCall) -> Coordinates:
    """Return the sizes of queries and keys, and whether attention is causal."""
    offset = 1 if call.name.endswith("backward") else 0
    query, keys = call.reads[offset], call.reads[offset + 1]
    batch, length, depth = prod(query.sizes[:-2]), query.sizes[-2], query.sizes[-1]
    return (
        log2_size(batch),
        log2_size(length),
        log2_size(keys.sizes[-2]),
        log2_size(depth),
        log2_size(batch * ceil(length / _QUERIES_PER_TILE)),
        "causal" if is_causal(call) else "full",
        call.arithmetic,
    )


def is_causal(call: OperatorCall) -> bool:
    """Return whether attention is causal."""
    # The position of the flag differs between operators; no other argument is True.
    return any(item is True for item in (*call.args, *call.kwargs.values()))


def surface_of_convolution(call: OperatorCall) -> str | None:
    """Return the surface of a convolution, by its groups and its arithmetic."""
    is_backward = call.name.endswith("backward")
    name = "convolution backward" if is_backward else "convolution"
    weight, n_groups = call.reads[2 if is_backward else 1], call.args[9 if is_backward else 8]
    if is_depthwise(weight, n_groups):
        return name.replace("convolution", "depthwise")
    if not call.is_half:
        return name
    # No grouped ones of halves were measured: their efficiencies are not those of one matmul.
    # cuDNN has other kernels for halves, and smaller surfaces answer faster.
    return None if n_groups > 1 else f"half {name}"


def is_by_pytorch(x: TensorLayout, weight: TensorLayout, n_groups: int, stride: Any) -> bool:
    """Return whether PyTorch's own kernels run a depthwise convolution; they add the bias, too.

    cuDNN gets the other layout, and halves by PyTorch's table of sizes (``use_cudnn_depthwise``).
    """
    if not is_depthwise(weight, n_groups) or is_channels_last(x):
        return False
    if x.dtype is not torch.float16 or weight.sizes[-2:] not in _CUDNN_FILTERS:
        return True
    n_channels, width, step = x.sizes[1], x.sizes[-1], max(stride)
    if n_channels < _CUDNN_CHANNELS or width < _CUDNN_WIDTH or step > 2:  # noqa: PLR2004 # its table
        return True
    is_wide = n_channels >= 512 or (n_channels >= 256 and width >= 28)  # noqa: PLR2004 # its table
    return step > 1 and x.sizes[0] > 1 and not is_wide


def is_depthwise(weight: TensorLayout, n_groups: int) -> bool:
    """Return whether each filter of a convolution has one input channel."""
    return n_groups > 1 and weight.sizes[1] == 1


def is_converted(weight: TensorLayout, n_groups: int) -> bool:
    """Return whether cuDNN converts a grouped convolution: only powers of two fit its tiles."""
    width = weight.sizes[1]
    is_power_of_two = width & (width - 1) == 0
    return n_groups > 1 < width and (width == 2 or not is_power_of_two)  # noqa: PLR2004 # narrow


def runs_by_group(x: TensorLayout, weight: TensorLayout, n_groups: int, part: str) -> bool:
    """Return whether cuDNN runs a grouped convolution of halves as one convolution a group.

    The bounds are from 160 forward ones and 50 gradients that an H100 recorded. ``part`` is
    ``"convolution"``, or which of the gradients.
    """
    width = weight.sizes[1]
    if part != "convolution":
        return width >= (128 if part == "weights" else 48)
    if width <= 2:  # noqa: PLR2004 # nothing to multiply as matrices
        return width > 1 and is_channels_last(x)
    is_small = width >= 16 and n_groups * width <= 64  # noqa: PLR2004 # as recorded
    return width != 128 and (width >= 48 or is_small)  # noqa: PLR2004 # as recorded
