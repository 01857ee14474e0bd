"""A backward pass runs on the streams of its forward pass, in an order without hazards."""

import pytest
import torch

import gpulab
from gpulab.virtual import VirtualGpu

pytestmark = pytest.mark.usefixtures("gpu")


SLEEP_CYCLES = 20_000_000  # 10 ms


class Slow(torch.autograd.Function):
    """A copy whose backward pass lets the GPU sleep before it copies the gradient."""

    @staticmethod
    def forward(_context: object, x: torch.Tensor) -> torch.Tensor:
        """Return a copy."""
        return x.clone()

    @staticmethod
    def backward(_context: object, *gradients: torch.Tensor) -> torch.Tensor:
        """Let the GPU sleep, then return a copy of the gradient."""
        torch.cuda._sleep(SLEEP_CYCLES)
        return gradients[0].clone()


def forward_on(stream: torch.cuda.Stream, x: torch.Tensor) -> torch.Tensor:
    """Return ``3 x``, computed on a side stream that is ordered with the current one."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y: torch.Tensor = Slow.apply(x * 3)
    torch.cuda.current_stream().wait_stream(stream)
    return y


def test_branches_on_two_streams_run_backward_in_parallel(gpu: VirtualGpu) -> None:
    """Two branches on two streams run their backward passes at the same time."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    y = forward_on(torch.cuda.Stream(), x) + forward_on(torch.cuda.Stream(), x)
    torch.cuda.synchronize()
    gpu.machine.gpu.device.forget_records()
    y.sum().backward()
    torch.cuda.synchronize()
    records = gpu.machine.gpu.device.records()
    first, second = (task for task in records if task.name == "sleep")
    assert first.stream != second.stream
    assert min(first.end_ns, second.end_ns) - max(first.start_ns, second.start_ns) > 9_000_000
    assert x.grad is not None
    assert x.grad.tolist() == [6.0] * 4


def test_an_ordered_forward_has_no_hazard_in_backward() -> None:
    """A program with an ordered forward pass has no hazard in its backward pass or its hooks."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    with gpulab.hazards() as hazards:
        y, z = (forward_on(torch.cuda.Stream(), x) for _ in range(2))
        for part in (y, z):
            part.register_hook(lambda gradient: gradient * 2)
        (y * z).sum().backward()
        x.grad.add_(1)  # type: ignore[union-attr] # set by backward
    assert list(hazards) == []
