"""Compute attention with dropout as CUDA's fused kernels do: no weights are kept for the gradient.

PyTorch's formula would keep several matrices of all queries by all keys. This one keeps which
weights were dropped, a byte each, and computes the weights again.
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
        shape = (*query.shape[:-1], key.shape[-2])
        dropout_mask = torch.empty(shape, dtype=torch.bool, device=query.device).bernoulli_(
            1 - dropout_p
        )
        ctx.save_for_backward(query, key, value, mask, dropout_mask)
        ctx.options = (dropout_p, is_causal, scale)
        with torch.autocast("cuda", enabled=False):
            weights = _weights(query, key, mask, is_causal=is_causal, scale=scale)
            out = (weights * dropout_mask / (1 - dropout_p)).to(value.dtype) @ value
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
            dropout_mask = dropout_mask / (1 - dropout_p)
            of_value = (weights * dropout_mask).to(grad.dtype).mT @ grad
            of_weights = (grad @ value.mT) * dropout_mask
            of_sums = (of_weights * weights).sum(-1, keepdim=True)
            of_scores = (weights * (of_weights - of_sums) * scale).to(grad.dtype)
            of_query, of_key = of_scores @ key, of_scores.mT @ query
        return of_query, of_key, of_value, None, None, None, None


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
