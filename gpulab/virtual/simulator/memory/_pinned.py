"""Simulate PyTorch's caching allocator for pinned host memory.

A freed block is handed out again as soon as the copies that use it are done. PyTorch gives blocks
back to the system only if the program asks it to.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from gpulab.virtual.simulator.memory._statistics import MemoryStatistic

# PyTorch's names of the figures. "Active" blocks are in use by a tensor or by a copy.
_QUANTITIES = ("allocations", "allocated_bytes", "active_requests", "active_bytes")
_DURATIONS = ("host_alloc_time", "host_free_time")
_NS_PER_US = 1000


class PinnedBlock:
    """The pinned memory of one tensor."""

    __slots__ = ("size_bytes", "streams")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        # A dict as an ordered set, because the order in a plain set may differ between two runs.
        self.streams: dict[Any, None] = {}


class PinnedAllocator:
    """Hands out the pinned memory of a machine, and counts it.

    ``mark`` takes a stream and returns a mark after all work submitted to it so far; ``is_done``
    says whether the device has reached a mark.
    """

    def __init__(self, mark: Callable[[Any], object], is_done: Callable[[object], bool]) -> None:
        self._mark = mark
        self._is_done = is_done
        self._free: dict[int, list[PinnedBlock]] = defaultdict(list)
        self._pending: list[tuple[PinnedBlock, list[object]]] = []
        self._figures = {name: MemoryStatistic() for name in _QUANTITIES}
        self._durations_us: dict[str, list[int]] = {name: [] for name in _DURATIONS}

    def allocate(self, size_bytes: int, new_block: Callable[[int], int]) -> PinnedBlock:
        """Return a block of at least ``size_bytes``; its size is the next power of two.

        If none is free, ``new_block`` charges the time to pin that size, and returns it in
        nanoseconds.
        """
        # PyTorch rounds up to a power of two, so that requests of similar size share blocks.
        rounded = 1 << max(0, size_bytes - 1).bit_length()
        # A look at all pending copies is needed only if there is no free block.
        if not self._free[rounded]:
            self._collect()
        if self._free[rounded]:
            block = self._free[rounded].pop()
        else:
            self._durations_us["host_alloc_time"].append(new_block(rounded) // _NS_PER_US)
            block = PinnedBlock(rounded)
            self._count(rounded, "allocations", "allocated_bytes")
        self._count(rounded, "active_requests", "active_bytes")
        return block

    def release(self, block: PinnedBlock) -> None:
        """Take back a block; copies may still use it."""
        # Marked now: work that these streams get later does not use this block.
        marks = [self._mark(stream) for stream in block.streams]
        block.streams.clear()
        self._pending.append((block, marks))

    def empty_cache(self, on_free: Callable[[int], int]) -> None:
        """Give the free blocks back to the system.

        ``on_free`` charges the time to give a block of a size back, and returns it in nanoseconds.
        """
        self._collect()
        for size_bytes, blocks in self._free.items():
            for _ in blocks:
                self._durations_us["host_free_time"].append(on_free(size_bytes) // _NS_PER_US)
                self._count(-size_bytes, "allocations", "allocated_bytes")
            blocks.clear()

    def statistics(self) -> dict[str, Any]:
        """Return the nested dictionary of ``torch.cuda.host_memory_stats``."""
        self._collect()
        figures = {name: figure.nested()["all"] for name, figure in self._figures.items()}
        return {
            "num_host_alloc": figures["allocations"]["allocated"],
            "num_host_free": figures["allocations"]["freed"],
            **figures,
            **{name: _summary(values) for name, values in self._durations_us.items()},
        }

    def reset_peak(self) -> None:
        """Set all peaks to the present values."""
        for figure in self._figures.values():
            figure.reset_peak()

    def reset_accumulated(self) -> None:
        """Set all totals that only grow back to zero."""
        for figure in self._figures.values():
            figure.reset_accumulated()
        self._durations_us = {name: [] for name in _DURATIONS}

    def _collect(self) -> None:
        """Make each released block free if its copies are done."""
        pending, self._pending = self._pending, []
        for block, marks in pending:
            if all(self._is_done(mark) for mark in marks):
                self._free[block.size_bytes].append(block)
                self._count(-block.size_bytes, "active_requests", "active_bytes")
            else:
                self._pending.append((block, marks))

    def _count(self, size_bytes: int, number: str, n_bytes: str) -> None:
        self._figures[number].change(0, 1 if size_bytes > 0 else -1)
        self._figures[n_bytes].change(0, size_bytes)


def _summary(values: list[int]) -> dict[str, int | float]:
    return {
        "total": sum(values),
        "max": max(values, default=0),
        "min": min(values, default=0),
        "count": len(values),
        "avg": sum(values) / len(values) if values else 0,
    }
