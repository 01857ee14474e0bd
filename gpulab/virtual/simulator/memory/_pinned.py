"""Simulate PyTorch's caching allocator for pinned host memory.

A freed block is handed out again as soon as the copies that use it are done. PyTorch gives blocks
back to the system only if the program asks it to.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any


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

    def allocate(self, size_bytes: int, on_new: Callable[[int], None]) -> PinnedBlock:
        """Return a block of at least ``size_bytes``; its size is the next power of two.

        If none is free, ``on_new`` charges the time to pin that size.
        """
        # PyTorch rounds up to a power of two, so that requests of similar size share blocks.
        rounded = 1 << max(0, size_bytes - 1).bit_length()
        # A look at all pending copies is needed only if there is no free block.
        if not self._free[rounded]:
            self._collect()
        if self._free[rounded]:
            return self._free[rounded].pop()
        on_new(rounded)
        return PinnedBlock(rounded)

    def release(self, block: PinnedBlock) -> None:
        """Take back a block; copies may still use it."""
        # Marked now: work that these streams get later does not use this block.
        marks = [self._mark(stream) for stream in block.streams]
        block.streams.clear()
        self._pending.append((block, marks))

    def empty_cache(self, on_free: Callable[[int], None]) -> None:
        """Give the free blocks back to the system; ``on_free`` charges the time for each size."""
        self._collect()
        for size_bytes, blocks in self._free.items():
            for _ in blocks:
                on_free(size_bytes)
            blocks.clear()

    def _collect(self) -> None:
        """Make each released block free if its copies are done."""
        pending, self._pending = self._pending, []
        for block, marks in pending:
            if all(self._is_done(mark) for mark in marks):
                self._free[block.size_bytes].append(block)
            else:
                self._pending.append((block, marks))
