"""The memory of a virtual GPU does not grow with the work that it has done."""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest
import torch

import gpulab
from gpulab.virtual import VirtualGpu
from gpulab.virtual.simulator import _device as device

N_KEPT = 50


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualGpu]:
    """Enter a virtual H200 without first-use costs that keeps only 50 records."""
    monkeypatch.setattr(device, "_N_TASKS_KEPT", N_KEPT)
    with gpulab.virtual_gpu("H200", first_use=False) as entered:
        yield entered


def objects() -> Counter[str]:
    """Return the number of objects of each of gpulab's classes."""
    gc.collect()
    kinds = map(type, gc.get_objects())
    return Counter(
        kind.__qualname__ for kind in kinds if str(kind.__module__).startswith("gpulab.")
    )


def test_nested_recordings_have_their_own_records(virtual: VirtualGpu) -> None:
    """Each of two nested recordings has the operations that ran inside it, in order."""
    at, x = virtual.machine.gpu.device, torch.ones(4, device="cuda")
    with at.keeping_records() as outer:
        torch.cuda.synchronize()
        x.add_(1)
        torch.cuda.synchronize()
        with at.keeping_records() as inner:
            x.mul_(2)
            torch.cuda.synchronize()
        x.sub_(1)
        torch.cuda.synchronize()
    x.div_(2)
    torch.cuda.synchronize()
    assert [record.name for record in inner()] == ["mul"]
    assert [record.name for record in outer() if record.name != "ones"] == ["add", "mul", "sub"]


@pytest.mark.slow
@pytest.mark.usefixtures("virtual")
def test_rounds_of_measurements_leave_no_objects() -> None:
    """A second round of measurements and timelines leaves as many objects as the first.

    Graphs are left out: each leaves the streams that its replays ran on, which the race detector
    must be able to tell apart.
    """
    x, y = (torch.ones(1024, device="cuda") for _ in range(2))

    def work() -> torch.Tensor:
        return torch.relu(x) + y

    def one_round() -> None:
        for method in ("events", "calibrated", "profiler"):
            gpulab.measure(work, method=method, progress=False)
        str(gpulab.timeline(work))
        gpulab.compare(work, lambda: x + y)
        with gpulab.hazards(), torch.cuda.stream(torch.cuda.default_stream()):
            work()
        torch.cuda.synchronize()

    for _ in range(2):
        one_round()
    before = objects()
    for _ in range(2):
        one_round()
    grown = objects() - before
    for name in ("_Sample", "PowerDraw"):  # the last seconds of the GPU's temperature and power
        del grown[name]
    assert grown == {}


def test_a_graph_that_is_gone_keeps_no_bytes(virtual: VirtualGpu) -> None:
    """A deleted graph's pool stays reserved, as on CUDA, but its bytes are freed."""
    x = torch.ones(1 << 18, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + x
    graph.replay()
    assert y.sum().item() == 2 << 18
    reserved_bytes = torch.cuda.memory_reserved()

    def with_bytes() -> int:
        segments = virtual.machine.gpu.memory.segments()
        private = [segment for segment in segments if segment.arena.pool is not None]
        return sum(segment.payload is not None for segment in private)

    assert with_bytes() == 1
    del y, graph
    torch.cuda.synchronize()
    assert with_bytes() == 0
    assert torch.cuda.memory_reserved() == reserved_bytes


def test_a_gpu_that_was_replaced_frees_unused_bytes() -> None:
    """After ``use`` of another GPU the old one keeps bytes only for tensors still in use."""
    gpu = gpulab.use("H200").virtual
    assert gpu is not None

    def with_bytes() -> int:
        segments = gpu.machine.gpu.memory.segments()
        return sum(segment.payload is not None for segment in segments)

    with gpu:  # 16 MiB each, so that each tensor has its own segment
        dropped, kept = (
            torch.ones(1 << 20, dtype=torch.complex128, device="cuda") for _ in range(2)
        )
        assert (dropped[0] + kept[0]).item() == 2
        before = with_bytes()
        del dropped
    gpulab.use("A100")
    assert with_bytes() < before
    with gpu:
        assert kept[0].item() == 1
    del kept
    assert with_bytes() == 0
