"""Facts of a GPU that no single workload shows: floors, gaps, queues, copies and overlap."""

import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch

from benchmarks.common.device_records import busy_us, duration_us, is_spin
from benchmarks.common.wall_time import wall_s
from benchmarks.fidelity.bench import (
    Bench,
    event_us,
    host_us,
    median_us,
    new_stream,
    returns_us,
    spin,
    spin_s,
    tiny,
)
from benchmarks.fidelity.calls import Readings, allocation, backward, host_calls
from benchmarks.fidelity.graphs import graphs, graphs_on_device
from gpulab.device.work import Work
from gpulab.timing import new_event
from gpulab.tracing.profiling import ActivityRecord

_KIB, _MIB = 1 << 10, 1 << 20
_COPY_SIZES = (4 * _KIB, 16 * _KIB, 64 * _KIB, 256 * _KIB, _MIB, 4 * _MIB, 16 * _MIB, 256 * _MIB)
_SPINS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LARGE_BYTES = 100 * _MIB
# A launch takes 5 to 15 µs, so one that takes 20 ms was blocked by a full queue.
_BLOCKED_S = 0.02
# The spin lasts much longer than the launches, so that the queue cannot drain meanwhile.
_LONG_S = 0.3


def event_floor(bench: Bench) -> Readings:
    """Time pairs of events around nothing, around one tiny kernel and around several."""
    x = tiny()

    def chain(n: int) -> Work:
        return lambda: [x.add_(1.0) for _ in range(n)]

    n = bench.n_repetitions
    yield "empty_pair_us", event_us(lambda: None, n, 1e-5)
    for n_kernels in (1, 2, 4, 8, 16):
        work = chain(n_kernels)
        work()
        yield f"pair_round_{n_kernels}_us", event_us(work, n, n_kernels * 1e-5)


def gaps(bench: Bench) -> Readings:
    """Time the gaps between kernels that wait in one stream, and across streams."""
    x = tiny()
    x.add_(1.0)
    yield "tiny_kernel_us", busy_us(bench.records(lambda: [x.add_(1.0) for _ in range(10)])) / 10
    works = {"tiny": x, "4MB": torch.zeros(_MIB, device="cuda")}
    for name, x in works.items():
        x.add_(1.0)

        # The spin at the start lets the host enqueue all kernels before the first one runs;
        # otherwise the gaps would be those of the host.
        def queued(x: torch.Tensor = x) -> None:
            spin_s(2e-3)
            for _ in range(20):
                x.add_(1.0)

        yield f"same_stream_{name}_us", _median_gap_us(bench.records(queued)[2:])
    for name, x in works.items():
        yield f"across_streams_{name}_us", _cross_gap_us(bench, x)


def _median_gap_us(records: list[ActivityRecord]) -> float:
    pauses = [after.start_ns - before.end_ns for before, after in itertools.pairwise(records)]
    return statistics.median(pauses) / 1e3


def _cross_gap_us(bench: Bench, x: torch.Tensor) -> float:
    """Return the gap from a kernel to one in another stream that waits for it, queues full."""
    streams = new_stream(), new_stream()

    def queued() -> None:
        for stream in streams:
            stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(streams[0]):
            spin_s(3e-3)
        for i in range(20):
            streams[i % 2].wait_stream(streams[1 - i % 2])
            with torch.cuda.stream(streams[i % 2]):
                x.add_(1.0)

    return _median_gap_us(bench.records(queued)[3:])


def queue_depth(bench: Bench) -> Readings:
    """Launch tiny kernels after a long one until the host blocks: the depth of the queue."""
    del bench
    x = tiny()
    x.add_(1.0)
    torch.cuda.synchronize()
    spin_s(_LONG_S)
    launches_s = []
    # An H200 blocks the host at the 1,022nd launch; a GPU with a deeper queue ends the loop here.
    for _ in range(1500):
        start_s = time.perf_counter()
        x.add_(1.0)
        launches_s.append(time.perf_counter() - start_s)
        if launches_s[-1] > _BLOCKED_S:
            break
    torch.cuda.synchronize()
    yield "launches_before_block", len(launches_s) - 1
    yield "blocked_us", launches_s[-1] * 1e6
    yield "median_launch_us", median_us(launches_s)


def spinning(bench: Bench) -> Readings:
    """Time the launch of a kernel that spins and the wait for it, in wall time."""
    for cycles in _SPINS:
        work = partial(spin, cycles)
        yield (
            f"{cycles}_cycles_wall_us",
            median_us([wall_s(work) for _ in range(bench.n_repetitions)]),
        )


def spinning_on_device(bench: Bench) -> Readings:
    """Time kernels that spin, by the driver's records."""

    def thrice() -> None:
        for cycles in _SPINS:
            for _ in range(3):
                spin(cycles)

    records = bench.records(thrice)
    for i, cycles in enumerate(_SPINS):
        durations_us = [duration_us(record) for record in records[3 * i : 3 * i + 3]]
        yield f"{cycles}_cycles_us", statistics.median(durations_us)


