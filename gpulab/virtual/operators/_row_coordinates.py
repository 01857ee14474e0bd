"""Compute the coordinates of calls along a dimension: reductions, softmax, norms, scans, sorts."""

from math import ceil, prod

from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall
from gpulab.virtual.operators._reduction_launch import inner_results, reduction_launch
from gpulab.virtual.operators._size_coordinates import (
    dtype_name,
    last_size,
    log2_alignment,
    log2_size,
)

# PyTorch's softmax keeps rows of up to this many elements in the registers of one warp.
_WARP_ROW = 1_024
# In the recordings, cuFFT transformed lengths directly if no prime factor was larger than this.
_LARGEST_PRIME = 127
# PyTorch sorts rows of up to 32 elements by a warp and of up to 4,096 by a block. For longer rows
# the algorithm depends on whether there are at least 128.
_WARP_SORT, _BLOCK_SORT, _MANY_SEGMENTS = 32, 4_096, 128
# Rows of up to 2**13 elements are padded to a power of two before they are sorted.
_LONGEST_PADDED = 13
# A block of PyTorch's softmax along a dimension that is not the last.
_MOST_THREADS, _FEW_THREADS = 1_024, 64


def reduction(call: OperatorCall) -> Coordinates:
    """Return how the reduction is launched, because its speed depends on that."""
    source = call.largest_read
    launch = reduction_launch(call, source)
    return (
        log2_size(launch.n_results),
        log2_size(launch.length),
        log2_size(launch.n_blocks),
        log2_size(launch.n_per_thread),
        log2_size(launch.n_sharing),
        log2_size(launch.width),
        "along" if launch.is_along else "across",
        call.name,
        dtype_name(source),
        log2_size(source.n_elements),
        log2_size(inner_results(source)),
        dtype_name(call.largest_written),
    )


def along_last(call: OperatorCall) -> Coordinates:
    """Return the rows along the last dimension of what a call reads."""
    return _rows(call, last_size(call.largest_read))


def along_dimension(call: OperatorCall) -> Coordinates:
    """Return the rows along the dimension that a call works along: all elements without one."""
    source, dims = call.largest_read, call.dims()
    return _rows(call, source.sizes[dims[0]] if dims and source.sizes else source.n_elements)


def norm(call: OperatorCall) -> Coordinates:
    """Return the groups of elements that are normalized together."""
    shape = call.args[1] if call.name in {"native_layer_norm", "_fused_rms_norm"} else call.args[2]
    return _rows(call, prod(shape))


def _rows(call: OperatorCall, length: int) -> Coordinates:
    """Return the rows, their length, and by which ways PyTorch's kernels process them.

    The ratio repeats what the first two say, so that the fit can give it a scale of its own.
    """
    source, length = call.largest_read, max(1, length)
    rows = source.n_elements / length
    width = source.dtype.itemsize
    is_long = length > _WARP_ROW
    return (
        log2_size(rows),
        log2_size(length),
        log2_size(rows) - log2_size(length),
        log2_alignment(length * width, 5),
        float(width),
        call.name,
        dtype_name(source),
        call.side,
        log2_size(ceil(length / _WARP_ROW)) if is_long else _padding(length),
        "one" if rows == 1 else "many",
        # PyTorch chooses the shape of a scan's block by this difference (ScanUtils.cuh).
        float(ceil(log2_size(rows)) - ceil(log2_size(length))),
        _sorter(rows, length),
        float(min(ceil(log2_size(length)), _LONGEST_PADDED)),
        float(call.args[1]) if call.name == "topk" else 0.0,
    )


def _padding(n: int) -> float:
    """Return the logarithm of the used share of the next power of two, at most 0."""
    return log2_size(n) - ceil(log2_size(n))


def _sorter(rows: float, length: int) -> str:
    """Return which of PyTorch's sorts is used: a warp or a block for each row, or passes."""
    if length <= _WARP_SORT:
        return "warp"
    if length <= _BLOCK_SORT:
        return "block"
    if rows == 1:
        return "all"
    return "segments" if rows < _MANY_SEGMENTS else "each"


def across(call: OperatorCall) -> Coordinates:
    """Return the sizes before, along and after the dimension that a call works along."""
    source, dims = call.largest_read, call.dims()
    dim = dims[0] if dims else len(source.sizes) - 1
    inner = prod(source.sizes[dim + 1 :])
    length = source.sizes[dim] if source.sizes else 1
    outer = source.n_elements / max(1, inner * length)
    # As PyTorch's softmax launches blocks (``SpatialSoftMax_getBlockSize``): if there are few
    # results next to one another, several threads share one.
    across_threads = min(max(inner, 1), _MOST_THREADS)
    along_threads = 1
    if across_threads <= _FEW_THREADS <= length:
        while across_threads * along_threads <= _MOST_THREADS and along_threads <= length:
            along_threads *= 2
        along_threads //= 2
    return (
        log2_size(length / along_threads),
        log2_size(along_threads),
        log2_size(outer),
        log2_size(length),
        log2_size(inner),
        log2_size(source.n_elements),
        float(source.dtype.itemsize),
        call.name,
    )


def fourier(call: OperatorCall) -> Coordinates:
    """Return the rows and the factors of their length, which decide on the algorithm."""
    length = last_size(call.largest_read)
    largest, twos, rest = _factors(length)
    whole = "whole" if call.name != "_fft_r2c" or not call.args[3] else "half"
    return (
        *_rows(call, length)[:3],
        log2_size(largest),
        float(twos),
        log2_size(rest),
        "chirp" if largest > _LARGEST_PRIME else "direct",
        whole,
    )


def _factors(n: int) -> tuple[int, int, int]:
    """Return the largest prime factor, the exponent of two, and the odd part."""
    twos = (n & -n).bit_length() - 1
    rest = odd = n >> twos
    largest, factor = (2 if twos else 1), 3
    while factor * factor <= rest:
        while rest % factor == 0:
            largest, rest = factor, rest // factor
        factor += 2
    return max(largest, rest), twos, odd


def surface_of_softmax(call: OperatorCall) -> str:
    """Return the surface of a softmax along the last dimension, or along another one."""
    return "softmax" if call.side == "last" else "softmax across"
