"""After Ctrl-C or an error in the middle of its work, the virtual GPU still works."""

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import gpulab
from gpulab.virtual import VirtualGpu, entered
from tests.support.replaced_names import names
from tests.support.strikes import struck

ENGINE = tuple(
    f"gpulab.virtual.simulator.{name}"
    for name in ("_event_queue", "_device", "_scheduler", "_thermal")
)


@pytest.fixture
def gpu() -> Iterator[VirtualGpu]:
    """Enter a virtual H200 without first-use costs."""
    with gpulab.virtual_gpu("H200", first_use=False) as entered:
        yield entered


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


@pytest.mark.slow
@pytest.mark.parametrize("n_streams", [1, 3])
def test_an_error_inside_the_engine_restarts_unfinished_work(n_streams: int) -> None:
    """After an error at any line of the engine every task ends, and the next program is right."""
    n_struck = 0
    for at in range(1, 1_000, 37):
        with gpulab.virtual_gpu("H200", first_use=False) as gpu:
            streams = [torch.cuda.Stream() for _ in range(n_streams)]
            n_struck += struck(at, lambda streams=streams: load(streams), ENGINE)
            torch.cuda.synchronize()
            assert gpu.machine.gpu.device.n_pending == 0
            assert (torch.arange(4.0, device="cuda") * 2).tolist() == [0.0, 2.0, 4.0, 6.0]
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            torch.cuda._sleep(1_000_000)
            end.record()
            end.synchronize()
            assert start.elapsed_time(end) == pytest.approx(0.5, rel=0.2)
    assert n_struck > 10


def load(streams: list[Any]) -> None:
    """Run work on streams that wait for each other, and wait for all of it."""
    event = torch.cuda.Event()
    for stream in streams * 3:
        with torch.cuda.stream(stream):
            event.wait()
            torch.ones(64, 64, device="cuda").mul_(2)
            event.record()
    torch.cuda.synchronize()


@pytest.mark.slow
def test_an_error_at_any_line_of_leaving_restores_everything() -> None:
    """After an error at any line of leaving, torch's names and signal handlers are restored."""
    with gpulab.virtual_gpu("H200") as gpu:
        pass
    before = names(), handlers()
    n_struck = 0
    for at in (*range(1, 40), *range(40, 2_000, 97)):  # later lines repeat the same loops
        gpu.__enter__()
        n_struck += struck(at, lambda: gpu.__exit__(None, None, None), ENDS)
        assert (entered(), gpu.entered) == (None, False)
        assert [name for name, value in names().items() if before[0].get(name) is not value] == []
        assert handlers() == before[1]
    assert n_struck > 20


ENDS = ("gpulab.core.interrupts", "gpulab.virtual._session")


def handlers() -> list[object]:
    """Return the handlers of all signals."""
    return [signal.getsignal(number) for number in sorted(signal.valid_signals())]
