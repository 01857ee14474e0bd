"""Functions for which PyTorch's C++ takes another branch than on a CUDA GPU.

It takes virtual tensors for meta tensors, which have no values to look at, or for a subclass of
tensors. There it waits less, refuses less, or returns something else.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.nn import functional

from gpulab.core.torch_private import C_nn, nested_from_mask_left_aligned
from gpulab.virtual.dispatch import read_back
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor

_TOLERANCE = 1e-2  # PyTorch's own, for the phase of eigenvectors


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the functions that take the branch of a CUDA GPU."""
    del machine
    one_hot = _one_hot(functional.one_hot)
    return [
        (functional, {"one_hot": one_hot}),
        (C_nn, {"one_hot": one_hot}),
        (torch.linalg, {name: _checked(name) for name in ("eig", "eigh")}),
        (torch.linalg, {"matrix_rank": _filling_out(torch.linalg.matrix_rank)}),
        (torch, {"ctc_loss": _reading_lengths(torch.ctc_loss)}),
        (torch, {"_nested_tensor_from_mask_left_aligned": _is_left_aligned}),
    ]


def _one_hot(plain: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return ``one_hot``, which finds a class that is out of range."""

    @wraps(plain)
    def one_hot(tensor: torch.Tensor, num_classes: int = -1) -> torch.Tensor:
        # Inside torch.func tensors are wrapped, and only PyTorch's operators can unwrap them.
        if not (isinstance(tensor, VirtualTensor) and is_owner() and tensor.dtype == torch.int64):
            return plain(tensor, num_classes)
        # As one_hot in PyTorch's Onehot.cpp.
        if not tensor.numel():
            if num_classes <= 0:
                raise RuntimeError("Can not infer total number of classes from empty tensor.")
            return tensor.new_empty((*tensor.shape, num_classes))
        if num_classes == -1:
            num_classes = int(tensor.max().item()) + 1
        elif num_classes < 1:
            raise RuntimeError("num_classes should be positive")
        vectors = tensor.new_zeros((*tensor.shape, num_classes))
        return vectors.scatter_(-1, tensor.unsqueeze(-1), 1)

    return one_hot


def _is_left_aligned(source: torch.Tensor, mask: torch.Tensor) -> bool:
    # With False PyTorch's TransformerEncoder makes no nested tensors, which have no model here.
    if not isinstance(source, VirtualTensor):
        return bool(nested_from_mask_left_aligned(source, mask))
    read_back(source.storage_block.gpu)  # as PyTorch, which looks at the mask
    return False


def _checked(name: str) -> Callable[..., Any]:
    """Return a factorization that checks the gradient of complex eigenvectors in backward.

    A loss that depends on the phase of an eigenvector has a gradient that means nothing.
    """
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


def _filling_out(original: Any) -> Any:
    """Return a function that writes its result to ``out=``."""
    # For a tensor subclass, PyTorch's C++ returns a new tensor and leaves out= as it was.

    @wraps(original)
    def filled(*args: Any, **kwargs: Any) -> torch.Tensor:
        out = kwargs.pop("out", None)
        result: torch.Tensor = original(*args, **kwargs)
        return result if out is None else out.resize_(result.shape).copy_(result)

    return filled


def _reading_lengths(original: Any) -> Any:
    """Return a ``torch.ctc_loss`` that reads the lengths on the host, as it does on CUDA.

    For a tensor subclass, PyTorch's C++ takes another way, which refuses lengths on the host.
    """

    @wraps(original)
    def loss(
        log_probs: torch.Tensor,
        targets: torch.Tensor,
        input_lengths: Any,
        target_lengths: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if isinstance(log_probs, VirtualTensor):
            input_lengths, target_lengths = [
                item.tolist() if isinstance(item, torch.Tensor) else item
                for item in (input_lengths, target_lengths)
            ]
        return original(log_probs, targets, input_lengths, target_lengths, *args, **kwargs)

    return loss
