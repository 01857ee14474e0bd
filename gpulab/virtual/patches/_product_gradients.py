"""Take the gradients of ``prod`` and ``cumprod`` as on a CUDA GPU: divide by each element.

PyTorch's C++ takes virtual tensors for meta tensors, which have no values to look at. For these it
multiplies the other elements instead, for ``cumprod`` in a loop over them, and the host does not
wait for the search for zeros.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.virtual.dispatch import read_back
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.tensors import VirtualTensor

# From the gradient of a product, its source and the product itself, with ``dim`` and ``keepdim``.
_Division = Callable[..., torch.Tensor]


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements of ``prod`` and ``cumprod``, as functions and as methods."""
    del machine
    return [
        (
            owner,
            {
                "prod": _dividing(owner.prod, _divided_prod),
                "cumprod": _dividing(owner.cumprod, _divided_cumprod),
            },
        )
        for owner in (torch, torch.Tensor)
    ]


def _dividing(
    plain: Callable[..., torch.Tensor], divide: _Division
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

        def divided(*tensors: torch.Tensor) -> torch.Tensor:
            return divide(*tensors, dim, keepdim)

        result: torch.Tensor = Product.apply(  # type: ignore[no-untyped-call] # torch's is untyped
            source, lambda same: plain(same, *args[1:], **kwargs), divided
        )
        return result

    return product


class Product(torch.autograd.Function):
    """A product in autograd's graph; the profiler shows this name."""

    @staticmethod
    def forward(
        ctx: Any,
        source: torch.Tensor,
        plain: Callable[[torch.Tensor], torch.Tensor],
        divided: _Division,
    ) -> torch.Tensor:
        """Return the product."""
        result = plain(source)
        ctx.save_for_backward(source, result)
        ctx.plain, ctx.divided = plain, divided
        return result

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        """Return the gradient of the source."""
        (grad,), (source, result) = grads, ctx.saved_tensors
        if not source.dim():  # nothing is multiplied, and the host waits for nothing
            return grad.clone(), None, None
        if not _has_zero(source):
            return ctx.divided(grad, source.to(grad.dtype), result), None, None
        is_recorded = torch.is_grad_enabled()  # the program asked for create_graph=True
        with torch.enable_grad():
            # Of a view: hooks of the source would run here, and again with this gradient.
            same = source.view_as(source)
            product = ctx.plain(same)
        by_others = torch.autograd.grad(product, same, grad, create_graph=is_recorded)
        return by_others[0], None, None


def _divided_prod(
    grad: torch.Tensor,
    source: torch.Tensor,
    result: torch.Tensor,
    dim: int | None,
    keepdim: bool | None,  # noqa: FBT001 # an argument of PyTorch's
) -> torch.Tensor:
    # As prod_backward in PyTorch's FunctionsManual.cpp.
    if dim is not None and not keepdim and source.dim():
        grad, result = grad.unsqueeze(dim), result.unsqueeze(dim)
    return grad * (result / source).conj()


def _divided_cumprod(
    grad: torch.Tensor, source: torch.Tensor, result: torch.Tensor, dim: int, _keepdim: None
) -> torch.Tensor:
    # As cumprod_backward in PyTorch's ReduceOps.cpp: the sum of each element and those after it.
    summed = (result.conj() * grad).flip(dim).cumsum(dim).flip(dim)
    return summed / source.conj()


def _has_zero(source: torch.Tensor) -> bool:
    has_zero = (source.detach() == 0).any()
    if isinstance(has_zero, VirtualTensor) and not has_zero.has_values:
        read_back(has_zero.storage_block.gpu)  # where the program would wait
        return False
    return bool(has_zero)
