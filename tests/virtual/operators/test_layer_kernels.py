"""Layers launch PyTorch's or cuDNN's kernels, by types and layouts, and these take their time."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import gpulab
from benchmarks.common.device_records import duration_us, profiled
from gpulab.virtual import KernelWork, Traffic, duration_ns


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (torch.float16, ["copy", "inverse deviations", "normalize"]),
        (torch.float32, ["native_batch_norm"]),
    ],
)
def test_cudnn_normalizes_halves_by_weights_of_float32(
    weights: torch.dtype, expected: list[str]
) -> None:
    """With weights of half precision PyTorch's own kernels run, and one casts the mean."""

    def normalize() -> torch.Tensor:
        x = torch.ones(2, 8, 4, 4, device="cuda", dtype=torch.float16)
        mean, variance, scale, shift = torch.ones(4, 8, device="cuda", dtype=weights)
        return functional.batch_norm(x, mean, variance, scale, shift)

    assert _names(normalize)[-len(expected) :] == expected


@pytest.mark.parametrize(
    ("n_channels", "dtype", "order", "is_by_cudnn"),
    [
        (64, torch.float32, torch.contiguous_format, False),
        (64, torch.float32, torch.channels_last, True),
        (64, torch.bfloat16, torch.contiguous_format, False),
        (64, torch.float16, torch.contiguous_format, True),
        (16, torch.float16, torch.contiguous_format, False),
    ],
)
def test_pytorchs_own_depthwise_kernel_adds_the_bias(
    n_channels: int, dtype: torch.dtype, order: torch.memory_format, *, is_by_cudnn: bool
) -> None:
    """That of cuDNN, for channels-last images and most of float16, does not."""

    def convolve() -> torch.Tensor:
        x = torch.ones(2, n_channels, 8, 8, device="cuda", dtype=dtype).to(memory_format=order)
        weight = torch.ones(n_channels, 1, 3, 3, device="cuda", dtype=dtype)
        bias = torch.ones(n_channels, device="cuda", dtype=dtype)
        return functional.conv2d(x, weight, bias, groups=n_channels)

    assert ("add bias" in _names(convolve)) == is_by_cudnn


def test_a_result_that_is_an_input_is_read_too() -> None:
    """``out=`` the first factor takes as long as the product in place."""
    with gpulab.virtual_gpu("H200", first_use=False, max_value_elements=0):
        x, y = torch.ones(2, 1 << 26, device="cuda")
        calls = (lambda: torch.mul(x, y, out=x), lambda: x.mul_(y))
        into, in_place = (duration_us(profiled(call)[-1]) for call in calls)
    assert into == pytest.approx(in_place, rel=0.05)


def _names(call: Callable[[], object]) -> list[str]:
    with gpulab.virtual_gpu("H100", first_use=False, max_value_elements=0):
        return [record.name for record in profiled(call)]


def test_each_kernel_waits_longer_for_slower_memory() -> None:
    """By the ratio of the clocks, for GPUs with the same kind of memory."""
    work = KernelWork("elementwise")
    fitted, other = (
        duration_ns(work, Traffic(4, 0), gpulab.gpus.gpu(n)) for n in ("H200", "H100")
    )
    assert other - fitted == round(850 * (3201 / 2619 - 1))
