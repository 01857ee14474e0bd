"""Refuse calls that CUDA refuses and meta tensors accept, with PyTorch's own error messages."""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of, overload_name
from gpulab.virtual.kernels import check_out_dtype, operator_name, place_of_out_dtype
from gpulab.virtual.tensors import TensorLayout

# Positions of the two factors of a matmul among the arguments.
_FACTORS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "mv": (0, 1)}
_OF_MATRICES = {"mm", "addmm"}  # for the others, meta tensors give the same message as CUDA
_MOST_CATEGORIES = 1 << 24  # of a draw, which PyTorch numbers in float32
_MOST_DIMENSIONS = 25  # of some of CUDA's kernels
# PyTorch's names of types, in messages about tensors.
_SCALAR_TYPES = {
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.float32: "Float",
    torch.float64: "Double",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
_HALVES = frozenset({torch.float16, torch.bfloat16})
_INTEGERS = frozenset({torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})
_COMPLEX = frozenset({torch.complex64, torch.complex128})
_NOT_FLOATING = _INTEGERS | _COMPLEX | {torch.bool}
# CUDA has no kernel for these types of the first tensor, though the CPU has one, as an H100
# showed; and how CUDA names the kernel.
_REFUSED_TYPES = {
    **dict.fromkeys(("mm", "addmm", "addbmm"), ("addmm_cuda", _INTEGERS)),
    **dict.fromkeys(("bmm", "baddbmm", "_trilinear"), ("baddbmm_cuda", _INTEGERS)),
    **dict.fromkeys(("mv", "addmv"), ("addmv_impl_cuda", _INTEGERS)),
    **dict.fromkeys(("dot", "vdot"), ("dot", _INTEGERS)),
    "avg_pool2d": ("avg_pool2d_out_cuda_frame", _INTEGERS),
    "avg_pool3d": ("avg_pool3d_out_cuda", _INTEGERS),
    "max_pool2d_with_indices": ("max_pool2d_with_indices_out_cuda_frame", _INTEGERS),
    "max_pool3d_with_indices": ("max_pool3d_with_indices_out_frame", _INTEGERS),
    **{
        f"{prefix}upsample_{kind}2d{suffix}": (f"upsample_{kind}2d_out_frame", _INTEGERS)
        for kind in ("bilinear", "bicubic")
        for prefix, suffix in (("", ""), ("_", "_aa"))
    },
    **{name: (f"{name}_cuda", _HALVES) for name in ("angle", "igamma", "igammac")},
    "histc": ("histc", _HALVES),
    "native_dropout": ("fused_dropout", _NOT_FLOATING),
    "native_dropout_backward": ("masked_scale", _NOT_FLOATING),
    "segment_reduce": ("segment_reduce_cuda", _NOT_FLOATING),
}
_ON_CPU_ALONE = {
    "histogram",
    *(f"_histogramdd_{kind}" for kind in ("bin_edges", "from_bin_cts", "from_bin_tensors")),
}
# The C++ names of types in PyTorch's messages.
_TYPE_NAMES = {
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.int32: "int",
}


def mixed_devices(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return PyTorch's message for a call whose tensors are on several devices."""
    arguments = arguments_of(func)
    named = [(argument.name, given) for argument, given in zip(arguments, args, strict=False)]
    tensors = [
        (name, tensor)
        for name, given in (*named, *kwargs.items())
        for tensor in (given if isinstance(given, (list, tuple)) else (given,))
        if isinstance(tensor, torch.Tensor)
    ]
    # A tensor without dimensions may be on the host, so PyTorch's message names none of them,
    # unless it is the only one on the device.
    found = [(name, tensor.device) for name, tensor in tensors if tensor.dim()]
    if len({device for _, device in found}) == 1:
        found = [(name, tensor.device) for name, tensor in tensors]
    first = found[0][1]
    name, other = next(item for item in found if item[1] != first)
    expected = "Expected all tensors to be on the same device, but"
    if torch.Tag.pointwise in func.tags:
        return f"{expected} found at least two devices, {first} and {other}!"
    overload = "" if overload_name(func) == "default" else f"{overload_name(func)}_"
    method = f"wrapper_CUDA_{overload}{func.overloadpacket.__name__}"
    return (
        f"{expected} got {name} is on {other}, different from other tensors on {first} "
        f"(when checking argument in method {method})"
    )


def check_written(layout: TensorLayout) -> None:
    """Refuse to write to a tensor that has several elements at the same address.

    Raises
    ------
    RuntimeError
        With PyTorch's message.
    """
    if layout.span_bytes < layout.n_elements * layout.dtype.itemsize:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def check_call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse calls that PyTorch refuses on a CUDA GPU, but for meta tensors not or in other words.

    These are matmuls and norms whose shapes or types do not match, convolutions of mixed types or
    with impossible options, and impossible draws.

    Raises
    ------
    RuntimeError
        With the message of PyTorch on a CUDA GPU.
    """
    name = operator_name(func)
    check = _CHECKS.get(name)
    if check is not None:
        check(*args, **kwargs)
    if name in _ON_CPU_ALONE:
        raise NotImplementedError(
            f"Could not run '{func.name()}' with arguments from the 'CUDA' backend."
        )
    kernel, refused = _REFUSED_TYPES.get(name, ("", ()))
    if kernel and args[0].dtype in refused:
        raise _no_kernel(kernel, args[0])
    positions = _FACTORS.get(name)
    if positions is None:
        return
    first, second = (args[position] for position in positions)
    if first.dtype != second.dtype:
        names = (_TYPE_NAMES.get(item.dtype, str(item.dtype)) for item in (first, second))
        raise RuntimeError(
            "expected mat1 and mat2 to have the same dtype, but got: {} != {}".format(*names)
        )
    position = place_of_out_dtype(func)
    if position is not None:
        check_out_dtype(args[position], second.dtype)
    are_matrices = first.dim() == second.dim() == 2  # noqa: PLR2004 # rows and columns
    if name in _OF_MATRICES and are_matrices and first.shape[-1] != second.shape[-2]:
        shapes = ("x".join(map(str, item.shape)) for item in (first, second))
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied ({} and {})".format(*shapes))


def _check_convolution(*args: Any, **_options: object) -> None:
    if args[0].dtype != args[1].dtype:
        types = "Input type ({}) and weight type ({})".format(*(item.type() for item in args[:2]))
        raise RuntimeError(f"{types} should be the same")
    if args[0].dtype in _INTEGERS:
        kind = _SCALAR_TYPES[args[0].dtype]
        raise RuntimeError(f"getCudnnDataTypeFromScalarType() not supported for {kind}")
    stride, padding, dilation = args[3:6]
    if any(n < 0 for n in padding):
        raise RuntimeError("negative padding is not supported")
    if any(n <= 0 for n in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(n <= 0 for n in dilation):
        raise RuntimeError("dilation should be greater than zero")


def _check_multinomial(
    weights: torch.Tensor,
    n_drawn: int,
    with_replacement: bool = False,  # noqa: FBT001, FBT002 # as PyTorch passes them
    *_others: object,
    **_options: object,
) -> None:
    if not weights.dim():
        return  # PyTorch's function for meta tensors says so
    n_categories = weights.shape[-1]
    if not with_replacement and n_drawn > n_categories:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    if n_categories > _MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")


def _check_rms_norm(
    source: torch.Tensor,
    normalized_shape: list[int],
    weight: torch.Tensor | None = None,
    *_others: object,
    **_options: object,
) -> None:
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


def _check_layer_norm(
    source: torch.Tensor, _shape: object, *parameters: object, **_options: object
) -> None:
    for parameter in parameters:
        if isinstance(parameter, torch.Tensor) and parameter.dtype != source.dtype:
            expected, found = (
                _SCALAR_TYPES.get(item.dtype, item.dtype) for item in (source, parameter)
            )
            raise RuntimeError(f"expected scalar type {expected} but found {found}")


def _check_batch_norm(
    source: torch.Tensor,
    weight: torch.Tensor | None = None,
    *_others: object,
    **_options: object,
) -> None:
    if weight is None or weight.dtype == source.dtype:
        return
    if not (weight.dtype == torch.float32 and source.dtype in _HALVES):
        raise RuntimeError(
            "Expected tensor for argument #1 'input' to have the same type as tensor for argument "
            f"#2 'weight'; but type {source.type()} does not equal {weight.type()} (while "
            "checking arguments for cudnn_batch_norm)"
        )


def _check_lstsq(*_args: object, driver: str | None = None, **_options: object) -> None:
    if driver not in {None, "gels"}:
        raise RuntimeError(
            "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA"
        )


def _check_median(
    source: torch.Tensor, dim: int | None = None, *_others: object, **_options: object
) -> None:
    if dim is not None and source.dim() >= _MOST_DIMENSIONS:
        raise RuntimeError("CUDA Tensors cannot have more than 25 dimensions")
    if dim is not None and source.dtype == torch.bool:
        raise _no_kernel("median_out_impl", source)


def _check_scatter_reduce(  # as PyTorch passes them
    source: torch.Tensor,
    _dim: int,
    _index: object,
    _src: object,
    reduce: str,
    *_others: object,
    **_options: object,
) -> None:
    refused = _COMPLEX if reduce == "mean" else _COMPLEX | {torch.bool}
    if reduce != "sum" and source.dtype in refused:
        raise _no_kernel("cuda_scatter_gather_base_kernel_func", source)


def _no_kernel(kernel: str, source: torch.Tensor) -> NotImplementedError:
    kind = _SCALAR_TYPES[source.dtype]
    return NotImplementedError(f"\"{kernel}\" not implemented for '{kind}'")


_CHECKS: dict[str, Callable[..., None]] = {
    "convolution": _check_convolution,
    "multinomial": _check_multinomial,
    "_fused_rms_norm": _check_rms_norm,
    "native_layer_norm": _check_layer_norm,
    "native_batch_norm": _check_batch_norm,
    "cudnn_batch_norm": _check_batch_norm,
    "linalg_lstsq": _check_lstsq,
    "median": _check_median,
    "nanmedian": _check_median,
    "scatter_reduce": _check_scatter_reduce,
}
