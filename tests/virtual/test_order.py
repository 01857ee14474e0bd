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


def test_four_streams_run_at_once(gpu: VirtualGpu) -> None:
    """Sleeps on four streams together take little longer than one."""
    for _ in range(4):
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.cuda._sleep(1_000_000)
    tasks = done(gpu, Kind.KERNEL)
    # On an H200 the four took 609 µs, and one took 506 µs.
    assert (tasks[-1].end_ns) - (tasks[0].start_ns) < 700_000


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pinned", "to_device", "host_at_most_s", "rate_gb_s"),
    [
        (True, True, 100 * US, (50, 60)),
        (True, False, 100 * US, (50, 60)),
        (False, True, 26 * MS, (11, 23)),
        (False, False, 26 * MS, (11, 23)),
    ],
)
def test_copies_of_pinned_and_pageable_memory(
    gpu: VirtualGpu,
    *,
    pinned: bool,
    to_device: bool,
    host_at_most_s: float,
    rate_gb_s: tuple[int, int],
) -> None:
    """A pinned copy returns at once and runs at 55 GB/s; a pageable one blocks the host."""
    on_host = torch.empty(64 * MIB, pin_memory=pinned)
    on_device = torch.empty(64 * MIB, device="cuda")
    torch.cuda.synchronize()
    target, source = (on_device, on_host) if to_device else (on_host, on_device)
    host_s = elapsed_s(lambda: target.copy_(source, non_blocking=True))
    (task,) = done(gpu, Kind.COPY_IN, Kind.COPY_OUT)
    duration_ns = (task.end_ns) - task.start_ns
    assert host_s < host_at_most_s
    assert pinned or host_s > 0.9 * duration_ns * 1e-9
    assert rate_gb_s[0] < 256 * MIB / duration_ns < rate_gb_s[1]


@pytest.mark.slow
def test_a_pinned_copy_overlaps_with_a_kernel_and_a_pageable_one_does_not(gpu: VirtualGpu) -> None:
    """A pinned copy overlaps with a kernel; a pageable one does not."""
    overlaps = []
    for pinned in (True, False):
        on_host = torch.empty(64 * MIB, pin_memory=pinned)
        on_device = torch.empty(64 * MIB, device="cuda")
        torch.cuda.synchronize()
        gpu.machine.gpu.device.forget_records()
        with torch.cuda.stream(torch.cuda.Stream()):
            on_device.copy_(on_host, non_blocking=True)
        torch.cuda._sleep(8_000_000)
        copied, slept = done(gpu, Kind.COPY_IN, Kind.KERNEL)
        overlaps.append(overlap_ns(copied, slept))
    assert overlaps[0] > 3_000_000
    assert overlaps[1] == 0


@pytest.mark.slow
def test_copies_in_both_directions_run_at_once(gpu: VirtualGpu) -> None:
    """A copy to the device and one from it overlap."""
    on_host = [torch.empty(64 * MIB, pin_memory=True) for _ in range(2)]
    on_device = [torch.empty(64 * MIB, device="cuda") for _ in range(2)]
    with torch.cuda.stream(torch.cuda.Stream()):
        on_device[0].copy_(on_host[0], non_blocking=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        on_host[1].copy_(on_device[1], non_blocking=True)
    inward, outward = done(gpu, Kind.COPY_IN, Kind.COPY_OUT)
    assert overlap_ns(inward, outward) > 4_000_000


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.sum().item(),
        lambda x: x.cpu(),
        lambda x: x.nonzero(),
        lambda x: bool(x.any()),
        torch.unique,
        lambda x: x[x > 0],
        lambda x: torch.equal(x, x.clone()),
        lambda x: torch.allclose(x, x),
        str,
    ],
)
@pytest.mark.usefixtures("gpu")
def test_reading_values_waits_for_the_device(read: Callable[[torch.Tensor], object]) -> None:
    """Every call that needs a value waits for the work launched before it."""
    x = torch.ones(8, device="cuda")
    torch.cuda._sleep(20_000_000)
    assert elapsed_s(lambda: read(x)) > 10 * MS


@pytest.mark.usefixtures("gpu")
def test_allocating_a_new_segment_takes_host_time() -> None:
    """A new segment takes over 25 µs of host time, and cached memory less than 15."""
    new_s = elapsed_s(lambda: torch.empty(16 * MIB, device="cuda"))
    kept_s = elapsed_s(lambda: torch.empty(16 * MIB, device="cuda"))
    assert new_s > 25 * US
    assert kept_s < 15 * US


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


@pytest.mark.usefixtures("gpu")
def test_an_unrecorded_event_waits_for_nothing() -> None:
    """An event that was never recorded counts as done for host and streams."""
    event, side = torch.cuda.Event(), torch.cuda.Stream()
    torch.cuda._sleep(20_000_000)
    side.wait_event(event)
    assert event.query()
    assert elapsed_s(event.synchronize) < 10 * US
    with torch.cuda.stream(side):
        torch.cuda._sleep(1_000)
    side.synchronize()
    assert not torch.cuda.default_stream().query()


@pytest.mark.usefixtures("gpu")
def test_priorities_are_accepted() -> None:
    """Stream priorities are limited to the range of the device."""
    assert [torch.cuda.Stream(priority=n).priority for n in (-1, -99, 5)] == [-1, -3, 0]


@pytest.mark.usefixtures("gpu")
def test_a_replay_launches_all_of_a_graph_with_one_call() -> None:
    """A replay of ten kernels costs the host one launch and ends in half the time."""
    x = torch.zeros(1 << 14, device="cuda")

    def ten() -> None:
        for _ in range(10):
            x.relu_()

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ten()
    torch.cuda.synchronize()
    launched_s = elapsed_s(graph.replay)
    torch.cuda.synchronize()
    eager_s = elapsed_s(lambda: (ten(), torch.cuda.synchronize()))
    graphed_s = elapsed_s(lambda: (graph.replay(), torch.cuda.synchronize()))
    assert launched_s < 12 * US
    assert graphed_s < eager_s / 2


def test_backward_runs_on_the_forwards_streams(gpu: VirtualGpu) -> None:
    """The backward kernels of a side stream's work run on that stream."""
    side = torch.cuda.Stream()
    x = torch.ones(8, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = (x * 2).sum()
    torch.cuda.synchronize()
    gpu.machine.gpu.device.forget_records()
    y.backward()
    streams = {task.name: task.stream for task in done(gpu, Kind.KERNEL)}
    assert streams == {"ones_like": 0, "mul": side.stream_id}


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


@pytest.mark.usefixtures("gpu")
def test_data_in_the_cache_is_read_faster() -> None:
    """Reading 8 MB is slower after 256 MB were read in between."""
    x, big = (torch.empty(n * MIB // 4, device="cuda") for n in (8, 256))
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def read_ms() -> float:
        torch.cuda._sleep(1_000_000)
        start.record()
        x.neg()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    read_ms()
    hot_ms = read_ms()
    big.sum()
    assert read_ms() > hot_ms + 0.5 * US / MS


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
