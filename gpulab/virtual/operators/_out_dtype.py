"""Matmuls with ``out_dtype=``, which return float32 for factors in half precision.

PyTorch has them for CUDA only, so there is nothing to call for meta tensors or on the CPU.
"""

from collections.abc import Callable
from typing import Any

import torch

_HALVES = (torch.float16, torch.bfloat16)


def computable(func: Any, position: int) -> Callable[..., Any]:
    """Return a function that computes such a matmul, with ``out_dtype`` at ``position``."""
    plain = func.overloadpacket.default

    def compute(*args: Any, out: torch.Tensor | None = None, **kwargs: Any) -> torch.Tensor:
        # As the hardware does, the products of two halves are added up in float32.
        wide = [arg.float() if arg.dtype in _HALVES else arg for arg in args[:position]]
        result: torch.Tensor = plain(*wide, *args[position + 1 :], **kwargs).to(args[position])
        return result if out is None else out.copy_(result)

    return compute
