"""Run ``scaled_dot_product_attention`` as one kernel, as CUDA does.

PyTorch chooses a fused kernel only for CUDA tensors. Here the CPU's flash attention operator takes
its place: it has the same results and gradients, and the cost model treats it like the kernel that
CUDA would choose for the type.
"""

from typing import Any

import torch
from torch.nn import functional

from gpulab.core.torch_private import (
    C_nn,
    RecordedRange,
    flash_attention_for_cpu,
    flash_attention_for_cpu_backward,
    nested_from_mask_left_aligned,
)
from gpulab.virtual._whole_layers import WholeLayers
from gpulab.virtual.dispatch import read_back
from gpulab.virtual.operators import lower, operator_of
from gpulab.virtual.patches._dropped_attention import DroppedAttention
from gpulab.virtual.simulator import Machine, is_owner
from gpulab.virtual.simulator.costs import KernelWork
from gpulab.virtual.tensors import VirtualTensor, layout

# The inputs for which CUDA has a fused kernel: batch, heads, sequence and depth, up to this depth.
_N_DIMS = 4
_HALVES = {torch.float16, torch.bfloat16}
_TYPES = _HALVES | {torch.float32}
_LONGEST_DEPTH = 256


def replacements(machine: Machine, layers: WholeLayers) -> list[tuple[Any, dict[str, Any]]]:
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
        if isinstance(query, VirtualTensor) and torch.is_autocast_enabled("cuda"):
            query, key, value = _cast(query), _cast(key), _cast(value)
            attn_mask = attn_mask if attn_mask is None else _cast(attn_mask)
        is_grouped = (
            enable_gqa and query.dim() == key.dim() == _N_DIMS and (query.size(1) != key.size(1))
        )
        # CUDA's kernel for halves has dropout and grouped queries, that for float32 has dropout.
        # All have the gradient of a mask. The CPU's operator has nothing of it.
        is_learnt = attn_mask is not None and attn_mask.requires_grad
        is_whole = dropout_p > 0 or is_grouped or is_learnt
        is_fused = _is_eligible(query, key, value, attn_mask, is_grouped=is_grouped)
        if not is_fused or (is_whole and not is_owner()):
            plain: torch.Tensor = original(
                *(query, key, value, attn_mask, dropout_p, is_causal),
                scale=scale,
                enable_gqa=enable_gqa,
            )
            return plain

        def attend() -> torch.Tensor:
            if dropout_p or is_learnt:
                factor = query.size(-1) ** -0.5 if scale is None else scale
                function: Any = DroppedAttention
                dropped: torch.Tensor = function.apply(
                    query, *repeated(), attn_mask, dropout_p, is_causal, factor
                )
                return dropped
            mask = _as_numbers(attn_mask, query)
            out: torch.Tensor = flash_attention_for_cpu(
                query, *repeated(), 0.0, is_causal, attn_mask=mask, scale=scale
            )[0]
            return out

        def repeated() -> tuple[torch.Tensor, torch.Tensor]:
            return (_repeated(key, query), _repeated(value, query)) if is_grouped else (key, value)

        if is_whole:
            machine.host.charge("recorded operator" if torch.is_grad_enabled() else "operator")
            works = _kernels(query, key, value, is_causal)
            # The profiler gives kernels to the operator in which they are launched.
            with RecordedRange("aten::scaled_dot_product_attention"):
                attended: torch.Tensor = layers.run(attend, *works)
                attended.detach()  # an operator after the launches, at which the range may end
            return attended
        return attend()

    left_aligned = nested_from_mask_left_aligned

    def is_left_aligned(source: torch.Tensor, mask: torch.Tensor) -> bool:
        # With False PyTorch's TransformerEncoder makes no nested tensors, which have no model
        # here.
        if not isinstance(source, VirtualTensor):
            return bool(left_aligned(source, mask))
        read_back(source.storage_block.gpu)  # as PyTorch, which looks at the mask
        return False

    names = {"scaled_dot_product_attention": scaled_dot_product_attention}
    nested = {"_nested_tensor_from_mask_left_aligned": is_left_aligned}
    # torch.nn.functional has imported the function by name, so it is replaced in both modules.
    return [(functional, names), (C_nn, names), (torch, nested)]


def _kernels(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool,  # noqa: FBT001 # as torch's
) -> tuple[list[KernelWork], list[KernelWork]]:
    """Return the kernels of attention forward and backward."""
    q, k, v = (layout(tuple(x.shape), x.stride(), x.dtype) for x in (query, key, value))
    sums = layout(q.sizes[:-1], q.strides[:-1], torch.float32)
    args = (query, key, value, 0.0, is_causal)
    forward = lower(
        operator_of(flash_attention_for_cpu.default), args, {}, query, ([q, k, v], [q, sums])
    )
    back_args = (query, query, key, value, query, query, 0.0, is_causal)
    backward = lower(
        operator_of(flash_attention_for_cpu_backward),
        back_args,
        {},
        query,
        ([q, q, k, v, q, sums], [q, k, v]),
    )
    return [*forward.before, forward], [*backward.before, backward]


def _cast(item: torch.Tensor) -> torch.Tensor:
    """Return an argument in autocast's type; attention is in CUDA's list of operators to cast."""
    is_cast = item.is_floating_point() and item.dtype is not torch.float64
    return item.to(torch.get_autocast_dtype("cuda")) if is_cast else item


def _repeated(item: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return keys or values repeated, so that every head of the query has its own."""
    return item.repeat_interleave(query.size(1) // item.size(1), dim=1)


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
    same = {(item.dtype, item.size(0), item.size(3)) for item in tensors}
    types = _HALVES if is_grouped else _TYPES
    fits = query.dtype in types and query.size(3) <= _LONGEST_DEPTH
    n_heads = key.size(1)
    has_heads = n_heads == value.size(1) > 0 == query.size(1) % n_heads and (
        is_grouped or query.size(1) == n_heads
    )
    is_empty = any(item.numel() == 0 for item in tensors)
    return fits and has_heads and not is_empty and len(same) == 1 and key.size(2) == value.size(2)


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
