"""Attention on the virtual GPU is one kernel with the host's results and gradients."""

from typing import Any

import pytest
import torch
from torch.nn import functional

import gpulab
from gpulab.core.errors import NotModelledError
from gpulab.virtual import VirtualGpu
from tests.support.launched import kernels


def inputs(*sizes: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Return queries, keys and values on the host."""
    torch.manual_seed(0)
    return [torch.randn(sizes).to(dtype) for _ in range(3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_one_kernel_with_the_results_of_the_host(
    gpu: VirtualGpu, dtype: torch.dtype, *, causal: bool
) -> None:
    """Attention ends with one kernel, and its result is the host's."""
    host = inputs(2, 2, 8, 16, dtype=dtype)
    device = [item.cuda() for item in host]
    kernels(gpu)
    results = functional.scaled_dot_product_attention(*device, is_causal=causal)
    assert kernels(gpu)[-1] == "scaled_dot_product_attention"
    expected = functional.scaled_dot_product_attention(*host, is_causal=causal)
    assert torch.allclose(results.cpu().float(), expected.float(), atol=2e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_groups_of_queries_share_their_keys(gpu: VirtualGpu, dtype: torch.dtype) -> None:
    """``enable_gqa`` gives the host's result; only CUDA's kernel for halves knows it."""
    query, key, value = (item.to(dtype) for item in inputs(1, 4, 8, 16))
    key, value = key[:, :2], value[:, :2]
    device = [item.cuda() for item in (query, key, value)]
    kernels(gpu)
    results = functional.scaled_dot_product_attention(*device, enable_gqa=True)
    assert ("bmm" in kernels(gpu)) == (dtype is torch.float32)
    assert torch.allclose(
        results.float().cpu(),
        functional.scaled_dot_product_attention(
            query.float(), key.float(), value.float(), enable_gqa=True
        ),
        atol=1e-2 if dtype is torch.float16 else 1e-5,
    )


def test_a_learnt_mask_gets_its_gradient(gpu: VirtualGpu) -> None:
    """Attention stays one kernel, and the gradients of queries and mask are the host's."""
    del gpu
    host, mask = inputs(2, 2, 4, 8), torch.randn(1, 2, 4, 4)
    results = []
    for where in ("cuda", "cpu"):
        query, key, value = (item.to(where) for item in host)
        query, learnt = query.requires_grad_(), mask.clone().to(where).requires_grad_()
        out = functional.scaled_dot_product_attention(query, key, value, attn_mask=learnt)
        results.append(torch.autograd.grad((out * out).sum(), (query, learnt)))
    for ours, theirs in zip(*results, strict=True):
        assert torch.allclose(ours.cpu(), theirs, atol=1e-4)


@pytest.mark.slow  # it imports PyTorch's compiler
@pytest.mark.filterwarnings("ignore")  # PyTorch says that it is slow without the compiler
def test_attention_with_a_function_is_refused_by_name(gpu: VirtualGpu) -> None:
    """An operator that takes functions has no model, with and without the race detector."""
    from torch.nn.attention.flex_attention import flex_attention

    del gpu
    query, key, value = (item.cuda() for item in inputs(1, 2, 128, 16))
    with pytest.raises(NotModelledError, match="no model of flex_attention"):
        flex_attention(query, key, value)
    with gpulab.hazards(), pytest.raises(NotModelledError, match="no model of flex_attention"):
        flex_attention(query, key, value)


@pytest.mark.parametrize("form", ["plain", "causal", "mask"])
def test_gradients_of_attention_with_dropout(gpu: VirtualGpu, form: str) -> None:
    """They are those of PyTorch's formula with the same weights dropped."""
    del gpu
    host = [item.requires_grad_() for item in inputs(1, 2, 8, 8)]
    device = [item.detach().cuda().requires_grad_() for item in host]
    mask = torch.tril(torch.ones(8, 8)).bool() if form == "mask" else None
    options: dict[str, Any] = {"is_causal": form == "causal"}
    on_device = None if mask is None else mask.cuda()
    # With these values the result is the weights themselves, so it shows which were dropped.
    values = torch.eye(8).expand(1, 2, 8, 8)
    torch.manual_seed(3)
    weights = functional.scaled_dot_product_attention(
        *device[:2], values.cuda(), on_device, 0.5, **options
    )
    torch.manual_seed(3)
    out = functional.scaled_dot_product_attention(*device, on_device, 0.5, **options)
    slope = torch.randn(out.shape)
    results = torch.autograd.grad(out, device, slope.cuda())
    dropout = (weights.cpu() != 0) * 2.0
    scores = host[0] @ host[1].mT / 8**0.5
    if form != "plain":
        scores = scores.masked_fill(~torch.tril(torch.ones(8, 8)).bool(), float("-inf"))
    expected = (scores.softmax(-1) * dropout) @ host[2]
    assert torch.allclose(out.cpu(), expected, atol=1e-5)
    for ours, theirs in zip(results, torch.autograd.grad(expected, host, slope), strict=True):
        assert torch.allclose(ours.cpu(), theirs, atol=1e-5)
