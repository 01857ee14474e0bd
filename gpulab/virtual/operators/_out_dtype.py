"""Matmuls with ``out_dtype=``, which return float32 for factors in half precision.

PyTorch has them for CUDA only, so there is nothing to call for meta tensors or on the CPU.
"""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.torch_private import arguments_of

_HALVES = (torch.float16, torch.bfloat16)


def place_of_out_dtype(func: Any) -> int | None:
    """Return the position of the argument ``out_dtype`` of a matmul, or None."""
    names = [argument.name for argument in arguments_of(func)]
    return names.index("out_dtype") if "out_dtype" in names else None


def computable(func: Any, position: int) -> Callable[..., Any]:
    """Return a function that computes such a matmul, with ``out_dtype`` at ``position``."""
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
    """
    if wanted != given and not (wanted == torch.float32 and given in _HALVES):
        raise RuntimeError(
            "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs"
        )
