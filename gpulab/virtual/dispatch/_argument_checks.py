"""Refuse calls that CUDA refuses and meta tensors accept, with PyTorch's own error messages."""

from typing import Any

import torch

from gpulab.core.torch_private import arguments_of, overload_name
from gpulab.virtual.operators import Operator
from gpulab.virtual.tensors import TensorLayout


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


def check_call(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse calls that PyTorch refuses on a CUDA GPU, but for meta tensors not or in other words.

    These are matmuls and norms whose shapes or types do not match, convolutions of mixed types or
    with impossible options, and impossible draws.

    Raises
    ------
    RuntimeError
        With the message of PyTorch on a CUDA GPU.
    """
    for check in operator.model.checks:
        check(*args, **kwargs)
    if operator.model.is_on_cpu_alone:
        raise NotImplementedError(
            f"Could not run '{operator.func.name()}' with arguments from the 'CUDA' backend."
        )
