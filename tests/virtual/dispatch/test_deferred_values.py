"""Values that appear when a kernel ends: what is said of those that cannot be computed."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpulab
from gpulab.virtual import ValueLimits


def test_an_error_that_comes_late_names_the_operator_it_is_of() -> None:
    """The line that waits is told which launch before it was at fault, and later work goes on."""
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
def test_norms_of_halves_are_trained(
    dtype: torch.dtype, make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    """Gradients of half precision are those of float32, rounded; a GPU mixes the two inside."""
    x, away = torch.randn(*shape), torch.randn(*shape)
    exact = x.to(dtype).float().requires_grad_()
    (make()(exact) * away.to(dtype).float()).sum().backward()
    with gpulab.virtual_gpu("H200", first_use=False):
        halves = x.to("cuda", dtype).requires_grad_()
        (make().to("cuda", dtype)(halves) * away.to("cuda", dtype)).sum().backward()
        assert halves.grad is not None
        found = halves.grad.float().cpu()
    assert found.numpy() == pytest.approx(exact.grad.numpy(), abs=0.06)


def test_host_memory_stays_as_it_is_where_no_value_is_carried() -> None:
    """Filling what nobody looks at would take longer than all the rest of a sweep."""
    with gpulab.virtual_gpu("H200") as virtual:
        virtual.machine.limits = ValueLimits(0, 0.0, 0)
        target = torch.ones(8)
        target.copy_(torch.zeros(8, device="cuda"))
        torch.cuda.synchronize()
    assert target.tolist() == [1.0] * 8
