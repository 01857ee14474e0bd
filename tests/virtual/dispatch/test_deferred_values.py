"""Values are written when a kernel ends, and an error in computing them names the operator."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpulab
from gpulab.virtual import ValueLimits


def test_a_late_error_names_the_operator_that_caused_it() -> None:
    """An error raised at a later wait names the operator that caused it, and later work runs."""
    with gpulab.virtual_gpu("H200"):
        x = torch.ones(4, device="cuda")
        x[torch.tensor([7], device="cuda")]
        y = x + 1
        with pytest.raises(IndexError, match="index 7 is out of bounds") as raised:
            torch.cuda.synchronize()
        told = "The error comes from aten.index.Tensor, which was launched earlier."
        assert raised.value.__notes__ == [told]
        assert y.tolist() == [2.0] * 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.LayerNorm(16), (8, 16)),
        (lambda: nn.GroupNorm(4, 16), (8, 16, 4, 4)),
        (lambda: nn.BatchNorm2d(16), (8, 16, 4, 4)),
        (lambda: nn.InstanceNorm2d(16, affine=True), (8, 16, 4, 4)),
    ],
)
def test_norm_layers_train_in_half_precision(
    dtype: torch.dtype, make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    """A norm's gradients in half precision agree with those of float32 to within rounding."""
    x, away = torch.randn(*shape), torch.randn(*shape)
    exact = x.to(dtype).float().requires_grad_()
    (make()(exact) * away.to(dtype).float()).sum().backward()
    with gpulab.virtual_gpu("H200", first_use=False):
        halves = x.to("cuda", dtype).requires_grad_()
        (make().to("cuda", dtype)(halves) * away.to("cuda", dtype)).sum().backward()
        assert halves.grad is not None
        found = halves.grad.float().cpu()
    assert found.numpy() == pytest.approx(exact.grad.numpy(), abs=0.06)


def test_a_copy_without_values_leaves_host_memory_unchanged() -> None:
    """A copy from a tensor without values to the host does not write to the host's memory."""
    with gpulab.virtual_gpu("H200") as virtual:
        virtual.machine.limits = ValueLimits(0, 0.0, 0)
        # A sweep copies large tensors whose values nobody reads; writing them would take
        # longer than the rest of the sweep.
        target = torch.ones(8)
        target.copy_(torch.zeros(8, device="cuda"))
        torch.cuda.synchronize()
    assert target.tolist() == [1.0] * 8
