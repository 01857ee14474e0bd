"""Time copies between host and GPU, by size, direction and kind of host memory."""

import itertools
from collections.abc import Iterator

import torch

from gpulab.device.work import Work
from gpulab.roofline.survey._brief_timing import brief_measurement, waiting_times
from gpulab.workloads.recordings import Row

_SIZES = tuple(1024 * 4**power for power in range(10))  # 1 KiB to 256 MiB
_N_QUICK = 3
_ITEM_BYTES = 4
_MEMORIES = ("pinned", "pageable")
_DIRECTIONS = ("in", "out")


def rows(*, quick: bool) -> Iterator[Row]:
    """Yield a row for each size, direction and kind of memory, and for both directions at once.

    ``device_s`` is the time of the copy on the GPU. A pageable copy has none, because the driver
    copies it in parts through its own memory while the host waits.
    """
    sizes = _SIZES[:: len(_SIZES) // _N_QUICK] if quick else _SIZES
    for size_bytes, memory in itertools.product(sizes, _MEMORIES):
        for direction in _DIRECTIONS:
            work = copying(size_bytes, direction, pinned=memory == "pinned")
            device_s = (
                brief_measurement(work, "calibrated").median_s if memory == "pinned" else None
            )
            yield {
                **_named(direction, memory, size_bytes),
                **waiting_times(work),
                "device_s": device_s,
            }
    for size_bytes in sizes:
        work = copying_both_ways(size_bytes)
        yield {**_named("both", "pinned", size_bytes), **waiting_times(work), "device_s": None}


def copying(size_bytes: int, direction: str, *, pinned: bool) -> Work:
    """Return a copy ``"in"`` to the GPU or ``"out"`` of it, with ``non_blocking=True``."""
    # torch.ones writes the memory. The system gives memory real pages only when it is written.
    host = torch.ones(size_bytes // _ITEM_BYTES, pin_memory=pinned)
    device = torch.ones_like(host, device="cuda")
    # non_blocking in every case: for pageable memory PyTorch and CUDA decide what blocks anyway.
    target, source = (device, host) if direction == "in" else (host, device)
    return lambda: target.copy_(source, non_blocking=True)


def copying_both_ways(size_bytes: int) -> Work:
    """Return a copy to the GPU and one from it, on two streams, of ``size_bytes`` each."""
    ways = [copying(size_bytes, direction, pinned=True) for direction in _DIRECTIONS]
    return side_by_side(*ways)


def side_by_side(*works: Work) -> Work:
    """Return a function that runs each work on its own stream, after the current stream's work.

    The current stream then waits for all of them.
    """
    streams = [torch.cuda.Stream() for _ in works]  # type: ignore[no-untyped-call]  # torch's gap

    def run() -> None:
        # Without the waits, the works of one call would overlap with those of the next call.
        main = torch.cuda.current_stream()
        for stream, work in zip(streams, works, strict=True):
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                work()
        for stream in streams:
            main.wait_stream(stream)

    return run


def _named(direction: str, memory: str, size_bytes: int) -> Row:
    return {"direction": direction, "memory": memory, "size_bytes": size_bytes}
