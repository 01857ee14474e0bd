"""Record how much device memory a program uses, at every change, on a CUDA or a virtual GPU."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import (
    is_memory_history_kept,
    memory_snapshot,
    record_memory_history,
)
from gpulab.tracing._counters import CounterSeries

if TYPE_CHECKING:
    from gpulab.virtual import Machine


_MAX_ENTRIES = 1_000_000  # PyTorch drops the oldest entries beyond this
_BLOCK_BYTES = 512  # PyTorch's allocator rounds each request up to a multiple of this
_SIGNS = {"alloc": 1, "free_requested": -1}
_COUNTED = ("hand_out", "release")

# One list for each device: a time in ns on the axis of the records, and the bytes in use from then
# on.
Readings = list[list[tuple[int, int]]]


@contextmanager
def watch_memory(machine: "Machine | None") -> Iterator[Readings]:
    """Record the changes of memory inside the block; the list is complete when the block ends."""
    readings: Readings = []
    with _on_virtual(machine, readings) if machine else _on_cuda(readings):
        yield readings


@contextmanager
def _on_virtual(machine: "Machine", readings: Readings) -> Iterator[None]:
    usages = [gpu.memory.usage for gpu in machine.gpus]
    try:
        for usage in usages:
            readings_here = [(machine.host.now_ns, usage.allocated_bytes.total)]
            readings.append(readings_here)
            # The methods are replaced on this object and not on its class, so that the allocator
            # is no slower when no timeline is recorded.
            for name in _COUNTED:
                vars(usage)[name] = _followed(getattr(usage, name), machine, usage, readings_here)
        yield
    finally:
        for usage in usages:
            for name in _COUNTED:
                vars(usage).pop(name, None)


def _followed(
    count: Callable[..., None],
    machine: "Machine",
    usage: Any,  # noqa: ANN401  # the virtual GPU is loaded only when it is used
    readings: list[tuple[int, int]],
) -> Callable[..., None]:
    def counted(*args: int, **options: bool) -> None:
        count(*args, **options)
        readings.append((machine.host.now_ns, usage.allocated_bytes.total))

    return counted


@contextmanager
def _on_cuda(readings: Readings) -> Iterator[None]:
    if is_memory_history_kept():
        # The program records a memory history itself, and PyTorch has only one: starting ours
        # would end it. The timeline then has no memory.
        yield
        return
    in_use = [torch.cuda.memory_allocated(index) for index in range(torch.cuda.device_count())]
    try:
        # context=None leaves out Python stacks, which would slow down each allocation.
        record_memory_history("all", context=None, max_entries=_MAX_ENTRIES)
        yield
        traces = memory_snapshot()["device_traces"]
    finally:
        # In any case, or every later allocation of the program would be recorded, too.
        record_memory_history(None)
    readings += [_summed(now, trace) for now, trace in zip(in_use, traces, strict=False)]


def _summed(in_use: int, trace: list[dict[str, Any]]) -> list[tuple[int, int]]:
    readings = [(0, in_use)]
    for entry in trace:
        sign = _SIGNS.get(entry["action"], 0)
        if sign:
            # The history contains the requested size, but memory_allocated() counts whole blocks.
            in_use += sign * -(-entry["size"] // _BLOCK_BYTES) * _BLOCK_BYTES
            readings.append((round(entry["time_us"] * 1_000), in_use))
    return readings


def memory_series(readings: Readings, zero_ns: int, end_s: float) -> tuple[CounterSeries, ...]:
    """Return the bytes in use on each device from the start to the end of a timeline.

    ``zero_ns`` is its start on the axis of the readings, which are one list for each device.
    Changes after ``end_s`` are left out.
    """
    series = []
    for device, readings_here in enumerate(readings):
        # What happened before the first span counts as the state at its start.
        times_s = [max(0.0, (time_ns - zero_ns) * 1e-9) for time_ns, _ in readings_here]
        # A dict, so that the last of several changes at the same time counts.
        points = {
            time_s: float(n_bytes)
            for time_s, (_, n_bytes) in zip(times_s, readings_here, strict=True)
            if time_s <= end_s
        }
        if any(points.values()):
            series.append(
                CounterSeries("memory", "B", device, tuple(points), tuple(points.values()))
            )
    return tuple(series)
