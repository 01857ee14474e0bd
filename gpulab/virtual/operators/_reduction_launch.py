"""Compute how PyTorch launches a reduction on CUDA: threads, blocks, and blocks for each result.

The rules are PyTorch's own (``aten/src/ATen/native/cuda/Reduce.cuh``), for the number of
multiprocessors of an H200.
"""

from math import ceil
from typing import NamedTuple

from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.tensors import TensorLayout

_MOST_THREADS, _WARP = 512, 32
# A thread loads this many elements at once, or computes this many results.
_VECTOR = 4
# Shorter reductions, and those of several dimensions, are not loaded in vectors.
_SHORTEST_VECTOR = 128
# A thread with at least 16 elements for each row of its block shares them with the block, and one
# with at least 256 shares them with other blocks.
_FEW, _MANY = 16, 256
_N_THREADS_RESIDENT, _N_SMS = 2_048, 132


class ReductionLaunch(NamedTuple):
    """The launch of a reduction: results of some length, blocks, and the work of a thread."""

    n_results: int
    length: int  # elements of each result
    n_blocks: int  # for all results; blocks that share a result count as one
    n_sharing: int  # blocks that share one result
    n_per_thread: int  # elements that one thread adds up
    width: int  # threads of a block in its first dimension
    is_along: bool  # whether neighbours in memory belong to the same result


def reduction_launch(call: OperatorCall, source: TensorLayout) -> ReductionLaunch:
    """Return the launch for the reduction of a tensor."""
    n_results = max(1, call.n_out)
    length = max(1, source.n_elements // n_results)
    is_along = reduces_innermost(call, source)
    # The first dimension of a block goes along memory, so that neighbouring threads read
    # neighbouring elements: those of one result, or those of different results.
    inner, outer = (length, n_results) if is_along else (n_results, length)
    per_result = 1
    # A vector of inputs is added up by one thread, or a vector of results is computed by one.
    if is_along and inner >= _SHORTEST_VECTOR:
        inner //= _VECTOR
    elif not is_along:
        per_result = _common_vector(inner_results(source))
        inner //= per_result
    # As in PyTorch: a thread that computes several results counts as several of a block's.
    threads = _MOST_THREADS // per_result
    width, height = _block(inner, outer, threads)
    n_lanes = width if is_along else 1
    n_per_thread = ceil(length / n_lanes)
    results_of_block = 1 if is_along else width * per_result
    n_sharing = 1
    # Long results are shared by the rows of a block; otherwise each row has a result of its own.
    if n_per_thread >= height * _FEW or n_per_thread >= _MANY:
        n_per_thread = ceil(n_per_thread / height)
        n_blocks = ceil(n_results / results_of_block)
        most = _N_SMS * (_N_THREADS_RESIDENT // (width * height))
        # Several blocks share a result only if there would be too few blocks to fill the GPU.
        if n_per_thread >= _MANY and n_blocks <= most:
            wanted = min(ceil(most / n_blocks), ceil(n_per_thread / _FEW))
            n_sharing = max(wanted, ceil(n_per_thread / _MANY))
            n_per_thread = ceil(n_per_thread / n_sharing)
    else:
        n_blocks = ceil(n_results / (results_of_block * height))
    return ReductionLaunch(n_results, length, n_blocks, n_sharing, n_per_thread, width, is_along)


def _block(inner: int, outer: int, most: int) -> tuple[int, int]:
    """Return width and height of a block, both powers of two.

    The height is chosen for a width of at most a warp. The width then takes what is left.
    """
    across, down = (min(1 << (max(n, 1).bit_length() - 1), most) for n in (inner, outer))
    height = min(down, most // min(across, _WARP))
    return min(across, most // height), height


def _common_vector(n: int) -> int:
    vector = _VECTOR
    while n % vector:
        vector //= 2
    return vector


def inner_results(source: TensorLayout) -> int:
    """Return how many neighbours in memory belong to different results."""
    return next((n for n, step in zip(source.sizes, source.strides, strict=True) if step == 1), 1)


def reduces_innermost(call: OperatorCall, source: TensorLayout) -> bool:
    """Return whether the call reduces the innermost dimension of ``source``."""
    dims = call.dims(source)
    return not dims or innermost_dim(source) in dims


def innermost_dim(item: TensorLayout) -> int:
    """Return the dimension with the smallest stride: its elements are neighbours in memory."""
    steps = zip(item.sizes, item.strides, strict=True)
    # A size of 1 has no neighbours, and a stride of 0 repeats one element.
    strided = [(step, dim) for dim, (n, step) in enumerate(steps) if n > 1 and step]
    return min(strided)[1] if strided else 0
