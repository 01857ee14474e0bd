"""Time copies between host and GPU, by size, direction and kind of host memory."""

import itertools
from collections.abc import Iterator

import torch

from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.timing import measure
from gpulab.workloads.sweeps import Row

_SIZES = tuple(1024 * 4**power for power in range(10))  # 1 KiB to 256 MiB
_N_QUICK = 3
_ITEM_BYTES = 4
_MEMORIES = ("pinned", "pageable")
_DIRECTIONS = ("in", "out")
_PRECISION = 0.02
_MAX_TIME_S = 0.1


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
    """Return a copy to the GPU and one from it, of ``size_bytes`` each, on streams of their own.

    They start after the current stream's work, which then waits for both.
    """
    ways = [
        (copying(size_bytes, direction, pinned=True), torch.cuda.Stream())  # type: ignore[no-untyped-call]  # torch's gap
        for direction in _DIRECTIONS
    ]

    def run() -> None:
        # Without the waits, the copies of one call would overlap with those of the next call.
        main = torch.cuda.current_stream()
        for work, stream in ways:
            stream.wait_stream(main)
            with torch.cuda.stream(stream):
                work()
        for _, stream in ways:
            main.wait_stream(stream)

    return run


def brief_measurement(work: Work, method: str, *, cache: str = "hot") -> Measurement:
    """Return a short measurement, with the precision that a survey needs.

    An interrupt raises ``KeyboardInterrupt``, because it ends the whole survey.
    """
    measurement = measure(
        work,
        method=method,
        cache=cache,
        precision=_PRECISION,
        max_time_s=_MAX_TIME_S,
        progress=False,
    )
    if measurement.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return measurement


def waiting_times(work: Work) -> Row:
    """Return how long the work takes from an idle GPU to an idle GPU, and how long its call takes.

    The keys are ``total_s`` with its 95 % interval ``low_s`` and ``high_s``, ``n_samples``, and
    ``returns_s`` for the call alone.
    """
    total = brief_measurement(work, "synchronized")
    low_s, high_s = total.interval_s
    return {
        "total_s": total.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "n_samples": total.n_samples,
        # A separate measurement, because "synchronized" reads the clock only after the wait.
        "returns_s": brief_measurement(work, "naive").median_s,
    }


def _named(direction: str, memory: str, size_bytes: int) -> Row:
    return {"direction": direction, "memory": memory, "size_bytes": size_bytes}
