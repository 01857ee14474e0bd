"""Backward on the streams of forward: which stream waits for which, and what is left."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.virtual import Kind, VirtualGpu

SLEEP_CYCLES = 20_000_000  # 10 ms


@pytest.fixture
def gpu() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 without first-use costs."""
    with gpulab.virtual_gpu("H200", first_use=False) as entered:
        yield entered


class Slow(torch.autograd.Function):
    """Copies; on the way back the GPU sleeps first."""

    @staticmethod
    def forward(_context: object, x: torch.Tensor) -> torch.Tensor:
        """Copy."""
        return x.clone()

    @staticmethod
    def backward(_context: object, *gradients: torch.Tensor) -> torch.Tensor:
        """Sleep and copy."""
        torch.cuda._sleep(SLEEP_CYCLES)
        return gradients[0].clone()


def forward_on(stream: torch.cuda.Stream, x: torch.Tensor) -> torch.Tensor:
    """Return ``3 x``, computed on a side stream and in order with the current one."""
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y: torch.Tensor = Slow.apply(x * 3)
    torch.cuda.current_stream().wait_stream(stream)
    return y


@pytest.mark.usefixtures("gpu")
def test_the_callers_stream_waits_for_the_gradients() -> None:
    """And a side stream for the caller's: both take long, and what is read last is right."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    y = forward_on(torch.cuda.Stream(), x).sum()
    torch.cuda._sleep(3 * SLEEP_CYCLES)
    y.backward()
    start_s = time.perf_counter()
    assert x.grad is not None
    assert (x.grad + 1).tolist() == [4.0] * 4
    assert time.perf_counter() - start_s > 0.04


def test_branches_on_two_streams_go_back_at_once(gpu: VirtualGpu) -> None:
    """Each waits for what it gets its gradient from, and not for the other."""
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


@pytest.mark.usefixtures("gpu")
def test_the_checker_knows_the_order() -> None:
    """A program that orders its forward has no hazard in its backward, in hooks neither."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    with gpulab.hazards() as found:
        y, z = (forward_on(torch.cuda.Stream(), x) for _ in range(2))
        for part in (y, z):
            part.register_hook(lambda gradient: gradient * 2)
        (y * z).sum().backward()
        x.grad.add_(1)  # type: ignore[union-attr] # there is one by now
    assert list(found) == []


@pytest.mark.usefixtures("gpu")
def test_an_error_on_the_way_back_leaves_the_stream_as_it_was() -> None:
    """And the next backward goes through."""
    x, side = torch.ones(4, device="cuda", requires_grad=True), torch.cuda.Stream()
    y = forward_on(side, x)
    handle = y.register_hook(lambda _gradient: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    handle.remove()
    seen = []
    y.register_hook(lambda _gradient: seen.append(torch.cuda.current_stream()))
    y.sum().backward()
    assert seen == [side]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_nothing_stays_on_the_nodes(gpu: VirtualGpu) -> None:
    """Going back a second time makes streams wait as often as the first time."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    y = forward_on(torch.cuda.Stream(), x).sum()
    n_marks = []
    for _ in range(2):
        torch.cuda.synchronize()
        gpu.machine.gpu.device.forget_records()
        y.backward(retain_graph=True)
        torch.cuda.synchronize()
        records = gpu.machine.gpu.device.records()
        n_marks.append(sum(task.kind is Kind.MARK for task in records))
    assert n_marks[0] == n_marks[1] > 0


def test_programs_of_one_stream_have_no_marks(gpu: VirtualGpu) -> None:
    """A block on a side stream that only copies changes nothing in backward."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.zeros(4, device="cuda").copy_(torch.ones(4))
    y = (x * 2).sum()
    torch.cuda.synchronize()
    gpu.machine.gpu.device.forget_records()
    y.backward()
    torch.cuda.synchronize()
    assert {task.kind for task in gpu.machine.gpu.device.records()} == {Kind.KERNEL}


def test_another_thread_goes_back_on_the_host_alone(gpu: VirtualGpu) -> None:
    """What it does there puts nothing into the streams of the virtual GPU."""
    x = torch.ones(4, device="cuda", requires_grad=True)
    forward_on(torch.cuda.Stream(), x)
    torch.cuda.synchronize()
    gpu.machine.gpu.device.forget_records()
    on_host = torch.ones(3, requires_grad=True)
    thread = threading.Thread(target=lambda: (on_host * 2).sum().backward())
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert gpu.machine.gpu.device.records() == []
    assert on_host.grad is not None


@pytest.mark.slow
def test_only_so_many_changes_of_stream_are_kept(gpu: VirtualGpu) -> None:
    """A program that changes streams for ever does not grow, and still goes back rightly."""
    from gpulab.virtual import _streams as streams

    x, side = torch.ones(1, device="cuda", requires_grad=True), torch.cuda.Stream()
    for _ in range(6_000):
        torch.autograd._get_sequence_nr()  # type: ignore[attr-defined] # not in the stubs
        with torch.cuda.stream(side):
            y = x.view(1)
        z = x.view(1)
    core = gpu.machine.gpu
    assert len(streams._changes[core]) <= 10_000
    found = [streams.stream_at(core, item.grad_fn._sequence_nr()) for item in (y, z)]  # type: ignore[union-attr] # both have one
    assert [stream.number for stream in found] == [side.stream_id, 0]
