"""The main figures of lessons 04 to 08, each measured as in its lesson, on the GPU in use."""

import statistics
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import torch

import gpulab
from benchmarks.common.environment import l2_bytes
from benchmarks.common.wall_time import wall_s
from gpulab import clocks, stats
from gpulab.device.work import Work
from gpulab.exercises.lesson_04 import in_a_new_process
from gpulab.exercises.lesson_08 import pipelines
from gpulab.timing import elapsed_s
from gpulab.timing._event_pairs import new_event

_N_TRIALS = 20
# Two events and a kernel for each sample are 120 launches, far below the 1,021 at which the queue
# of an H200 is full.
_BATCH = 40
_MIB = 1 << 20


class Figure(NamedTuple):
    """One figure of a lesson; with the unit ``"s"`` the value is in seconds."""

    what: str
    value: float
    unit: str


def first_calls() -> list[float]:
    """Return the seconds of a process's first CUDA call, and of ten matmuls after it.

    Call it in a new process.
    """
    start = time.perf_counter()
    torch.cuda.synchronize()
    times_s = [time.perf_counter() - start]
    a = torch.empty(1024, 1024, device="cuda")
    for _ in range(10):
        torch.cuda.synchronize()
        start = time.perf_counter()
        _ = a @ a
        torch.cuda.synchronize()
        times_s.append(time.perf_counter() - start)
    return times_s


def of_warmup(fresh_s: list[float]) -> Iterator[Figure]:
    """Yield the times of the first calls, and after how many calls a large matmul is steady."""
    context_s, first_s, *others_s = fresh_s
    yield Figure("context, made by the first call", context_s, "s")
    yield Figure("first product of 1024 x 1024", first_s, "s")
    yield Figure("the same product once warm", statistics.median(others_s), "s")
    large = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
    times_s: list[float] = []
    while sum(times_s) < 0.4:  # noqa: PLR2004 # as the lesson does
        times_s.append(wall_s(lambda: large @ large))
    yield Figure("products of 8192 x 8192 until steady", stats.steady_from(times_s), "calls")


def of_clocks() -> Iterator[Figure]:
    """Yield the settled clock and power under load, and how much longer a matmul takes then."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.half)
    out = torch.empty_like(a)
    product = partial(torch.mm, a, a, out=out)
    _timed(product)
    # The GPU is idle and its clock rises again, so the next calls run at the burst clock.
    time.sleep(1)
    burst_s = statistics.median(_timed(product))
    # Without NVML there are no readings, and these figures are left out; the times are not.
    look = clocks.try_read()
    readings = [] if look is None else list(clocks.watch(product, duration_s=2))
    # The driver renews its reading every 0.1 s (docs/clocks.md): the last half second, when the
    # clock has settled.
    last = readings[-5:]
    for what, part, unit in (("settled clock", "sm_mhz", "MHz"), ("power then", "power_w", "W")):
        found = [value for reading in last if (value := getattr(reading, part)) is not None]
        if found:
            yield Figure(what, statistics.median(found), unit)
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.5:  # noqa: PLR2004 # until the clock has settled again
        settled_s = statistics.median(_timed(product))
    yield Figure("time of a product, settled over burst", settled_s / burst_s, "times")


def of_cache() -> Iterator[Figure]:
    """Yield a linear layer's times hot, cold and after a flush that writes, and time per byte."""
    layer = torch.nn.Linear(4096, 4096, bias=False, device="cuda", dtype=torch.half)
    layer.requires_grad_(requires_grad=False)
    x = torch.randn(1, 4096, device="cuda", dtype=torch.half)
    hot, cold, dirty = (
        _measure(lambda: layer(x), **options).median_s
        for options in ({"cache": "hot"}, {"cache": "cold"}, {"flush": "write"})
    )
    yield Figure("linear layer on one row, hot", hot, "s")
    yield Figure("the same, cold", cold, "s")
    yield Figure("behind a flush that writes, over one that reads", dirty / cold, "times")
    low, high = (_per_byte_s(share) for share in (1 / 4, 4))
    yield Figure("time per byte, four times the L2 over a quarter", high / low, "times")


def of_graphs() -> Iterator[Figure]:
    """Yield times of ten relus, eager and as a graph, a sleep's length, and errors of methods."""
    x = torch.randn(1 << 14, device="cuda")
    graph = torch.cuda.CUDAGraph()
    _ten_relus(x)
    with torch.cuda.graph(graph):
        kept = _ten_relus(x)
    eager = gpulab.measure(partial(_ten_relus, x), method="events", progress=False)
    replayed = gpulab.measure(graph.replay, method="events", progress=False)
    del kept
    yield Figure("ten relus, launched one by one", eager.median_s, "s")
    yield Figure("ten relus, one graph", replayed.median_s, "s")
    yield Figure("sleep that 40 samples need", _host_s(), "s")
    million = torch.randn(1 << 20, device="cuda")
    climbed = gpulab.ladder(partial(torch.relu, million), progress=False, max_time_s=0.3)
    errors = {rung.name: rung.error for rung in climbed.rungs}
    for name in ("synchronized", "calibrated"):
        error = errors.get(name)
        if error is not None:  # without the driver's records a method has no known error
            yield Figure(f"error of the rung {name}, relu of 2^20", 100 * error, "%")


