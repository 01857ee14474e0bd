"""Simulate the L2 cache: which bytes a kernel finds there; the least recently used go first."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# A kernel that touches at most the first share of the cache finds all of it again when it is
# repeated, and nothing from the second share on: the oldest bytes leave first, so each byte pushes
# out one that the kernel needs later. Bytes that are read get a copy in both halves of the cache.
# An H200 and an H100 lost half of what they read at 0.75 and 0.77, and of copies and sums of
# tensors at 0.70.
_ALL_SHARE, _NONE_SHARE = 0.55, 0.85
# What one kernel touched is gone when others have touched this much with it: 0.65 to 0.78.
_USABLE_SHARE = 0.70

# An H200 holds back at most 29.7 MB of the bytes that kernels write: after a read flush, a fill of
# 62.9 MB sent 33.1 MB to memory, and one of 125.8 MB sent 96.1 MB. This figure and the next two
# are from docs/cold-cache.md.
_DIRTY_SHARE = 0.47
# A sum of 31.5 MB pushed out 10.9 MB of an earlier kernel's results, and one of 125.8 MB all.
_SWEPT_SHARE = 0.34
# A kernel's own writes partly hide the write-back, because they need not go to memory yet: an
# addition that pushes out 12.8 MB and writes 10.5 MB took as long as if it read 6.9 MB more.
_HIDDEN_SHARE = 0.6


class CacheAccess(NamedTuple):
    """One piece of memory that a kernel reads or writes.

    Attributes
    ----------
    address
        Its first byte.
    size_bytes
        How many of its bytes the kernel reads or writes.
    is_write
        Whether the kernel writes them.
    """

    address: int
    size_bytes: int
    is_write: bool


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes that one kernel moves, from or to the cache and the memory.

    Attributes
    ----------
    hit_bytes, miss_bytes
        Bytes served by the cache, and bytes served by memory.
    late_bytes
        Results of earlier kernels that are written back to make room, as far as this delays the
        kernel.
    """

    hit_bytes: int
    miss_bytes: int
    late_bytes: int = 0


class L2Cache:
    """The contents of an L2 cache: sizes by start address, in the order of their last use."""

    def __init__(self, size_bytes: int) -> None:
        self.capacity_bytes = int(size_bytes * _USABLE_SHARE)
        self._all_bytes, self._none_bytes = size_bytes * _ALL_SHARE, size_bytes * _NONE_SHARE
        self._resident: OrderedDict[int, int] = OrderedDict()
        self._used_bytes = 0
        self._dirty_capacity_bytes = int(size_bytes * _DIRTY_SHARE)
        self._dirty: OrderedDict[int, int] = OrderedDict()
        self._dirty_bytes = 0

    @property
    def dirty_bytes(self) -> int:
        """Bytes that kernels have written and that are not in memory yet."""
        return self._dirty_bytes

    def serve(self, accesses: Sequence[CacheAccess]) -> Traffic:
        """Return the traffic of a kernel with these accesses, in order; update the contents."""
        resident, dirty = self._resident, self._dirty
        # The most frequent case by far: all bytes are there, there is room for all, the written
        # ones are dirty already, and no tensor is read twice. It needs no figures. Otherwise the
        # rest moves them again.
        hit_bytes = 0
        for address, size_bytes, is_write in accesses:
            if resident.get(address) != size_bytes:
                break
            if is_write:
                if dirty.get(address) != size_bytes:
                    break
                dirty.move_to_end(address)
            resident.move_to_end(address)
            hit_bytes += size_bytes
        else:
            if hit_bytes <= self._all_bytes and len(set(accesses)) == len(accesses):
                return Traffic(hit_bytes, 0)
        read: dict[int, int] = {}
        written: dict[int, int] = {}
        # A tensor may be an argument twice; it counts once, with its larger part.
        for access in accesses:
            sizes = written if access.is_write else read
            sizes[access.address] = max(access.size_bytes, sizes.get(access.address, 0))
        # What is read and written takes room once, for the larger of the two.
        room = written | {key: max(n, written.get(key, 0)) for key, n in read.items()}
        room_bytes = sum(room.values())
        share_left = (self._none_bytes - room_bytes) / (self._none_bytes - self._all_bytes)
        share_left = min(1.0, max(0.0, share_left))
        hit_bytes = sum(self._found(key, n) for key, n in read.items())
        for key, n in written.items():
            # What it has read is there when it writes it, or what was there before, if more.
            again_bytes = int(min(n, read.get(key, 0)) * share_left)
            hit_bytes += max(again_bytes, self._found(key, n))
        total_bytes = sum(read.values()) + sum(written.values())
        self._update_resident(room, share_left)
        late_bytes = self._write_back(
            written, total_bytes - hit_bytes, share_left, waits=bool(read)
        )
        return Traffic(hit_bytes, total_bytes - hit_bytes, late_bytes)

    def _write_back(
        self, written: dict[int, int], miss_bytes: int, share_left: float, *, waits: bool
    ) -> int:
        """Mark written bytes as dirty; return how many older ones delay the kernel."""
        # Results that are overwritten here never go to memory, if they are still in the cache.
        again_bytes = sum(self._dirty.pop(address, 0) for address in written)
        self._dirty_bytes -= again_bytes
        written_bytes = sum(written.values())
        room_bytes = self._dirty_capacity_bytes
        # If a kernel writes more than the cache can hold back, the rest goes to memory at once.
        # Then each tensor keeps its part of the room, rounded down so that the sum fits.
        most_bytes = max(room_bytes, written_bytes)
        dirty = {address: size * room_bytes // most_bytes for address, size in written.items()}
        too_many_bytes = self._dirty_bytes + sum(dirty.values()) - room_bytes
        swept_bytes = int(miss_bytes * _SWEPT_SHARE)
        pushed_bytes = min(self._dirty_bytes, max(too_many_bytes, swept_bytes))
        self._clean(pushed_bytes)
        # Their old entries are gone, so these come last, as the most recent.
        self._dirty |= dirty
        self._dirty_bytes += sum(dirty.values())
        pushed_bytes += int(again_bytes * (1 - share_left))
        # A kernel that only writes is not delayed: its own bytes stay in the cache meanwhile.
        hidden_bytes = int(min(pushed_bytes, written_bytes) * _HIDDEN_SHARE)
        return pushed_bytes - hidden_bytes if waits else 0

    def _clean(self, size_bytes: int) -> None:
        """Write the oldest results back."""
        while size_bytes > 0:
            address, dirty_bytes = next(iter(self._dirty.items()))
            gone_bytes = min(dirty_bytes, size_bytes)
            size_bytes -= gone_bytes
            self._dirty_bytes -= gone_bytes
            if gone_bytes == dirty_bytes:
                del self._dirty[address]
            else:
                self._dirty[address] -= gone_bytes

    def _found(self, address: int, size_bytes: int) -> int:
        return min(self._resident.get(address, 0), size_bytes)

    def _update_resident(self, room: dict[int, int], share_left: float) -> None:
        """Make the kernel's bytes the most recent ones, and drop the least recent ones."""
        if share_left < 1:
            self._resident.clear()
            self._used_bytes = 0
        for address, size_bytes in room.items():
            self._drop(address)
            self._resident[address] = int(size_bytes * share_left)
            self._used_bytes += self._resident[address]
        # The kernel's own bytes are the last in the order and stay, whatever they take.
        while self._used_bytes > self.capacity_bytes and len(self._resident) > len(room):
            self._drop(next(iter(self._resident)))

    def _drop(self, address: int) -> None:
        self._used_bytes -= self._resident.pop(address, 0)
