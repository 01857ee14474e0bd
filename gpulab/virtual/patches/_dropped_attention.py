"""Compute attention with dropout or a learnt bias as CUDA's fused kernels do, without its weights.

PyTorch's formula would keep several matrices of all queries by all keys for the gradient. This one
keeps which weights were dropped, a byte each, and computes the weights again.
"""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from gpulab.core.torch_private import safe_softmax


class DroppedAttention(torch.autograd.Function):
    """Attention with dropout in autograd's graph."""

    @staticmethod
    def forward(  # noqa: PLR0913, PLR0917 # those of attention
        ctx: Any,  # autograd's
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None,
        dropout_p: float,
        is_causal: bool,  # noqa: FBT001 # torch's signature
        scale: float,
    ) -> torch.Tensor:
        """Return the result, and keep which weights were dropped."""
        dropout_mask = None
        if dropout_p:
            shape = (*query.shape[:-1], key.shape[-2])
            dropout_mask = torch.empty(shape, dtype=torch.bool, device=query.device)
            dropout_mask.bernoulli_(1 - dropout_p)
        ctx.save_for_backward(query, key, value, mask, dropout_mask)
        ctx.options = (dropout_p, is_causal, scale)
        with torch.autocast("cuda", enabled=False):
            weights = _weights(query, key, mask, is_causal=is_causal, scale=scale)
            out = _dropped(weights, dropout_mask, dropout_p).to(value.dtype) @ value
        # CUDA's kernels write the heads of a query side by side.
        return out.transpose(1, 2).contiguous().transpose(1, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> Any:  # autograd's
        """Return the gradients of queries, keys and values."""
        query, key, value, mask, dropout_mask = ctx.saved_tensors
        dropout_p, is_causal, scale = ctx.options
        with torch.autocast("cuda", enabled=False):
            weights = _weights(query, key, mask, is_causal=is_causal, scale=scale)
            of_value = _dropped(weights, dropout_mask, dropout_p).to(grad.dtype).mT @ grad
            of_weights = _dropped(grad @ value.mT, dropout_mask, dropout_p)
            of_sums = (of_weights * weights).sum(-1, keepdim=True)
            of_masked = weights * (of_weights - of_sums)
            of_scores = (of_masked * scale).to(grad.dtype)
            of_query, of_key = of_scores @ key, of_scores.mT @ query
            of_mask = None
            if ctx.needs_input_grad[3]:
                of_mask = of_masked.sum_to_size(mask.shape).to(mask.dtype)
        return of_query, of_key, of_value, of_mask, None, None, None


def _dropped(
    items: torch.Tensor, dropout_mask: torch.Tensor | None, dropout_p: float
) -> torch.Tensor:
    return items if dropout_mask is None else items * dropout_mask / (1 - dropout_p)


def _weights(
    query: torch.Tensor,
    key: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    is_causal: bool,
    scale: float,
) -> torch.Tensor:
    scores = (query @ key.mT).float() * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None and mask.dtype is torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif mask is not None:
        scores = scores + mask
    weights: torch.Tensor = safe_softmax(scores, -1)
    return weights
