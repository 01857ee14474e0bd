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
    """Return the replacements of ``prod`` and ``cumprod``, as functions and as methods."""
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
            args[position] if len(args) > position else kwargs.get(name)
            for position, name in ((1, "dim"), (2, "keepdim"))
        )
        result: torch.Tensor = function.apply(  # type: ignore[no-untyped-call] # torch's is untyped
            source, dim, keepdim, lambda same: plain(same, *args[1:], **kwargs)
        )
        return result

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
        result = plain(source)
        ctx.save_for_backward(source, result)
        ctx.dim, ctx.keepdim = dim, keepdim
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of the source."""
        (grad,), (source, result) = grads, ctx.saved_tensors
        if ctx.dim is not None and not ctx.keepdim and source.dim():
            grad, result = grad.unsqueeze(ctx.dim), result.unsqueeze(ctx.dim)
        return _gradient(grad, source.to(grad.dtype), result, ctx.dim), None, None, None


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
        result = plain(source)
        ctx.save_for_backward(source, result)
        ctx.dim, ctx.plain = dim, plain
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
        """Return the gradient of the source."""
        (grad,), (source, result) = grads, ctx.saved_tensors
        # As cumprod_backward in PyTorch's ReduceOps.cpp.
        if source.numel() <= 1 or source.size(ctx.dim) == 1:
            return grad.clone(), None, None, None
        if _has_zero(source):
            make = _multiplied if torch.is_grad_enabled() else _around_zeros
            return make(grad, source, result, ctx.dim, ctx.plain), None, None, None
        summed = _sum_of_rest(result.conj() * grad, ctx.dim)
        return summed / source.to(grad.dtype).conj(), None, None, None


def _sum_of_rest(source: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the sum of each element and those after it."""
    return source.flip(dim).cumsum(dim).flip(dim)


def _around_zeros(
    grad: torch.Tensor,
    source: torch.Tensor,
    result: torch.Tensor,
    dim: int,
    _plain: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return the gradient of a cumulative product: in each row, 0 after the first zero."""
    factors = source.to(grad.dtype).conj()
    n_zeros = (source == 0).cumsum(dim)
    is_before = n_zeros == 0
    before = _sum_of_rest((result.conj() * grad).masked_fill(~is_before, 0), dim) / factors
    # At the first zero, the product of those before it times the products up to the second one.
    is_first = (source == 0) & (n_zeros == 1)
    is_between = (n_zeros == 1) & ~is_first
    product_before = factors.masked_fill(~is_before, 1).prod(dim, keepdim=True)
    # A product that is infinite after the second zero gives no number, as in PyTorch.
    after = factors.masked_fill(~is_between, 1).cumprod(dim) * grad
    at_first = product_before * (after * (n_zeros == 1)).sum(dim, keepdim=True)
    return torch.where(is_before, before, torch.where(is_first, at_first, 0))


def _multiplied(
    grad: torch.Tensor,
    source: torch.Tensor,
    _result: torch.Tensor,
    _dim: int,
    plain: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return the gradient, of which there is one, by PyTorch's formula for no values."""
    return torch.autograd.grad(plain(source), source, grad, create_graph=True)[0]


def _gradient(
    grad: torch.Tensor, source: torch.Tensor, product: torch.Tensor, dim: int | None
) -> torch.Tensor:
    # As prod_backward in PyTorch's FunctionsManual.cpp.
    if source.dim() == 0:
        return grad.clone()
    if _has_zero(source):
        return _without_division(grad, source, dim)
    return grad * (product / source).conj()


def _has_zero(source: torch.Tensor) -> bool:
    has_zero = (source.detach() == 0).any()
    if isinstance(has_zero, VirtualTensor) and not has_zero.has_values:
        read_back(has_zero.storage_block.gpu)  # where the program would wait
        return False
    return bool(has_zero)


def _without_division(grad: torch.Tensor, source: torch.Tensor, dim: int | None) -> torch.Tensor:
    """Return the gradient as products of the elements before and after each one."""
    if dim is None:
        return _without_division(grad, source.reshape(-1), 0).view_as(source)
    n = source.size(dim)
    ones = torch.ones_like(source.narrow(dim, 0, 1))
    before = torch.cat([ones, source.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = torch.cat([ones, source.narrow(dim, 1, n - 1).flip(dim)], dim).cumprod(dim).flip(dim)
    return grad * (before * after).conj()
