"""A backward pass takes host time by its nodes and leaves, and its results are PyTorch's."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import gpulab
from gpulab.virtual.patches._autograd_streams import nodes_behind
from gpulab.virtual.simulator import Host, fitted_costs

COSTS = fitted_costs()


@pytest.fixture
def host() -> Iterator[Host]:
    """Enter a virtual H200 and give its host."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        yield gpu.machine.host


def test_a_backward_pass_costs_a_start_its_nodes_and_its_leaves(host: Host) -> None:
    """The backward pass of ten additions costs one start, ten nodes and one leaf."""
    # The backward of an addition launches nothing, so no launch adds to the host's time.
    y = x = torch.zeros(4, device="cuda", requires_grad=True)
    for _ in range(10):
        y = y + 1.0
    gradient = torch.ones_like(y)
    before_ns = host.now_ns
    (found,) = torch.autograd.grad(y, x, gradient)
    wanted_ns = COSTS["backward"] + 10 * COSTS["backward node"] + COSTS["backward leaf"]
    assert host.now_ns - before_ns == wanted_ns
    assert found.tolist() == [1.0] * 4


def others(x: torch.Tensor) -> None:
    """Launch more different operators than a repetition may have between."""
    with torch.no_grad():
        for work in (x.exp, x.sin, x.cos, x.tanh, x.sigmoid):
            work()


def test_a_pass_that_is_repeated_starts_in_a_tenth_of_the_time(host: Host) -> None:
    """A loop of nothing but one backward pass finds its caches, and a training program not."""
    x = torch.ones(2, device="cuda", requires_grad=True)
    y, gradient = x + 1.0, torch.ones(2, device="cuda")

    def cost_ns() -> int:
        before_ns = host.now_ns
        torch.autograd.grad(y, x, gradient, retain_graph=True)
        return host.now_ns - before_ns

    first_ns, again_ns = cost_ns(), cost_ns()
    others(x)
    assert cost_ns() == pytest.approx(first_ns, rel=0.05)
    assert first_ns - again_ns == pytest.approx(0.9 * COSTS["backward"], rel=0.05)


def test_a_checkpoint_costs_more_than_its_function_twice(host: Host) -> None:
    """A checkpoint takes host time beyond that of two forward passes and the hooks."""
    x = torch.ones(2, device="cuda", requires_grad=True)

    def cost_ns(work: Callable[[], torch.Tensor]) -> int:
        before_ns = host.now_ns
        work().backward(torch.ones_like(x))
        return host.now_ns - before_ns

    cost_ns(x.exp)  # the passes after it are repetitions
    plain_ns = cost_ns(x.exp)
    assert (
        cost_ns(lambda: checkpoint(torch.exp, x, use_reentrant=False))
        > plain_ns + COSTS["checkpoint"]
    )
    assert x.grad is not None
    assert torch.allclose(x.grad, 3 * x.detach().exp())


def test_a_node_that_is_reached_twice_counts_once() -> None:
    """Each autograd node counts once, however many paths lead to it."""
    x = torch.ones(2, requires_grad=True)
    y = x * x
    assert len(nodes_behind([(y * y).grad_fn])) == 3
    for _ in range(60):  # 2**60 paths lead back to x
        y = y * y
    assert len(nodes_behind([y.grad_fn])) == 62


def test_a_failed_backward_pass_has_ended(host: Host) -> None:
    """After an error in a hook no backward pass counts as running."""

    def fail(_gradient: torch.Tensor) -> None:
        raise RuntimeError("no")

    x = torch.ones(2, device="cuda", requires_grad=True)
    x.register_hook(fail)
    with pytest.raises(RuntimeError, match="no"):
        torch.autograd.backward(x.sum())
    assert host.n_backward == 0
