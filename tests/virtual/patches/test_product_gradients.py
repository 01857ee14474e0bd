"""The gradient of a product: PyTorch's on the CPU, outside of the virtual GPU."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gpulab

CALLS: list[tuple[str, tuple[int, ...], tuple[Any, ...], dict[str, Any]]] = [
    ("prod", (3, 4), (), {}),
    ("prod", (3, 4), (0, True), {}),
    ("prod", (3, 4), (), {"dim": -1}),
    ("prod", (), (0,), {}),
    ("prod", (0, 3), (1,), {}),
    ("prod", (4,), (), {"dtype": torch.float64}),
    ("cumprod", (3, 4), (1,), {}),
    ("cumprod", (3, 1), (), {"dim": 1}),
]


@pytest.mark.parametrize(
    ("dtype", "n_zeros"),
    [(torch.float32, 0), (torch.float16, 1), (torch.float32, 2), (torch.complex64, 1)],
)
def test_gradients_are_those_of_the_cpu(dtype: torch.dtype, n_zeros: int) -> None:
    """Each form of the call, without and with zeros, and the gradient of the gradient."""
    torch.manual_seed(0)
    for name, shape, args, kwargs in CALLS:
        if dtype.is_complex and kwargs.get("dtype") is torch.float64:
            continue  # PyTorch warns of the lost imaginary part
        x = torch.randn(shape, dtype=dtype)
        x.view(-1)[:n_zeros] = 0
        weights = torch.randn_like(x)

        def twice(
            x: torch.Tensor,
            weights: torch.Tensor,
            product: Callable[..., torch.Tensor],
            args: tuple[Any, ...] = args,
            kwargs: dict[str, Any] = kwargs,
        ) -> list[torch.Tensor]:
            x = x.requires_grad_()
            result = product(x, *args, **kwargs)
            ones = torch.ones_like(result)
            (alone,) = torch.autograd.grad(result, x, ones, retain_graph=True)
            (first,) = torch.autograd.grad(result, x, ones, create_graph=True)
            second = torch.autograd.grad(first + 0 * x, x, weights)
            return [result, alone, first, *second]

        expected = twice(x.clone(), weights, getattr(torch, name))
        with gpulab.virtual_gpu("H200"):
            on_device = twice(x.cuda(), weights.cuda(), getattr(torch.Tensor, name))
            for tensor, other in zip(on_device, expected, strict=True):
                torch.testing.assert_close(
                    tensor.cpu(), other, equal_nan=True, rtol=0.02, atol=0.02
                )


def test_backward_waits_for_the_count_of_zeros() -> None:
    """The host waits for the work before, with values and without."""
    for n_values in (1 << 26, 0):
        with gpulab.virtual_gpu("H200", max_value_elements=n_values) as gpu:
            x = torch.ones(8, 8, device="cuda", requires_grad=True)
            total = x.prod(1).sum()
            torch.cuda._sleep(20_000_000)  # 10 ms at 1.98 GHz
            before_s = gpu.now_s
            total.backward()
            assert gpu.now_s - before_s > 0.01


def test_backward_of_one_number_waits_for_nothing() -> None:
    """The gradient of a tensor without dimensions is copied, and no zero is searched."""
    with gpulab.virtual_gpu("H200") as gpu:
        for product in (torch.Tensor.prod, lambda source: source.cumprod(0)):
            source = torch.tensor(float("inf"), device="cuda", requires_grad=True)
            result = product(source)
            torch.cuda._sleep(20_000_000)  # 10 ms at 1.98 GHz
            before_s = gpu.now_s
            result.backward()
            assert gpu.now_s - before_s < 0.01
            assert source.grad is not None
            assert source.grad.item() == 1.0


@pytest.mark.parametrize("zero", [2.0, 0.0])
def test_hooks_of_the_source_run_once(zero: float) -> None:
    """A hook sees the gradient once, and ``retain_grad`` keeps it once, also beside a zero."""
    with gpulab.virtual_gpu("H200"):
        source = torch.tensor([1.0, zero, 3.0], device="cuda", requires_grad=True) * 2
        seen: list[list[float]] = []
        source.register_hook(lambda gradient: seen.append(gradient.tolist()))
        source.retain_grad()
        source.prod().backward()
        assert source.grad is not None
        assert seen == [source.grad.tolist()] == [[12 * zero, 12.0, 4 * zero]]


def test_what_no_gradient_needs_is_pytorchs_own() -> None:
    """Inside ``torch.func``, with ``out=`` and without gradients nothing is replaced."""
    with gpulab.virtual_gpu("H200"):
        x = torch.tensor([2.0, 3.0]).cuda()
        assert torch.func.grad(lambda t: t.prod())(x).tolist() == [3.0, 2.0]
        out = torch.empty((), device="cuda")
        torch.prod(x, 0, out=out)
        assert (out.item(), x.prod().grad_fn) == (6.0, None)
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.requires_grad_().prod(7)
