"""Order, waits and times on the virtual GPU agree with facts measured on an H200."""

import time
from collections.abc import Callable

import pytest
import torch

import gpulab
from gpulab.virtual import Kind, VirtualGpu
from gpulab.virtual.simulator._device import TaskRecord

US, MS = 1e-6, 1e-3
MIB = 1 << 20


def elapsed_s(work: Callable[[], object]) -> float:
    """Return the host time of a call."""
    start_s = time.perf_counter()
    work()
    return time.perf_counter() - start_s


def done(gpu: VirtualGpu, *kinds: Kind) -> list[TaskRecord]:
    """Wait, and return the records of these kinds in the order of their starts."""
    torch.cuda.synchronize()
    tasks = [task for task in gpu.machine.gpu.device.records() if task.kind in kinds]
    gpu.machine.gpu.device.forget_records()
    return sorted(tasks, key=lambda task: task.start_ns)


def overlap_ns(first: TaskRecord, second: TaskRecord) -> int:
    """Return how long two tasks ran at the same time."""
    starts = [task.start_ns or 0 for task in (first, second)]
    ends = [task.end_ns or 0 for task in (first, second)]
    return max(0, min(ends) - max(starts))


def test_the_default_stream_does_not_fence_side_streams(gpu: VirtualGpu) -> None:
    """Sleeps on a side stream, the default stream and another side stream overlap."""
    sides = [torch.cuda.Stream() for _ in range(2)]
    for stream in (sides[0], torch.cuda.default_stream(), sides[1]):
        with torch.cuda.stream(stream):
            torch.cuda._sleep(3_000_000)
    first, second, third = done(gpu, Kind.KERNEL)
    assert overlap_ns(first, second) > 1_400_000
    assert overlap_ns(second, third) > 1_400_000


def test_kernels_overlap_if_there_are_multiprocessors_for_both(gpu: VirtualGpu) -> None:
    """Small matmuls on two streams overlap, and large ones run one after the other."""
    overlaps = []
    for n in (128, 4096):
        a = torch.empty(n, n, device="cuda")
        out = [torch.empty(n, n, device="cuda") for _ in range(2)]
        torch.cuda.synchronize()
        gpu.machine.gpu.device.forget_records()
        torch.cuda._sleep(1_000_000)
        ready = torch.cuda.current_stream().record_event()
        for target in out:
            side = torch.cuda.Stream()
            side.wait_event(ready)
            with torch.cuda.stream(side):
                torch.mm(a, a, out=target)
        _, first, second = done(gpu, Kind.KERNEL)
        duration_ns = (first.end_ns) - (first.start_ns)
        overlaps.append(overlap_ns(first, second) / duration_ns)
    assert overlaps[0] > 0.5
    assert overlaps[1] < 0.2


def test_copies_overlap_in_both_directions_and_not_in_one(gpu: VirtualGpu) -> None:
    """A copy to the device runs beside one from it, and after another one to it."""
    on_host = [torch.empty(MIB, pin_memory=True) for _ in range(3)]
    on_device = [torch.empty(MIB, device="cuda") for _ in range(3)]
    done(gpu)
    for target, source in ((on_device[0], on_host[0]), (on_device[1], on_host[1])):
        with torch.cuda.stream(torch.cuda.Stream()):
            target.copy_(source, non_blocking=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        on_host[2].copy_(on_device[2], non_blocking=True)
    copies = done(gpu, Kind.COPY_IN, Kind.COPY_OUT)
    inward = [task for task in copies if task.kind is Kind.COPY_IN]
    (outward,) = (task for task in copies if task.kind is Kind.COPY_OUT)
    assert overlap_ns(*inward) == 0
    assert max(overlap_ns(outward, task) for task in inward) > 10_000


@pytest.mark.usefixtures("gpu")
def test_emptying_the_cache_waits_for_the_device() -> None:
    """``empty_cache`` waits for all launched work, as ``cudaFree`` does."""
    x = torch.empty(16 * MIB, device="cuda")
    del x
    torch.cuda._sleep(20_000_000)
    assert elapsed_s(torch.cuda.empty_cache) > 10 * MS


@pytest.mark.usefixtures("gpu")
def test_an_event_belongs_to_its_last_record() -> None:
    """A wait launched before an event's new record waits for the old record."""
    event, side = torch.cuda.Event(), torch.cuda.Stream()
    event.record()
    torch.cuda.synchronize()
    side.wait_event(event)
    torch.cuda._sleep(20_000_000)
    event.record()
    assert side.query()
    assert not event.query()
    event.synchronize()
    assert event.query()


def test_first_use_costs_come_once_each() -> None:
    """The first use of context and library takes long, and the second does not."""
    with gpulab.virtual_gpu("H200"):
        first_s = [
            elapsed_s(lambda: torch.ones(8, device="cuda")),
            elapsed_s(lambda: torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")),
        ]
        again_s = [
            elapsed_s(lambda: torch.ones(8, device="cuda")),
            elapsed_s(lambda: torch.ones(8, 8, device="cuda") @ torch.ones(8, 8, device="cuda")),
        ]
    assert first_s[0] > 0.3
    assert first_s[1] > 0.1
    assert max(again_s) < 1 * MS


def test_a_long_heavy_load_lowers_the_clock(gpu: VirtualGpu) -> None:
    """A matmul is slower after a long load, when the power limit has lowered the clock."""
    a = torch.empty(8192, 8192, device="cuda", dtype=torch.float16)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def product_ms() -> float:
        start.record()
        a @ a
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    product_ms()
    burst_ms, at_rest_mhz = product_ms(), torch.cuda.clock_rate()
    for _ in range(600):
        a @ a
    settled_ms, at_work_mhz = product_ms(), torch.cuda.clock_rate()
    assert 1.1 < settled_ms / burst_ms < 1.25
    assert at_rest_mhz == gpu.spec.boost_clock_mhz
    assert 1300 < at_work_mhz < 1600
    assert 500_000 < torch.cuda.power_draw() < 735_000  # mW, of 700 W
