"""Check the gradient of complex eigenvectors in backward, as PyTorch does on a CUDA GPU.

PyTorch's C++ takes virtual tensors for meta tensors, which have no values to check. A loss that
depends on the phase of an eigenvector would get a gradient that means nothing.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor

_TOLERANCE = 1e-2  # PyTorch's own


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements of ``torch.linalg.eig`` and ``torch.linalg.eigh``."""
    del machine
    return [(torch.linalg, {name: _checked(name) for name in ("eig", "eigh")})]


def _checked(name: str) -> Callable[..., Any]:
    plain = getattr(torch.linalg, name)

    @wraps(plain)
    def factorize(*args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        vectors = result[1]
        is_recorded = isinstance(vectors, VirtualTensor) and vectors.requires_grad
        if is_recorded and vectors.is_complex() and is_owner():
            constant = vectors.detach()
            vectors.register_hook(lambda grad: _check(name, constant, grad))
        return result

    return factorize


def _check(name: str, vectors: torch.Tensor, grad: torch.Tensor) -> None:
    """Raise an error if a change of an eigenvector's phase would change the loss.

    Raises
    ------
    RuntimeError
        With PyTorch's message.
    """
    imaginary = torch.linalg.vecdot(vectors, grad.detach(), dim=-2).imag
    zeros = torch.zeros_like(imaginary)
    if isinstance(imaginary, VirtualTensor) and not imaginary.has_values:
        torch.cuda.current_stream(imaginary.device).synchronize()  # as the check would
    elif not torch.allclose(imaginary, zeros, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise RuntimeError(
            f"linalg_{name}_backward: The eigenvectors in the complex case are specified up to "
            "multiplication by e^{i phi}. The specified loss function depends on this quantity, "
            "so it is ill-defined."
        )
