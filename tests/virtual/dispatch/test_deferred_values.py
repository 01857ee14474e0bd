"""Values are written when a kernel ends, and an error in computing them names the operator."""

from collections.abc import Callable

import pytest
import torch
from torch import nn

import gpulab
from gpulab.virtual.dispatch import _deferred_values as deferred
from gpulab.virtual.tensors import Reference


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
        gradient = halves.grad.float().cpu()
    assert gradient.numpy() == pytest.approx(exact.grad.numpy(), abs=0.06)


ELEMENTWISE: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
    *(torch.add, torch.sub, torch.mul, torch.div, torch.pow, torch.atan2, torch.maximum),
    *(torch.lt, torch.eq, torch.logical_and, torch.ldexp),
    lambda a, b: torch.where(a > b, a, 0),
    lambda a, b: torch.lerp(a.float(), b.float(), 0.25),
    lambda a, b: torch.addcmul(a, a, b, value=2),
    lambda a, b: a.t() + b[:, :1],
    lambda a, _b: torch.exp(a[:, ::2]),
    lambda a, _b: nn.functional.gelu(a.float(), approximate="tanh"),
    lambda a, _b: a.t().clone(memory_format=torch.contiguous_format),
    lambda a, _b: a.clamp(min=1) % 3,
    lambda a, _b: torch.ones_like(a, dtype=torch.int16) * a.new_ones(64, dtype=torch.bool),
    lambda a, _b: 2 - a,
]


@pytest.mark.parametrize("types", [("float32", "float32"), ("float16", "float32"), ("int32",) * 2])
def test_a_large_result_is_computed_in_its_place(
    types: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its type, strides and values are those of the CPU."""
    monkeypatch.setattr(deferred, "_COMPUTED_IN_PLACE_BYTES", 1)
    in_place: set[str] = set()
    compute_into = deferred.DeferredValues._compute_into

    def noted(
        self: deferred.DeferredValues, target: Reference, function: object, out: str
    ) -> None:
        in_place.add(self._operator.name)
        compute_into(self, target, function, out)

    monkeypatch.setattr(deferred.DeferredValues, "_compute_into", noted)
    numbers = (torch.arange(4096.0) * n % 13 for n in (3, 5))
    x, y = (
        item.reshape(64, 64).to(getattr(torch, name))
        for item, name in zip(numbers, types, strict=True)
    )
    with gpulab.virtual_gpu("H200", first_use=False):
        a, b = x.cuda(), y.cuda()
        for work in ELEMENTWISE:
            result, expected = work(a, b), work(x, y)
            assert (result.dtype, result.stride()) == (expected.dtype, expected.stride())
            torch.testing.assert_close(result.cpu(), expected, rtol=0, atol=0, equal_nan=True)
    assert in_place >= {"add", "mul", "pow", "lt", "where", "lerp", "exp", "gelu", "clone", "rsub"}
