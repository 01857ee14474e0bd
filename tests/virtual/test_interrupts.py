"""After Ctrl-C or an error in the middle of its work, the virtual GPU still works."""

import signal
from collections.abc import Callable

import pytest
import torch

from gpulab.virtual import VirtualGpu


def last_payload(gpu: VirtualGpu, payload: Callable[[int], None]) -> None:
    """Replace the payload of the task that was launched last."""
    task = gpu.machine.gpu.stream.last
    assert task is not None
    task.payload = payload


def test_ctrl_c_while_values_are_computed_loses_nothing(gpu: VirtualGpu) -> None:
    """Ctrl-C during a kernel ends the wait after the kernel, and no value is lost."""
    x, y = (torch.ones(4, device="cuda") for _ in range(2))
    torch.cuda._sleep(1_000_000)
    x.add_(1)
    y.add_(1)
    task = gpu.machine.gpu.stream.queue[-2]
    compute = task.payload
    assert compute is not None

    def interrupted(seed: int) -> None:
        signal.raise_signal(signal.SIGINT)
        compute(seed)

    task.payload = interrupted
    with pytest.raises(KeyboardInterrupt):
        torch.cuda.synchronize()
    assert (x.tolist(), y.tolist()) == ([2.0] * 4, [2.0] * 4)


def test_ctrl_c_ends_a_long_wait_between_two_kernels(gpu: VirtualGpu) -> None:
    """Ctrl-C ends a wait after the current kernel; the others end in the next wait."""
    ended: list[int] = []
    for index in range(10):
        torch.cuda._sleep(1_000)

        def end(_seed: int, index: int = index) -> None:
            ended.append(index)
            if index == 4:
                signal.raise_signal(signal.SIGINT)

        last_payload(gpu, end)
    with pytest.raises(KeyboardInterrupt):
        torch.cuda.synchronize()
    assert ended == [0, 1, 2, 3, 4]
    torch.cuda.synchronize()
    assert ended == [*range(10)]


def test_the_call_that_waits_raises_the_failure_of_a_task(gpu: VirtualGpu) -> None:
    """Only a call that waits raises a task's error, and all other work is done."""

    def fail(_seed: int) -> None:
        raise ZeroDivisionError

    torch.cuda._sleep(1_000)
    last_payload(gpu, fail)
    x = torch.ones(4, device="cuda")
    event = torch.cuda.Event()
    event.record()
    gpu.machine.host.spend(10_000_000)
    assert event.query()
    with pytest.raises(ZeroDivisionError):
        torch.cuda.synchronize()
    torch.cuda.synchronize()
    assert (x + 1).tolist() == [2.0] * 4
    assert gpu.machine.gpu.device.n_pending == 0
