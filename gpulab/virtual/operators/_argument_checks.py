"""Refuse calls of single operators that CUDA refuses and meta tensors accept.

The messages are PyTorch's. Each check gets the arguments of a call.
"""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.versions import is_within, torch_version

_MOST_CATEGORIES = 1 << 24  # of a draw, which PyTorch numbers in float32
_MOST_DIMENSIONS = 25  # of some of CUDA's kernels
_NAMES_MATMULS = not is_within(torch_version(), ((2, 0), (2, 15)))  # in messages about shapes
HALVES = frozenset({torch.float16, torch.bfloat16})
INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_COMPLEX = frozenset({torch.complex64, torch.complex128})
NOT_FLOATING = INTEGERS | _COMPLEX | {torch.bool}
# The C++ names of types in PyTorch's messages.
_TYPE_NAMES = {
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.int32: "int",
}


def refuse(kernel: str, types: frozenset[torch.dtype]) -> Callable[..., None]:
    """Return a check for types of the first tensor for which CUDA has no kernel.

    The CPU has one, as an H100 showed. ``kernel`` is CUDA's name of it.
    """

    def check(source: torch.Tensor, *_others: object, **_options: object) -> None:
        if source.dtype in types:
            raise _no_kernel(kernel, source)

    return check


def factors(first: int, second: int, *, of_matrices: str = "") -> Callable[..., None]:
    """Return a check of the types of a matmul's factors, the arguments at two positions.

    With ``of_matrices``, the operator's name, it checks their shapes, too; elsewhere meta tensors
    give CUDA's message.
    """

    def check(*args: Any, **_options: object) -> None:
        left, right = args[first], args[second]
        if left.dtype != right.dtype:
            names = (_TYPE_NAMES.get(item.dtype, str(item.dtype)) for item in (left, right))
            raise RuntimeError(
                "expected mat1 and mat2 to have the same dtype, but got: {} != {}".format(*names)
            )
        for wanted in args[second + 1 :]:
            is_wide = wanted == torch.float32 and right.dtype in HALVES
            if isinstance(wanted, torch.dtype) and wanted != right.dtype and not is_wide:
                raise RuntimeError(
                    "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"
                )
        are_matrices = left.dim() == right.dim() == 2  # noqa: PLR2004 # rows and columns
        if of_matrices and are_matrices and left.shape[-1] != right.shape[-2]:
            shapes = ("x".join(map(str, item.shape)) for item in (left, right))
            named = f"{of_matrices}: " if _NAMES_MATMULS else ""
            raise RuntimeError(
                named + "mat1 and mat2 shapes cannot be multiplied ({} and {})".format(*shapes)
            )

    return check


def check_convolution(*args: Any, **_options: object) -> None:
    """Check the types of a convolution, and its options."""
    if args[0].dtype != args[1].dtype:
        types = "Input type ({}) and weight type ({})".format(*(item.type() for item in args[:2]))
        raise RuntimeError(f"{types} should be the same")
    if args[0].dtype in INTEGERS:
        kind = _scalar_type(args[0])
        raise RuntimeError(f"getCudnnDataTypeFromScalarType() not supported for {kind}")
    stride, padding, dilation = args[3:6]
    if any(n < 0 for n in padding):
        raise RuntimeError("negative padding is not supported")
    if any(n <= 0 for n in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(n <= 0 for n in dilation):
        raise RuntimeError("dilation should be greater than zero")


def check_multinomial(
    weights: torch.Tensor,
    n_drawn: int,
    with_replacement: bool = False,  # noqa: FBT001, FBT002 # as PyTorch passes them
    *_others: object,
    **_options: object,
) -> None:
    """Check how many numbers are drawn, and from how many categories."""
    if not weights.dim():
        return  # PyTorch's function for meta tensors says so
    n_categories = weights.shape[-1]
    if not with_replacement and n_drawn > n_categories:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if n_categories > _MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")


def check_rms_norm(
    source: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None = None,
    *_others: object,
    **_options: object,
) -> None:
    """Check the shapes of an RMS norm."""
    expected = list(normalized_shape)
    if not expected:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            f"one element, but got normalized_shape = {expected}"
        )
    if weight is not None and list(weight.shape) != expected:
        raise RuntimeError(
            "Expected weight to be of same shape as normalized_shape, but got weight of shape "
            f"{list(weight.shape)} and normalized_shape = {expected}"
        )
    if list(source.shape[-len(expected) :]) != expected:
        sizes = ", ".join(map(str, expected))
        raise RuntimeError(
            f"Given normalized_shape={expected}, expected input with shape [*{sizes}], but got "
            f"input of size{list(source.shape)}"
        )


def check_layer_norm(
    source: torch.Tensor, _shape: object, *parameters: object, **_options: object
) -> None:
    """Check the types of a layer norm."""
    for parameter in parameters:
        if isinstance(parameter, torch.Tensor) and parameter.dtype != source.dtype:
            raise RuntimeError(
                f"expected scalar type {_scalar_type(source)} but found {_scalar_type(parameter)}"
            )


def check_batch_norm(
    source: torch.Tensor,
    weight: torch.Tensor | None = None,
    *_others: object,
    **_options: object,
) -> None:
    """Check the types of a batch norm."""
    if weight is None or weight.dtype == source.dtype:
        return
    if not (weight.dtype == torch.float32 and source.dtype in HALVES):
        raise RuntimeError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument "
            f"#2 'weight'; but type {source.type()} does not equal {weight.type()} (while "
            "checking arguments for cudnn_batch_norm)"
        )


def check_lstsq(*_args: object, driver: str | None = None, **_options: object) -> None:
    """Check the driver of a least squares problem."""
    if driver not in {None, "gels"}:
        raise RuntimeError(
            "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA"
        )


def check_median(
    source: torch.Tensor, dim: int | None = None, *_others: object, **_options: object
) -> None:
    """Check the dimensions and the type of a median."""
    if dim is not None and source.dim() >= _MOST_DIMENSIONS:
        raise RuntimeError("CUDA Tensors cannot have more than 25 dimensions")
    if dim is not None and source.dtype == torch.bool:
        raise _no_kernel("median_out_impl", source)


def check_scatter_reduce(
    source: torch.Tensor,
    _dim: int,
    _index: object,
    _src: object,
    reduce: str,
    *_others: object,
    **_options: object,
) -> None:
    """Check the type of a scatter."""
    refused = _COMPLEX if reduce == "mean" else _COMPLEX | {torch.bool}
    if reduce != "sum" and source.dtype in refused:
        raise _no_kernel("cuda_scatter_gather_base_kernel_func", source)


def _no_kernel(kernel: str, source: torch.Tensor) -> NotImplementedError:
    return NotImplementedError(f"\"{kernel}\" not implemented for '{_scalar_type(source)}'")


def _scalar_type(tensor: torch.Tensor) -> str:
    """Return PyTorch's name of a tensor's type, such as "Half" of a ``torch.cuda.HalfTensor``."""
    return tensor.type().rpartition(".")[2].removesuffix("Tensor")
