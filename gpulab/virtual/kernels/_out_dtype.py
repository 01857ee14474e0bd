"""Matmuls with ``out_dtype=``, which return float32 for factors in half precision.

PyTorch has them for CUDA only, so there is nothing to call for meta tensors or on the CPU.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of
from gpulab.virtual.kernels._linalg_drivers import DRIVERS

_HALVES = (torch.float16, torch.bfloat16)
_MATMULS = {"mm", "bmm", "addmm", "baddbmm"}


@cache
def place_of_out_dtype(func: Any) -> int | None:
    """Return the position of the argument ``out_dtype``; None if the operator is no such matmul.

    Examples
    --------
    >>> import torch
    >>> place_of_out_dtype(torch.ops.aten.mm.default) is None
    True
    """
    # Others have an argument of this name, too, such as _scaled_mm.
    if func.namespace != "aten" or func.overloadpacket.__name__ not in _MATMULS:
        return None
    names = [argument.name for argument in arguments_of(func)]
    return names.index("out_dtype") if "out_dtype" in names else None


def computable(func: Any) -> Callable[..., Any]:
    """Return a function that computes an operator on any device: mostly the operator itself.

    Examples
    --------
    >>> import torch
    >>> computable(torch.ops.aten.mm.default) is torch.ops.aten.mm.default
    True
    """
    position = place_of_out_dtype(func)
    if position is None:
        return DRIVERS.get(func, func)  # type: ignore[no-any-return] # an operator is callable
    plain = func.overloadpacket.default

    def compute(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
        # As the hardware does, the products of two halves are added up in float32.
        wide = [arg.float() if arg.dtype in _HALVES else arg for arg in args[:position]]
        result: torch.Tensor = plain(*wide, *args[position + 1 :], **kwargs).to(args[position])
        return result if out is None else out.copy_(result)

    return compute


def check_out_dtype(wanted: torch.dtype, given: torch.dtype) -> None:
    """Refuse a result of another type than the factors, except float32 for half precision.

    Raises
    ------
    RuntimeError
        With PyTorch's message.

    Examples
    --------
    >>> import torch
    >>> check_out_dtype(torch.float32, torch.bfloat16)
    """
    if wanted != given and not (wanted == torch.float32 and given in _HALVES):
        raise RuntimeError(
            "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"
        )
