"""Take the gradients of ``prod`` and ``cumprod`` as on a CUDA GPU: divide by each element.

PyTorch's C++ takes virtual tensors for meta tensors, which have no values to look at. For these it
multiplies the other elements instead. Where a product overflows, that gives other numbers, and the
host does not wait for the count of zeros.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.virtual.dispatch import read_back
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements of ``prod`` and ``cumprod``, as functions and as methods.

    Parameters
    ----------
    machine
        The virtual machine, which is not used: the formula is the same on each GPU.
    """
    del machine
    return [
        (
            owner,
            {"prod": _dividing(owner.prod, Prod), "cumprod": _dividing(owner.cumprod, Cumprod)},
        )
        for owner in (torch, torch.Tensor)
    ]


def _dividing(
    plain: Callable[..., torch.Tensor], function: type[torch.autograd.Function]
) -> Callable[..., torch.Tensor]:
    @wraps(plain)
    def product(*args: Any, **kwargs: Any) -> torch.Tensor:
        source = args[0] if args else None
        # Inside torch.func tensors are wrapped, and only PyTorch's operators can unwrap them.
        is_recorded = isinstance(source, VirtualTensor) and source.requires_grad
        if not (is_recorded and torch.is_grad_enabled() and is_owner()) or "out" in kwargs:
            return plain(*args, **kwargs)
        dim, keepdim = (
            args[place] if len(args) > place else kwargs.get(name)
            for place, name in ((1, "dim"), (2, "keepdim"))
        )
        found: torch.Tensor = function.apply(  # type: ignore[no-untyped-call] # torch's is untyped
            source, dim, keepdim, lambda same: plain(same, *args[1:], **kwargs)
        )
        return found

    return product


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


class Cumprod(torch.autograd.Function):
    """A cumulative product in autograd's graph, where it has the name of PyTorch's own."""

    @staticmethod
    def forward(
        ctx: Any,
        source: torch.Tensor,
        dim: int,
        _keepdim: None,
        plain: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """Return the cumulative product."""
        found = plain(source)
        ctx.save_for_backward(source, found)
        ctx.dim, ctx.plain = dim, plain
        return found

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of the source."""
        (grad,), (source, found) = grads, ctx.saved_tensors
        # As cumprod_backward in PyTorch's ReduceOps.cpp.
        if source.numel() <= 1 or source.size(ctx.dim) == 1:
            return grad.clone(), None, None, None
        weighted = found.conj() * grad
        if _has_zero(source):
            return _multiplied(grad, source, ctx.plain), None, None, None
        summed = weighted.flip(ctx.dim).cumsum(ctx.dim).flip(ctx.dim)
        return summed / source.to(grad.dtype).conj(), None, None, None


def _multiplied(
    grad: torch.Tensor, source: torch.Tensor, plain: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return the gradient by PyTorch's own formula for tensors without values."""
    is_recorded = torch.is_grad_enabled()
    with torch.enable_grad():
        same = source if is_recorded else source.detach().requires_grad_()
        return torch.autograd.grad(plain(same), same, grad, create_graph=is_recorded)[0]


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
    found = (source.detach() == 0).any()
    if isinstance(found, VirtualTensor) and not found.has_values:
        read_back(found.storage_block.gpu)  # where the program would wait
        return False
    return bool(found)


def _without_division(grad: torch.Tensor, source: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Return the gradient as products of the elements before and after each one."""
    if dim is None:
        return _without_division(grad, source.reshape(-1), 0).view_as(source)
    n = source.size(dim)
    one = torch.ones_like(source.narrow(dim, 0, 1))
    before = torch.cat([one, source.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = torch.cat([one, source.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return grad * (before * after).conj()
