"""What going back costs the host, and that its results stay PyTorch's."""

import torch

import gpulab
from gpulab.virtual.patches._autograd_cost import n_nodes


def test_a_chain_of_ten_additions_takes_33_us_and_6_5_us_for_each() -> None:
    """Additions launch nothing on the way back, so the host's own time is all there is."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        y = x = torch.zeros(4, device="cuda", requires_grad=True)
        for _ in range(10):
            y = y + 1.0
        gradient = torch.ones_like(y)
        before_ns = gpu.machine.host.now_ns
        (found,) = torch.autograd.grad(y, x, gradient)
        assert gpu.machine.host.now_ns - before_ns == 33_000 + 10 * 6_500
        assert found.tolist() == [1.0] * 4


def test_a_node_with_two_followers_counts_once() -> None:
    """A square has one node, and the square of a square two, whichever way one comes."""
    x = torch.ones(2, requires_grad=True)
    y = x * x
    assert n_nodes([y * y, torch.ones(1)]) == 2
    for _ in range(60):  # 2**60 ways lead back
        y = y * y
    assert n_nodes([y]) == 61


def test_tensors_of_the_host_cost_nothing() -> None:
    """Their gradients are the host's own work, which is charged by operator."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        x = torch.ones(2, requires_grad=True)
        y = x + 1.0
        before_ns = gpu.machine.host.now_ns
        torch.autograd.grad(y, x, torch.zeros(2))
        assert gpu.machine.host.now_ns - before_ns < 33_000
