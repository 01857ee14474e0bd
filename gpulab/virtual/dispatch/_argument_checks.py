"""Refuse calls that CUDA refuses and meta tensors accept, with PyTorch's own error messages."""

from typing import Any

import torch

from gpulab.torch_private import arguments_of, overload_name
from gpulab.virtual.kernels import check_out_dtype, operator_name, place_of_out_dtype
from gpulab.virtual.tensors import TensorLayout

# Positions of the two factors of a matmul among the arguments.
_FACTORS = {"mm": (0, 1), "bmm": (0, 1), "addmm": (1, 2), "baddbmm": (1, 2), "mv": (0, 1)}
_OF_MATRICES = {"mm", "addmm"}  # for the others, meta tensors give the same message as CUDA
# The C++ names of types in PyTorch's messages.
_TYPE_NAMES = {
    torch.float16: "c10::Half",
    torch.bfloat16: "c10::BFloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.int32: "int",
}


def mixed_devices(func: Any, args: tuple[Any, ...]) -> str:
    """Return PyTorch's message for a call whose tensors are on several devices."""
    found = [
        (argument.name, tensor.device)
        # A tensor without dimensions may be on the host, so PyTorch's message names none of them.
        for argument, given in zip(arguments_of(func), args, strict=False)
        for tensor in (given if isinstance(given, (list, tuple)) else (given,))
        if isinstance(tensor, torch.Tensor) and tensor.dim()
    ]
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


def check_call(func: Any, args: tuple[Any, ...]) -> None:
    """Refuse matmuls whose shapes or types do not match, and convolutions of mixed types.

    Raises
    ------
    RuntimeError
        With the message of PyTorch on a CUDA GPU.
    """
    name = operator_name(func)
    if name == "convolution" and args[0].dtype != args[1].dtype:
        types = "Input type ({}) and weight type ({})".format(*(item.type() for item in args[:2]))
        raise RuntimeError(f"{types} should be the same")
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
    fits = first.dim() != second.dim() or first.shape[-1] == second.shape[-2]
    if name in _OF_MATRICES and not fits:
        shapes = ("x".join(map(str, item.shape)) for item in (first, second))
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied ({} and {})".format(*shapes))
