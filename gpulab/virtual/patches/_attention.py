"""Run ``scaled_dot_product_attention`` as one kernel, as CUDA does.

PyTorch chooses a fused kernel only for CUDA tensors. Here the CPU's flash attention operator takes
its place: it has the same results and gradients, and the cost model treats it like the kernel that
CUDA would choose for the type. That operator has no dropout, no grouped queries and no gradient of
a mask. With one of these, attention is one operator of ours.
"""

from functools import partial
from typing import Any

import torch
from torch.nn import functional

from gpulab.core.torch_private import (
    C_nn,
    RecordedRange,
    flash_attention_for_cpu,
    flash_attention_for_cpu_backward,
)
from gpulab.core.tracebacks import drop_this_frame
from gpulab.virtual.operators import OperatorCall, lower, operator_of
from gpulab.virtual.patches._autocast import cast_for_layer
from gpulab.virtual.patches._library_layers import LibraryLayer
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import VirtualTensor, layout

# The inputs for which CUDA has a fused kernel: batch, heads, sequence and depth, up to this depth.
_N_DIMS = 4
_HALVES = {torch.float16, torch.bfloat16}
_TYPES = _HALVES | {torch.float32}
_LONGEST_DEPTH = 256


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:  # noqa: ARG001 # as every patch
    """Return the replacement of ``scaled_dot_product_attention``."""
    original = C_nn.scaled_dot_product_attention

    def scaled_dot_product_attention(  # noqa: PLR0913, PLR0917 # torch's signature
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,  # noqa: FBT001, FBT002 # torch's signature
        scale: float | None = None,
        enable_gqa: bool = False,  # noqa: FBT001, FBT002 # torch's signature
    ) -> torch.Tensor:
        if isinstance(query, VirtualTensor):
            query, key, value = cast_for_layer((query, key, value))
            if attn_mask is not None:
                (attn_mask,) = cast_for_layer((attn_mask,))
        is_grouped = (
            enable_gqa and query.dim() == key.dim() == _N_DIMS and (query.size(1) != key.size(1))
        )
        is_learnt = attn_mask is not None and attn_mask.requires_grad
        is_fused = _is_eligible(query, key, value, attn_mask, is_grouped=is_grouped)
        is_whole = is_fused and (dropout_p > 0 or is_grouped or is_learnt)
        try:
            if not is_fused or (is_whole and not is_owner()):
                plain: torch.Tensor = original(
                    *(query, key, value, attn_mask, dropout_p, is_causal),
                    scale=scale,
                    enable_gqa=enable_gqa,
                )
                return plain
            if not is_whole:
                mask = _as_numbers(attn_mask, query)
                out: torch.Tensor = flash_attention_for_cpu(
                    query, key, value, 0.0, is_causal, attn_mask=mask, scale=scale
                )[0]
                return out
        except Exception as error:
            drop_this_frame(error)
            raise
        factor = query.size(-1) ** -0.5 if scale is None else scale
        tensors = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
        # The profiler gives kernels to the operator in which they are launched.
        with RecordedRange("aten::scaled_dot_product_attention"):
            (attended,) = _ATTENTION.run(
                (dropout_p, is_causal, factor), tensors, n_results=1, is_random=dropout_p > 0
            )
        return attended

    names = {"scaled_dot_product_attention": scaled_dot_product_attention}
    # torch.nn.functional has imported the function by name, so it is replaced in both modules.
    return [(functional, names), (C_nn, names)]


def _compute(
    dropout_p: float,
    is_causal: bool,  # noqa: FBT001 # the operator passes arguments by position
    scale: float,
    tensors: list[torch.Tensor],
) -> list[torch.Tensor]:
    """Return the result of attention, and what CUDA's kernels keep: the sums of the weights."""
    query, key, value, *masks = tensors
    mask = masks[0] if masks else None
    out = functional.scaled_dot_product_attention(
        *(query, key, value, mask, dropout_p, is_causal), scale=scale, enable_gqa=True
    )
    # CUDA's kernels write the heads of a query side by side.
    out = out.transpose(1, 2).contiguous().transpose(1, 2)
    return [out, query.new_empty(query.shape[:-1], dtype=torch.float32)]


def _kernels(call: OperatorCall, *, is_backward: bool) -> list[KernelWork]:
    """Return the kernels of attention forward or backward."""
    _, is_causal, _, (query, key, value, *_) = call.args[:4]
    q, k, v = (layout(tuple(x.shape), x.stride(), x.dtype) for x in (query, key, value))
    sums = layout(q.sizes[:-1], q.strides[:-1], torch.float32)
    operator, layouts = flash_attention_for_cpu.default, ([q, k, v], [q, sums])
    args: tuple[Any, ...] = (query, key, value, 0.0, is_causal)
    if is_backward:
        operator, layouts = flash_attention_for_cpu_backward, ([q, q, k, v, q, sums], [q, k, v])
        args = (query, query, key, value, query, query, 0.0, is_causal)
    work = lower(operator_of(operator), args, {}, query, layouts)
    return [*work.before, work]


_ATTENTION = LibraryLayer(
    "_attention",
    "float dropout_p, bool is_causal, float scale",
    _compute,
    partial(_kernels, is_backward=False),
    partial(_kernels, is_backward=True),
)


def _is_eligible(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    *,
    is_grouped: bool,
) -> bool:
    """Return whether a fused kernel can run; otherwise PyTorch's formula does."""
    tensors = (query, key, value)
    if not all(isinstance(item, VirtualTensor) and item.dim() == _N_DIMS for item in tensors):
        return False
    if mask is not None and not isinstance(mask, VirtualTensor):
        return False
    kinds = {(item.dtype, item.size(0), item.size(3)) for item in tensors}
    types = _HALVES if is_grouped else _TYPES
    fits = query.dtype in types and query.size(3) <= _LONGEST_DEPTH
    n_heads = key.size(1)
    has_heads = n_heads == value.size(1) > 0 == query.size(1) % n_heads and (
        is_grouped or query.size(1) == n_heads
    )
    is_empty = any(item.numel() == 0 for item in tensors)
    return fits and has_heads and not is_empty and len(kinds) == 1 and key.size(2) == value.size(2)


def _as_numbers(mask: torch.Tensor | None, query: torch.Tensor) -> torch.Tensor | None:
    """Return a mask to add to the scores: 0 for True, minus infinity for False."""
    if mask is None:
        return None
    if mask.dtype is torch.bool:
        # The operator adds its mask to the scores, as CUDA's does, by the same three calls.
        zero, hidden = (
            torch.full((), number, dtype=query.dtype, device=query.device)
            for number in (0.0, float("-inf"))
        )
        mask = torch.where(mask, zero, hidden)
    # It takes two or four dimensions, CUDA's any number.
    return mask[(None,) * (_N_DIMS - mask.dim())]
