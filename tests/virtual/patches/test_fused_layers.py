"""Layers and optimizers that are one kernel on CUDA are one kernel on the virtual GPU."""

import pytest
import torch
from torch.nn import functional
from torch.utils import _foreach_utils as foreach_utils

import gpulab
from gpulab.virtual import VirtualGpu
from tests.support.launched import kernels


def test_a_root_mean_square_norm_is_one_kernel_without_gradients(gpu: VirtualGpu) -> None:
    """An RMS norm is one kernel; with gradients it is several operators with the same values."""
    host, weight = torch.arange(1.0, 9.0).view(2, 4), torch.full((4,), 2.0)
    x = host.cuda()
    scale = weight.cuda()
    kernels(gpu)
    found = functional.rms_norm(x, (4,), scale)
    assert kernels(gpu) == ["_fused_rms_norm"]
    expected = functional.rms_norm(host, (4,), weight)
    assert torch.allclose(found.cpu(), expected)
    trained = functional.rms_norm(x.requires_grad_(), (4,), scale)
    assert torch.allclose(trained.detach().cpu(), expected)
    assert trained.requires_grad


def test_tensors_are_grouped_by_their_own_gpu_and_type() -> None:
    """Tensors are grouped by GPU and type, with their positions if these are asked for."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False):
        a, b = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
        c = a.double()
        group = foreach_utils._group_tensors_by_device_and_dtype
        groups = group([[a, b, c, a], [b, a, c, b]], with_indices=True)
        assert {key: places for key, (_, places) in groups.items()} == {
            (a.device, torch.float32): [0, 3],
            (b.device, torch.float32): [1],
            (a.device, torch.float64): [2],
        }
        lists = groups[a.device, torch.float32][0]
        assert [item is a for item in lists[0]] == [True, True]
        assert [item is b for item in lists[1]] == [True, True]


@pytest.mark.parametrize("name", ["_fused_adam_", "_fused_adamw_", "_fused_sgd_"])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("n", [3, 64])
def test_a_fused_step_leaves_unscaled_gradients(name: str, n: int, *, maximize: bool) -> None:
    """A fused step stores gradients divided by the scale, with their sign, as CUDA does."""
    with gpulab.virtual_gpu("H200", first_use=False):
        weight, gradient, first, second = (
            torch.full((n,), value, device="cuda") for value in (1.0, 8.0, 0.0, 0.0)
        )
        options = {"lr": 0.5, "weight_decay": 0.0, "maximize": maximize}
        scaling = {
            "grad_scale": torch.tensor(4.0, device="cuda"),
            "found_inf": torch.tensor(0.0, device="cuda"),
        }
        if name == "_fused_sgd_":
            more = {"momentum": 0.0, "dampening": 0.0, "nesterov": False, "is_first_step": True}
            torch._fused_sgd_([weight], [gradient], [], **options, **scaling, **more)
        else:
            more = {"beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "amsgrad": False}
            steps = [torch.ones((), device="cuda")]
            state = ([first], [second], [], steps)
            step = getattr(torch, name)
            step([weight], [gradient], *state, **options, **scaling, **more)
        assert gradient.tolist() == [2.0] * n
        assert (weight[0].item() > 1.0) == maximize
