"""A copy between host and device that changes the type converts where PyTorch converts."""

from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.core.errors import NoValuesError
from gpulab.virtual import Kind
from gpulab.virtual.simulator.costs import copy_ns

HALF = torch.float16
View = Callable[[torch.Tensor], torch.Tensor]
GPU_CONVERTS = [Kind.KERNEL, Kind.COPY_OUT]


@pytest.mark.parametrize(
    ("copy", "kinds"),
    [
        (lambda host, _: host.to("cuda", HALF), [Kind.COPY_IN]),
        (lambda host, _: host.to("cuda", HALF, non_blocking=True), [Kind.COPY_IN, Kind.KERNEL]),
        (lambda host, gpu: gpu.half().copy_(host), [Kind.KERNEL, Kind.COPY_IN]),
        (lambda host, gpu: gpu.copy_(host.half()), [Kind.COPY_IN]),
        (lambda host, gpu: gpu.copy_(host.half(), non_blocking=True), [Kind.COPY_IN, Kind.KERNEL]),
        (lambda _, gpu: gpu.to("cpu", HALF), [Kind.COPY_OUT]),
        (lambda _, gpu: gpu.to("cpu", HALF, non_blocking=True), GPU_CONVERTS),
        (lambda host, gpu: host.copy_(gpu.double()), GPU_CONVERTS),
        (lambda host, gpu: host.half().copy_(gpu, non_blocking=True), GPU_CONVERTS),
    ],
)
def test_the_host_converts_for_a_blocking_copy_and_else_the_gpu(
    copy: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], kinds: list[Kind]
) -> None:
    """The host converts the type for a copy that blocks; otherwise a kernel does."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        host = torch.tensor([1.0, 2.0, 3.0], pin_memory=True)
        on_gpu = host.cuda()
        torch.cuda.synchronize()
        gpu.machine.gpu.device.forget_records()
        found = copy(host, on_gpu)
        torch.cuda.synchronize()
        assert [task.kind for task in gpu.machine.gpu.device.records()] == kinds
        assert found.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("of_host", "of_gpu", "is_direct"),
    [
        (lambda x: x, lambda x: x, True),
        (lambda x: x.t(), lambda x: x.t(), True),
        (lambda x: x[1], lambda x: x[2], True),
        (lambda x: x.t(), lambda x: x, False),
        (lambda x: x[:, :99], lambda x: x[:, :99], False),
    ],
    ids=["whole", "transposed", "rows", "one transposed", "columns"],
)
def test_only_a_direct_copy_uses_pinned_memory(
    of_host: View, of_gpu: View, *, is_direct: bool
) -> None:
    """For another layout PyTorch makes a dense tensor in between, in pageable memory."""
    with gpulab.virtual_gpu("H200", first_use=False) as gpu:
        host = of_host(torch.ones(256, 256, pin_memory=True))
        device = of_gpu(torch.zeros(256, 256, device="cuda"))
        torch.cuda.synchronize()
        expected_ns = copy_ns(host.numel() * host.itemsize, gpu.spec, pinned=is_direct)
        for target, source in ((device, host), (host, device)):
            gpu.machine.gpu.device.forget_records()
            target.copy_(source, non_blocking=True)
            torch.cuda.synchronize()
            (copy,) = (
                task for task in gpu.machine.gpu.device.records() if task.kind is not Kind.KERNEL
            )
            assert copy.end_ns - copy.start_ns == expected_ns


@pytest.mark.parametrize("dtype", [torch.float32, HALF])
def test_a_copy_to_another_gpu_converts_before_it_and_does_not_wait(dtype: torch.dtype) -> None:
    """The first GPU converts the type, and the host goes on while the copy is waiting."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False):
        source = torch.arange(6.0, device="cuda:0").view(2, 3).t()
        torch.cuda._sleep(1_000_000)  # type: ignore[no-untyped-call] # of PyTorch
        moved = source.to("cuda:1", dtype)
        written = torch.ones(3, 2, dtype=dtype, device="cuda:1").copy_(source)
        assert not torch.cuda.current_stream(1).query()
        for target in (moved, written):
            assert (target.dtype, target.device.index) == (dtype, 1)
            assert target.tolist() == source.tolist()


def test_a_copy_to_another_gpu_takes_the_host_7_us_longer() -> None:
    """It also makes the stream of each GPU wait for the other's."""
    with gpulab.virtual_gpu("H200", count=2, first_use=False) as gpu:
        first, second = (torch.zeros(4, device=f"cuda:{n}") for n in range(2))
        host = torch.zeros(4, pin_memory=True)
        took_ns = []
        for target, source in ((first, host), (second, first)):
            began_ns = gpu.machine.host.now_ns
            target.copy_(source, non_blocking=True)
            took_ns.append(gpu.machine.host.now_ns - began_ns)
    assert 7_000 < took_ns[1] - took_ns[0] < 13_000


def test_a_copy_to_another_gpu_has_no_values_if_its_source_has_none() -> None:
    """What the target had before is not read in place of a missing value."""
    with gpulab.virtual_gpu("H200", count=2, max_value_elements=4):
        target = torch.zeros(2, device="cuda:1")
        assert target.copy_(torch.ones(8, device="cuda:0")[:2]).has_values is False
        assert target.has_values is False


@pytest.mark.parametrize("into", ["a new tensor", "an old one"])
def test_a_copy_that_converts_reads_pinned_memory_when_it_runs(into: str) -> None:
    """Pinned memory that changes before the copy has run is copied with its new values."""
    with gpulab.virtual_gpu("H200"):
        host = torch.ones(4, pin_memory=True)
        target = torch.zeros(2, 4, device="cuda", dtype=HALF)
        torch.cuda._sleep(1_000_000)  # type: ignore[no-untyped-call] # of PyTorch
        if into == "a new tensor":
            target = host.to("cuda", HALF, non_blocking=True)
        else:
            target[0].copy_(host, non_blocking=True)
            target = target[0]
        host.fill_(7)
        assert target.tolist() == [7.0] * 4


def test_the_type_that_is_read_decides_whether_nan_can_stand_for_a_value() -> None:
    """A missing value is read as nan in a type that has it, and refused in another one."""
    with gpulab.virtual_gpu("H200", max_value_elements=0):
        missing = torch.ones(1 << 20, device="cuda")
        with pytest.raises(NoValuesError):
            missing.to("cpu", torch.int64)
        with pytest.raises(NoValuesError):
            torch.zeros(1 << 20, dtype=torch.int64).copy_(missing)