def waits(bench: Bench) -> Readings:
    """Time the launch of a tiny kernel and the wait for it, for each way to wait."""
    x, event, stream = tiny(), new_event(), torch.cuda.current_stream()
    host = torch.zeros(1024).pin_memory()

    def then(wait: Work) -> Work:
        def work() -> None:
            x.add_(1.0)
            wait()

        return work

    def through_event() -> None:
        event.record()
        event.synchronize()

    ways: dict[str, Work] = {
        "synchronize": then(torch.cuda.synchronize),
        "stream_synchronize": then(stream.synchronize),
        "event_synchronize": then(through_event),
        "item": then(x[0].item),
        "cpu": then(x.cpu),
        "copy_to_pinned": then(lambda: host.copy_(x)),
    }
    for name, work in ways.items():
        yield f"{name}_us", _repeated_us(bench, work)


def _repeated_us(bench: Bench, work: Work) -> float:
    """Return the median time of the call itself, each from an idle device."""
    times_s = []
    for _ in range(bench.n_repetitions + 1):
        torch.cuda.synchronize()
        start_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - start_s)
    return median_us(times_s[1:])


def copies(bench: Bench) -> Readings:
    """Time copies by size, direction and kind of host memory: the call, and until the end."""
    del bench
    for name, size_bytes, work in _copies():
        n = 3 if size_bytes > _LARGE_BYTES else 10
        work()
        yield f"{name}_returns_us", returns_us(work, n)
        yield f"{name}_total_us", median_us([wall_s(work) for _ in range(n)])


def copies_on_device(bench: Bench) -> Readings:
    """Time copies by size, direction and kind of host memory, by the driver's records."""
    for name, _, work in _copies():
        work()
        yield f"{name}_device_us", busy_us(bench.records(work))


def _copies() -> Iterator[tuple[str, int, Work]]:
    for size_bytes, pinned in itertools.product(_COPY_SIZES, (True, False)):
        host = torch.ones(size_bytes // 4)
        host = host.pin_memory() if pinned else host
        device = torch.zeros(size_bytes // 4, device="cuda")
        for way, target, source in (("h2d", device, host), ("d2h", host, device)):
            name = f"{way}_{'pinned' if pinned else 'pageable'}_{size_bytes}"
            yield name, size_bytes, partial(target.copy_, source, non_blocking=True)


def pinning(bench: Bench) -> Readings:
    """Time pinning host memory of a new size, and again after that memory was freed."""
    del bench
    for size_bytes in (128 * _KIB, 2 * _MIB, 32 * _MIB, 128 * _MIB):
        host = torch.ones(size_bytes // 4)
        for name in ("first", "again"):
            start_s = time.perf_counter()
            host.pin_memory()
            yield f"{size_bytes}_{name}_us", (time.perf_counter() - start_s) * 1e6


def overlap(bench: Bench) -> Readings:
    """Time two kernels on two streams at once: small ones, large ones, a copy and a kernel."""
    narrow = torch.randn(8, 1 << 18, device="cuda")
    wide = torch.randn(4096, 4096, device="cuda")
    host = torch.ones(16 * _MIB).pin_memory()
    device = torch.zeros(16 * _MIB, device="cuda")
    pairs: dict[str, tuple[Work, Work]] = {
        "small": (lambda: narrow.softmax(-1), lambda: narrow.softmax(-1)),
        "large": (lambda: wide @ wide, lambda: wide @ wide),
        "small_and_large": (lambda: narrow.softmax(-1), lambda: wide @ wide),
        "copy_and_large": (
            lambda: device.copy_(host, non_blocking=True),
            lambda: wide @ wide,
        ),
        "both_copies": (
            lambda: device.copy_(host, non_blocking=True),
            lambda: host.copy_(device, non_blocking=True),
        ),
    }
    for name, works in pairs.items():
        for work in works:
            work()
        alone_us = [busy_us(bench.records(work)) for work in works]
        found = [r for r in bench.records(_together(works)) if not is_spin(r)]
        first_ns, last_ns = min(r.start_ns for r in found), max(r.end_ns for r in found)
        yield f"{name}_alone_us", round(sum(alone_us), 3)
        yield f"{name}_together_us", (last_ns - first_ns) / 1e3


def _together(works: tuple[Work, Work]) -> Work:
    streams = new_stream(), new_stream()

    def run() -> None:
        spin_s(2e-3)  # both are enqueued before either may start
        for stream, work in zip(streams, works, strict=True):
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                work()

    return run


def launch_after_profiling(bench: Bench) -> Readings:
    """Time a launch after the profiler has run and CUPTI was detached."""
    x = tiny()
    bench.records(lambda: x.add_(1.0))
    yield "add__us", host_us(bench, lambda: x.add_(1.0))


Fact = Callable[[Bench], Readings]

# Timed before the profiler runs: where CUPTI cannot be detached, all later launches are slower.
HOST_FACTS: tuple[Fact, ...] = (
    event_floor,
    queue_depth,
    spinning,
    waits,
    allocation,
    copies,
    pinning,
    graphs,
    backward,
    host_calls,
)
DEVICE_FACTS: tuple[Fact, ...] = (
    gaps,
    spinning_on_device,
    copies_on_device,
    graphs_on_device,
    overlap,
    launch_after_profiling,
)
