"""What PyTorch reads back on the host inside an operator, so that the host waits.

The field ``host_reads`` of an operator's model contains it. A composite function has no model:
PyTorch's C++ takes it apart, and what it reads arrives as an operator of its own, such as
``_local_scalar_dense`` for ``.item()``. What a CUDA GPU with PyTorch 2.11 answered, call by call,
is in ``benchmarks/results/waits-h100.json``, and a test compares the models with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import torch

from gpulab.virtual.operators._operator_call import CallArguments, always
from gpulab.virtual.tensors import VirtualTensor, reference

MASKS = (torch.bool, torch.uint8)
# A kernel finds the mode of up to so many numbers; for more the host copies each mode.
_MODE_KERNEL_SIZE = 2048


class When(Enum):
    """When the host reads: before the operator's kernels, after them, or to learn a size.

    The size of a result must be known before the memory for it can be allocated.
    """

    BEFORE = "before its kernels"
    AFTER = "after its kernels"
    FOR_SIZE = "for the size of its result"


def _unchecked(_arguments: CallArguments) -> None:
    pass


@dataclass(frozen=True, slots=True)
class HostRead:
    """What an operator reads back from the device.

    Attributes
    ----------
    when
        Whether it is read before or after the operator's kernels, or for the size of the result.
    condition
        Returns for the arguments of a call, by name, whether this call reads.
    check
        Raises PyTorch's error for what was read, if the values are computed.
    by_library
        Whether a library waits that PyTorch calls. ``torch.cuda.set_sync_debug_mode()`` does not
        see such a wait.
    """

    when: When
    condition: Callable[[CallArguments], bool] = always
    check: Callable[[CallArguments], None] = _unchecked
    by_library: bool = False


def has_mask(arguments: CallArguments) -> bool:
    """Return whether one of the indices is a mask."""
    return any(index is not None and index.dtype in MASKS for index in arguments("indices"))


def on_device(name: str) -> Callable[[CallArguments], bool]:
    """Return a condition: an argument is a tensor of the device."""
    return lambda arguments: isinstance(arguments(name), VirtualTensor)


def has_elements(arguments: CallArguments) -> bool:
    """Return whether the first argument has elements."""
    return bool(arguments(0).numel())


def has_deviations(arguments: CallArguments) -> bool:
    """Return whether the standard deviations are a tensor of the device."""
    deviations = arguments("std")
    return isinstance(deviations, VirtualTensor) and bool(deviations.numel())


def check_deviations(arguments: CallArguments) -> None:
    """Raise PyTorch's error for a negative standard deviation."""
    if _is_any(arguments("std"), lambda deviations: deviations < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")


def check_finite(arguments: CallArguments) -> None:
    """Raise PyTorch's error for a number that is not finite; LAPACK might end the process."""
    if _is_any(arguments(0), lambda numbers: ~numbers.isfinite()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")


def has_sorter(arguments: CallArguments) -> bool:
    """Return whether a sorter is given."""
    sorter = arguments("sorter")
    return isinstance(sorter, VirtualTensor) and bool(sorter.numel())


def check_sorter(arguments: CallArguments) -> None:
    """Raise PyTorch's error for a sorter with wrong places."""
    size = arguments("sorter").shape[-1]
    if _is_any(arguments("sorter"), lambda places: (places < 0) | (places >= size)):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def check_lengths(arguments: CallArguments) -> None:
    """Raise PyTorch's error for lengths that do not sum to the size."""
    lengths, size = arguments("lengths"), arguments(0).shape[arguments("axis")]
    if _is_any(lengths, lambda numbers: numbers < 0):
        raise RuntimeError("lengths contains negative value!")
    if _is_any(lengths, lambda numbers: numbers.sum(-1) != size):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe."
        )


def _is_any(tensor: VirtualTensor, test: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Return whether the values of a tensor are computed, and one of them is as tested."""
    return tensor.has_values and bool(test(reference(tensor).view()).any())


def check_number(arguments: CallArguments) -> None:
    """Raise the CPU's error if the number to write does not fit into the type of the tensor."""
    number = arguments("value")
    if number.has_values:
        # With the same words the CPU refuses a number that does not fit into the type, except for
        # a single element.
        pair = torch.empty(2, dtype=arguments(0).dtype, device="cpu")
        pair.fill_(reference(number).view().item())


def _checks_errors(arguments: CallArguments) -> bool:
    return bool(arguments("check_errors")) and has_elements(arguments)


def has_columns(arguments: CallArguments) -> bool:
    """Return whether a matrix has elements and more than one column."""
    return bool(arguments("self").shape[-1] > 1) and has_elements(arguments)


def has_long_rows(arguments: CallArguments) -> bool:
    """Return whether the rows are too long for the kernel that finds the mode."""
    source, dim = arguments("self"), arguments("dim")
    return bool(source.dim() and source.shape[-1 if dim is None else dim] > _MODE_KERNEL_SIZE)


def is_sorted(arguments: CallArguments) -> bool:
    """Return whether ``isin`` sorts, and first drops equal elements, because there are many."""
    elements, tests = arguments("elements"), arguments("test_elements")
    if not isinstance(elements, VirtualTensor) or not isinstance(tests, VirtualTensor):
        return False
    is_long = tests.numel() >= int(10 * elements.numel() ** 0.145)  # PyTorch's rule
    return bool(elements.numel()) and is_long and not arguments("assume_unique")


SIZE = HostRead(When.FOR_SIZE)
COUNT = HostRead(When.FOR_SIZE, has_elements)
BY_THRUST = HostRead(When.FOR_SIZE, by_library=True)
INFO = HostRead(When.AFTER, has_elements)  # whether the factorization succeeded
INFO_IF_ASKED = HostRead(When.AFTER, _checks_errors)