def of_streams() -> Iterator[Figure]:
    """Yield the overlap of a double buffer, and how often missing waits give wrong values."""
    right = pipelines.run(partial(_double_buffer, waits=True))
    yield Figure("overlap of a right double buffer", 100 * right.overlap, "%")
    yield Figure("its wrong steps of 40", right.n_wrong, "steps")
    listed = pipelines.run(partial(_double_buffer, waits=False))
    yield Figure("wrong steps of 40 without its two waits", listed.n_wrong, "steps")
    for name, kept in (("without", False), ("with", True)):
        n_wrong = sum(_is_corrupted(kept=kept) for _ in range(_N_TRIALS))
        yield Figure(f"corrupted of {_N_TRIALS} {name} record_stream", n_wrong, "trials")


def of_all() -> Iterator[tuple[str, list[Figure]]]:
    """Yield the number of each lesson with its figures; print and skip a lesson that fails.

    The GPU in use must be chosen, but not entered yet, because the first figures need a new one.
    """
    fresh_s = in_a_new_process(first_calls)
    takers: dict[str, Callable[[], Iterator[Figure]]] = {
        "04": partial(of_warmup, fresh_s),
        "05": of_clocks,
        "06": of_cache,
        "07": of_graphs,
        "08": of_streams,
    }
    for lesson, take in takers.items():
        try:
            with gpulab.device.active():
                yield lesson, list(take())
        except Exception:  # noqa: BLE001 # time on a GPU is short: go on with the other lessons
            traceback.print_exc()


def _timed(work: Work, n_calls: int = 20) -> list[float]:
    events = [new_event() for _ in range(n_calls + 1)]
    for event in events[:-1]:
        event.record()
        work()
    events[-1].record()
    events[-1].synchronize()
    return [elapsed_s(pair) for pair in pairwise(events)]


def _measure(work: Work, **options: Any) -> gpulab.Measurement:  # noqa: ANN401 # passed on
    return gpulab.measure(work, n_samples=21, progress=False, **options)


def _per_byte_s(share: float) -> float:
    n = int(share * l2_bytes()) // 12  # three tensors of float32
    a, b, out = (torch.randn(n, device="cuda") for _ in range(3))
    return _measure(lambda: torch.add(a, b, out=out), cache="hot").median_s / (12 * n)


def _ten_relus(x: torch.Tensor) -> torch.Tensor:
    for _ in range(10):
        x = torch.relu(x)
    return x


def _host_s() -> float:
    """Return the host time of 40 samples of a small kernel; a sleep before them must be longer."""
    small = torch.zeros(1024, device="cuda")
    pairs = [(new_event(), new_event()) for _ in range(_BATCH)]
    times_s = []
    for _ in range(5):  # the first round creates the events and loads the kernel; it is dropped
        torch.cuda.synchronize()
        # About 5 ms, so that the device does not start before the host has enqueued all samples.
        torch.cuda._sleep(10_000_000)  # type: ignore[no-untyped-call]  # torch's gap
        begin = time.perf_counter()
        for start, end in pairs:
            start.record()
            small.add_(1)
            end.record()
        times_s.append(time.perf_counter() - begin)
    return statistics.median(times_s[1:])


def _double_buffer(  # noqa: PLR0913 # what pipelines.run gives
    slots: Any,  # noqa: ANN401 # two slots
    copying: torch.cuda.Stream,
    fill: Callable[..., None],
    compute: Callable[..., None],
    n_steps: int,
    *,
    waits: bool,
) -> None:
    for step in range(n_steps):
        slot = slots[step % 2]
        if waits:
            slot.copied.synchronize()
        fill(slot.pinned, step)
        if waits:
            copying.wait_event(slot.computed)
        with torch.cuda.stream(copying):
            slot.on_device.copy_(slot.pinned, non_blocking=True)
            slot.copied.record()
        torch.cuda.current_stream().wait_event(slot.copied)
        compute(slot.on_device, step)
        slot.computed.record()


def _is_corrupted(*, kept: bool, n: int = 1 << 16, filled: float = 7.0) -> bool:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    x = torch.ones(n, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        # About 0.1 ms: the sum starts after the host has freed x and written the other tensor, if
        # nothing protects x.
        torch.cuda._sleep(200_000)  # type: ignore[no-untyped-call]  # torch's gap
        total = x.sum()
    if kept:
        x.record_stream(side)
    # From here on the allocator may give the memory of x to the next tensor.
    del x
    other = torch.full((n,), filled, device="cuda")
    torch.cuda.synchronize()
    return total.item() != n or other[0].item() != filled
