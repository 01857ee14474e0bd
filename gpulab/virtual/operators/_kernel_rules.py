"""What the rules for the kernels of a call share: their type, and facts of a call."""

from collections.abc import Callable

from gpulab.virtual.operators._operator_call import OperatorCall
from gpulab.virtual.tensors import TensorLayout

Names = tuple[str, ...]
# For each operator the names of its kernels, or a function that returns them: None if the kernels
# of its lowering are right.
Rules = dict[str, Names | Callable[[OperatorCall], Names | None]]


def is_repeated(item: TensorLayout) -> bool:
    """Return whether elements share memory, as after ``expand``; most kernels need a copy."""
    return item.span_bytes < item.n_elements * item.dtype.itemsize


def copied(call: OperatorCall, *, at: int = 0) -> Names:
    """Return the copy of an expanded gradient, if it needs one before the kernel."""
    return ("copy",) if len(call.reads) > at and is_repeated(call.reads[at]) else ()
