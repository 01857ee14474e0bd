"""Compute the coordinates of calls along a dimension: reductions, softmax, norms, scans, sorts."""

from math import ceil, prod

from gpulab.virtual.operators._elementwise_coordinates import (
    dtype_name,
    log2_alignment,
    log2_size,
)
from gpulab.virtual.operators._operator_call import Coordinates, OperatorCall, Surface
from gpulab.virtual.operators._reduction_launch import inner_results, reduction_launch

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
        "".join(str(item) for item in call.args[1:2] if isinstance(item, float)),
    )


def _rows(call: OperatorCall, length: int) -> Coordinates:
    """Return the rows, their length, the ratio of the two, and the alignment of a row.

    The ratio repeats what the first two say, so that the fit can give it a scale of its own.
    """
    source = call.largest_read
    rows = source.n_elements / max(1, length)
    width = source.dtype.itemsize
    steps = (log2_size(rows) - log2_size(length), log2_alignment(length * width, 5))
    return (log2_size(rows), log2_size(length), *steps, float(width))


def _last(call: OperatorCall) -> int:
    sizes = call.largest_read.sizes
    return sizes[-1] if sizes else 1


def along(call: OperatorCall) -> Coordinates:
    """Return the rows along the last dimension, their length, and the operator."""
    return (*_rows(call, _last(call)), call.name, dtype_name(call.largest_read))


def softmax(call: OperatorCall) -> Coordinates:
    """Return the rows, their length, and how much of the padded length is used."""
    length = _last(call)
    return (
        *along(call),
        log2_size(ceil(length / _WARP_ROW)) if length > _WARP_ROW else _padding(length),
    )


def _padding(n: int) -> float:
    """Return the logarithm of the used share of the next power of two, at most 0."""
    return log2_size(n) - ceil(log2_size(n))


def across(call: OperatorCall) -> Coordinates:
    """Return the sizes before, along and after the dimension that a call works along."""
    source, dims = call.largest_read, call.dims()
    dim = dims[0] if dims else len(source.sizes) - 1
    inner = prod(source.sizes[dim + 1 :])
    length = source.sizes[dim] if source.sizes else 1
    outer = source.n_elements / max(1, inner * length)
    width = source.dtype.itemsize
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
        log2_size(outer * ceil(inner / across_threads)),
        log2_size(outer),
        log2_size(length),
        log2_size(inner),
        log2_size(source.n_elements),
        log2_alignment(inner * width),
        float(width),
        call.name,
        dtype_name(source),
    )


def norm(call: OperatorCall) -> Coordinates:
    """Return the groups of elements that are normalized together, and the operator."""
    shape = call.args[1] if call.name in {"native_layer_norm", "_fused_rms_norm"} else call.args[2]
    return (*_rows(call, prod(shape)), call.name, dtype_name(call.largest_read))


def scan(call: OperatorCall) -> Coordinates:
    """Return the rows that are scanned, their length, and along which dimension."""
    source, dims = call.largest_read, call.dims()
    length = source.sizes[dims[0]] if dims and source.sizes else max(1, source.n_elements)
    rows = source.n_elements // max(1, length)
    return (
        *_rows(call, length),
        "one" if rows == 1 else "many",
        # PyTorch chooses the shape of a block by this difference (ScanUtils.cuh).
        float(ceil(log2_size(rows)) - ceil(log2_size(length))),
        call.name,
        dtype_name(source),
        call.side,
    )


def fourier(call: OperatorCall) -> Coordinates:
    """Return the rows and the factors of their length, which decide on the algorithm."""
    length = _last(call)
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


def ordered(call: OperatorCall) -> Coordinates:
    """Return the rows that are ordered, their length, and which of PyTorch's sorts is used."""
    source, dims = call.reads[0], call.dims()
    length = source.sizes[dims[0]] if dims and source.sizes else max(1, source.n_elements)
    rows = source.n_elements // max(1, length)
    width = source.dtype.itemsize
    return (
        log2_size(rows),
        log2_size(length),
        log2_size(rows) - log2_size(length),
        log2_alignment(length * width, 5),
        float(width),
        _sorter(rows, length),
        float(min(ceil(log2_size(length)), _LONGEST_PADDED)),
        call.name,
        dtype_name(source),
        call.side,
    )


def _sorter(rows: int, length: int) -> str:
    """Return which of PyTorch's sorts is used: a warp or a block for each row, or passes."""
    if length <= _WARP_SORT:
        return "warp"
    if length <= _BLOCK_SORT:
        return "block"
    if rows == 1:
        return "all"
    return "segments" if rows < _MANY_SEGMENTS else "each"


def largest_few(call: OperatorCall) -> Coordinates:
    """Return the rows and their length, and how many elements of each are wanted."""
    *sizes, _, _, side = (*ordered(call)[:5], *ordered(call)[-3:])
    return (*sizes, float(call.args[1]), dtype_name(call.reads[0]), side)


def surface_of_softmax(call: OperatorCall) -> Surface | None:
    """Return the surface of a softmax along a dimension that is not the last; None for others."""
    return None if call.side == "last" else ("softmax across", across)
