"""Lower an operator to one kernel over the elements of its result, as most operators run."""

from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.operators._reduction_launch import innermost_dim
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import TensorLayout


def elementwise(call: OperatorCall) -> KernelWork:
    """Return the work of one kernel over the elements of the result."""
    family = elementwise_family(call)
    # An operator without a lowering that returns less than it reads is no elementwise one.
    if call.n_out < call.n_in:
        family = "other"
    return call.work(family, flops=call.flops)


def elementwise_family(call: OperatorCall) -> str:
    """Return the family of a kernel over the elements of a call's result."""
    result = max(call.writes, key=lambda item: item.n_elements, default=None)
    if result is None:
        return "elementwise"
    # Tensors of one element are arguments of the kernel, or cost almost nothing.
    large = [item for item in call.reads if item.n_elements > 1]
    if len({item.dtype for item in large if item.dtype.is_floating_point}) > 1:
        return "mixed types"
    if any(item.n_elements == result.n_elements and _is_strided(item, result) for item in large):
        return "strided"
    if any(_is_repeated(item, result) for item in large):
        return "broadcast"
    if any(_is_widened(item, result) for item in large):
        return "cast"
    return "elementwise"


def _is_strided(item: TensorLayout, result: TensorLayout) -> bool:
    """Return whether neighbours in the result are not neighbours in ``item``, as after ``.T``."""
    return innermost_dim(item) != innermost_dim(result) and len(item.sizes) == len(result.sizes)


def _is_repeated(item: TensorLayout, result: TensorLayout) -> bool:
    is_dense = item.size_bytes == item.n_elements * item.dtype.itemsize == item.span_bytes
    return item.n_elements != result.n_elements or not is_dense


def _is_widened(item: TensorLayout, result: TensorLayout) -> bool:
    return item.dtype.itemsize < result.dtype.itemsize and item.dtype.is_floating_point
