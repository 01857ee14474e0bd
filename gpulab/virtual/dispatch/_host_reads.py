"""What PyTorch reads back on the host inside an operator, so that the host waits: the table.

A composite function is not in it: PyTorch's C++ takes it apart, and what it reads arrives here as
an operator of its own, such as ``_local_scalar_dense`` for ``.item()``. The files are below
``aten/src/ATen/native``, read in PyTorch 2.4; what a CUDA GPU with PyTorch 2.11 answered, call by
call, is in ``benchmarks/results/waits-h100.json``, and a test holds the table to it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of
from gpulab.virtual.dispatch._value_references import reference
from gpulab.virtual.tensors import VirtualTensor

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


@dataclass(frozen=True, slots=True)
class CallArguments:
    """The arguments of a call, by name or position."""

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, wanted: str | int) -> Any:
        """Return an argument, or its default; None if the operator has no such argument."""
        for position, argument in enumerate(arguments_of(self.func)):
            if wanted in {position, argument.name}:
                default = argument.default_value
                value = self.args[position] if position < len(self.args) else default
                return self.kwargs.get(argument.name, value)
        return None


def _always(_arguments: CallArguments) -> bool:
    return True


def _unchecked(_arguments: CallArguments) -> None:
    pass


@dataclass(frozen=True, slots=True)
class HostRead:
    """What an operator reads back from the device.

    Attributes
    ----------
    when
        Whether it is read before or after the operator's kernels, or for the size of the result.
    what
        What is read.
    source
        The file of PyTorch that reads it.
    condition
        Returns for the arguments of a call, by name, whether this call reads.
    check
        Raises PyTorch's error for what was read, if the values are computed.
    by_library
        Whether a library waits that PyTorch calls. ``torch.cuda.set_sync_debug_mode()`` does not
        see such a wait.
    """

    when: When
    what: str
    source: str
    condition: Callable[[CallArguments], bool] = _always
    check: Callable[[CallArguments], None] = _unchecked
    by_library: bool = False


def reads_in(func: Any, name: str) -> tuple[HostRead, ...]:
    """Return what an operator reads back, whatever its arguments are.

    Examples
    --------
    >>> reads_in(torch.ops.aten._linalg_svd.default, "_linalg_svd")[0].what
    'whether the factorization succeeded'
    >>> reads_in(torch.ops.aten.add.Tensor, "add")
    ()
    """
    if name in HOST_READS:
        return HOST_READS[name]
    # ``index`` has the tag, too, but only an index by a mask depends on values.
    return (_SIZE,) if torch.Tag.dynamic_output_shape in func.tags else ()


def _has_mask(arguments: CallArguments) -> bool:
    return any(index is not None and index.dtype in MASKS for index in arguments("indices"))


def _on_device(name: str) -> Callable[[CallArguments], bool]:
    return lambda arguments: isinstance(arguments(name), VirtualTensor)


def _has_elements(arguments: CallArguments) -> bool:
    return bool(arguments(0).numel())


def _has_deviations(arguments: CallArguments) -> bool:
    deviations = arguments("std")
    return isinstance(deviations, VirtualTensor) and bool(deviations.numel())


def _check_deviations(arguments: CallArguments) -> None:
    if _is_any(arguments("std"), lambda deviations: deviations < 0):
        raise RuntimeError("normal expects all elements of std >= 0.0")


def _has_sorter(arguments: CallArguments) -> bool:
    sorter = arguments("sorter")
    return isinstance(sorter, VirtualTensor) and bool(sorter.numel())


def _check_sorter(arguments: CallArguments) -> None:
    size = arguments("sorter").shape[-1]
    if _is_any(arguments("sorter"), lambda places: (places < 0) | (places >= size)):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def _check_lengths(arguments: CallArguments) -> None:
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


def _check_number(arguments: CallArguments) -> None:
    number = arguments("value")
    if number.has_values:
        # With the same words the CPU refuses a number that does not fit into the type, except for
        # a single element.
        pair = torch.empty(2, dtype=arguments(0).dtype, device="cpu")
        pair.fill_(reference(number).view().item())


def _checks_errors(arguments: CallArguments) -> bool:
    return bool(arguments("check_errors")) and _has_elements(arguments)


def _has_no_bounds(arguments: CallArguments) -> bool:
    return bool(arguments("min") == arguments("max") and arguments("self").numel())


def _has_no_size(arguments: CallArguments) -> bool:
    return arguments("output_size") is None and _has_elements(arguments)


def _has_dim(arguments: CallArguments) -> bool:
    return arguments("dim") is not None


def _has_no_dim(arguments: CallArguments) -> bool:
    return arguments("dim") is None and _has_elements(arguments)


def _is_matrix(arguments: CallArguments) -> bool:
    return bool(arguments("self").shape[-1] > 1) and _has_elements(arguments)


def _has_long_rows(arguments: CallArguments) -> bool:
    source, dim = arguments("self"), arguments("dim")
    return bool(source.dim() and source.shape[-1 if dim is None else dim] > _MODE_KERNEL_SIZE)


def _is_sorted(arguments: CallArguments) -> bool:
    """Return whether ``isin`` sorts, and first drops equal elements, because there are many."""
    elements, tests = arguments("elements"), arguments("test_elements")
    if not isinstance(elements, VirtualTensor) or not isinstance(tests, VirtualTensor):
        return False
    is_long = tests.numel() >= int(10 * elements.numel() ** 0.145)  # PyTorch's rule
    return bool(elements.numel()) and is_long and not arguments("assume_unique")


def _is_checked(arguments: CallArguments) -> bool:
    return arguments("lengths") is not None and not arguments("unsafe")


_SIZE = HostRead(When.FOR_SIZE, "how many elements the result has", "")
_INFO = HostRead(
    When.AFTER,
    "whether the factorization succeeded",
    "BatchLinearAlgebra.cpp: _linalg_check_errors",
    _has_elements,
)
_INFO_IF_ASKED = HostRead(_INFO.when, _INFO.what, _INFO.source, _checks_errors)
_COUNT = HostRead(When.FOR_SIZE, "how many elements differ", "cuda/UniqueCub.cu", _has_elements)
_BY_THRUST = HostRead(_COUNT.when, _COUNT.what, "cuda/Unique.cu: Thrust", by_library=True)

# By name without overload: ``normal.Tensor_float`` is ``normal``, and ``normal_`` is, too.
HOST_READS: dict[str, tuple[HostRead, ...]] = {
    "nonzero": (HostRead(When.FOR_SIZE, "how many elements are not zero", "cuda/Nonzero.cu"),),
    "masked_select": (HostRead(When.FOR_SIZE, "how many are selected", "cuda/Nonzero.cu"),),
    "index": (HostRead(When.FOR_SIZE, "how many are selected", "IndexingUtils.h", _has_mask),),
    "_unique": (_COUNT,),
    "_unique2": (_COUNT,),
    "unique_consecutive": (
        HostRead(_COUNT.when, _COUNT.what, _COUNT.source, _has_no_dim),
        HostRead(_COUNT.when, _COUNT.what, _BY_THRUST.source, _has_dim, by_library=True),
    ),
    "unique_dim": (_BY_THRUST,),
    "bincount": (
        HostRead(
            When.FOR_SIZE, "the least and largest number", "cuda/SummaryOps.cu", _has_elements
        ),
    ),
    "histc": (
        HostRead(
            When.FOR_SIZE, "the bounds, if none are given", "cuda/SummaryOps.cu", _has_no_bounds
        ),
    ),
    "repeat_interleave": (
        HostRead(When.FOR_SIZE, "the sum of the repeats", "Repeat.h", _has_no_size),
    ),
    "equal": (HostRead(When.FOR_SIZE, "whether all are equal", "cuda/Equal.cpp"),),
    # Reads before the kernels
    "normal": (
        HostRead(
            When.BEFORE,
            "whether a deviation is negative",
            "DistributionTemplates.h",
            _has_deviations,
            _check_deviations,
        ),
    ),
    "masked_fill": (
        HostRead(
            *(When.BEFORE, "the value to write", "cuda/Indexing.cu", _on_device("value")),
            check=_check_number,
        ),
    ),
    "index_fill": (
        HostRead(
            *(When.BEFORE, "the value to write", "TensorAdvancedIndexing.cpp"),
            condition=_on_device("value"),
            check=_check_number,
        ),
    ),
    "linalg_matrix_exp": (
        HostRead(When.BEFORE, "the norms of the matrices", "LinearAlgebra.cpp", _is_matrix),
    ),
    "segment_reduce": (
        HostRead(When.BEFORE, "the least length", "SegmentReduce.cpp", _is_checked),
        HostRead(When.BEFORE, "their sums", "SegmentReduce.cpp", _is_checked, _check_lengths),
    ),
    "searchsorted": (
        HostRead(When.BEFORE, "the least place", "BucketizationUtils.h", _has_sorter),
        HostRead(
            When.BEFORE,
            "the largest place",
            "BucketizationUtils.h",
            _has_sorter,
            _check_sorter,
        ),
    ),
    "isin": (
        HostRead(When.BEFORE, "how many elements differ", "TensorCompare.cpp", _is_sorted),
        HostRead(When.BEFORE, "how many test elements differ", "TensorCompare.cpp", _is_sorted),
    ),
    **dict.fromkeys(
        ("linspace", "logspace"),
        (
            HostRead(When.BEFORE, "the first number", "RangeFactories.cpp", _on_device("start")),
            HostRead(When.BEFORE, "the last number", "RangeFactories.cpp", _on_device("end")),
        ),
    ),
    # Reads after the kernels
    "mode": (
        HostRead(
            When.AFTER, "each mode of a long row", "cuda/TensorModeKernel.cu", _has_long_rows
        ),
    ),
    "cholesky": (_INFO,),
    "linalg_eig": (
        HostRead(When.BEFORE, "whether all numbers are finite", "BatchLinearAlgebra.cpp"),
        _INFO,
    ),
    "_linalg_eigh": (_INFO,),
    "_linalg_svd": (_INFO,),
    "linalg_lstsq": (_INFO,),
    "linalg_pinv": (_INFO,),  # of the factorization that it contains
    **dict.fromkeys(
        ("linalg_cholesky_ex", "linalg_inv_ex", "_linalg_solve_ex", "linalg_lu_factor_ex"),
        (_INFO_IF_ASKED,),
    ),
    "linalg_ldl_factor_ex": (
        HostRead(When.AFTER, "the pivots", "cuSOLVER's sytrf", _has_elements, by_library=True),
        _INFO_IF_ASKED,
    ),
}
