"""Take the gradient of ``torch.prod`` as PyTorch does on a CUDA GPU: divide by each element.

PyTorch's C++ takes virtual tensors for meta tensors, which have no values to look at. For these it
multiplies the other elements instead. Where a product overflows, that gives other numbers, and the
host does not wait for the count of zeros.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements of ``torch.prod`` and ``Tensor.prod``.

    Parameters
    ----------
    machine
        The virtual machine, which is not used: the formula is the same on each GPU.
    """
    del machine
    return [(owner, {"prod": _product(owner.prod)}) for owner in (torch, torch.Tensor)]


def _product(plain: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @wraps(plain)
    def prod(*args: Any, **kwargs: Any) -> torch.Tensor:
        source = args[0] if args else None
        # Inside torch.func tensors are wrapped, and only PyTorch's operators can unwrap them.
        is_recorded = isinstance(source, VirtualTensor) and source.requires_grad
        if not (is_recorded and torch.is_grad_enabled() and is_owner()) or "out" in kwargs:
            return plain(*args, **kwargs)
        dim, keepdim = (
            args[place] if len(args) > place else kwargs.get(name)
            for place, name in ((1, "dim"), (2, "keepdim"))
        )
        found: torch.Tensor = Prod.apply(  # type: ignore[no-untyped-call] # torch's is untyped
            source, dim, keepdim, lambda same: plain(same, *args[1:], **kwargs)
        )
        return found

    return prod


class Prod(torch.autograd.Function):
    """A product in autograd's graph, where it has the name of PyTorch's own."""

    @staticmethod
    def forward(
        ctx: Any,
        source: torch.Tensor,
        dim: int | None,
        keepdim: bool | None,  # noqa: FBT001 # autograd passes arguments by position
        plain: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """Return the product."""
        found = plain(source)
        ctx.save_for_backward(source, found)
        ctx.dim, ctx.keepdim = dim, keepdim
        return found

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of the source."""
        (grad,), (source, found) = grads, ctx.saved_tensors
        if ctx.dim is not None and not ctx.keepdim and source.dim():
            grad, found = grad.unsqueeze(ctx.dim), found.unsqueeze(ctx.dim)
        return _gradient(grad, source.to(grad.dtype), found, ctx.dim), None, None, None


def _gradient(
    grad: torch.Tensor, source: torch.Tensor, found: torch.Tensor, dim: int | None
) -> torch.Tensor:
    # As prod_backward in PyTorch's FunctionsManual.cpp.
    if source.dim() == 0:
        return grad.clone()
    if _has_zero(source):
        return _without_division(grad, source, dim)
    return grad * (found / source).conj()


def _has_zero(source: torch.Tensor) -> bool:
    zeros = source.detach() == 0
    if isinstance(zeros, VirtualTensor) and not zeros.has_values:
        torch.cuda.current_stream(source.device).synchronize()  # where the program would wait
        return False
    return bool(zeros.any())


def _without_division(grad: torch.Tensor, source: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Return the gradient as products of the elements before and after each one."""
    if dim is None:
        return _without_division(grad, source.reshape(-1), 0).view_as(source)
    n = source.size(dim)
    one = torch.ones_like(source.narrow(dim, 0, 1))
    before = torch.cat([one, source.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = torch.cat([one, source.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return grad * (before * after).conj()
