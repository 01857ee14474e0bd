"""Simulate the L2 cache: which bytes a kernel finds there, least recently used leave first."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# An H200's cache of 60 MiB is two partitions, and what is read comes to lie in both: additions
# that read 16.8 MB and write 16.8 MB find everything, those of 33.5 and 16.8 MB a quarter of it,
# and a kernel that reads 33.5 MB again finds half.
USABLE_SHARE = 0.42
_WRITTEN_SHARE = 0.5  # room that written bytes take of what read ones do

# Of what kernels write, an H200 keeps at most 29.7 MB back: after a read flush, a fill of 62.9 MB
# sends 33.1 to memory and one of 125.8 MB 96.1 (docs/cold-cache.md, as the next two).
_DIRTY_SHARE = 0.47
# A sum of 31.5 MB pushes 10.9 MB of an earlier kernel's results out, one of 125.8 MB all of them.
_SWEPT_SHARE = 0.34
# Writing back is partly hidden behind a kernel's own writes, which need not go to memory yet: an
# addition that pushes out 12.8 MB and writes 10.5 MB takes as long as if 6.9 MB were read more.
_HIDDEN_SHARE = 0.6


class CacheAccess(NamedTuple):
    """One piece of memory that a kernel reads or writes.

    Attributes
    ----------
    address
        Where it begins.
    size_bytes
        Bytes touched.
    is_write
        Whether they are written.
    """

    address: int
    size_bytes: int
    is_write: bool


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one kernel by where they were served.

    Attributes
    ----------
    hit_bytes, miss_bytes
        What the cache served, and what memory did.
    late_bytes
        What it had to wait for while results of earlier kernels were written back to make room.
    """

    hit_bytes: int
    miss_bytes: int
    late_bytes: int = 0


class L2Cache:
    """Bytes resident by the address that they begin at, in order of their last use."""

    def __init__(self, size_bytes: int) -> None:
        self.capacity_bytes = int(size_bytes * USABLE_SHARE)
        self._resident: OrderedDict[int, int] = OrderedDict()
        self._room: dict[int, float] = {}
        self._used_bytes = 0.0
        self._dirty_capacity_bytes = int(size_bytes * _DIRTY_SHARE)
        self._dirty: OrderedDict[int, int] = OrderedDict()
        self._dirty_bytes = 0

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and are not in memory yet."""
        return self._dirty_bytes

    def serve(self, accesses: Sequence[CacheAccess]) -> Traffic:
        """Account for one kernel's accesses, in order, and update what is resident."""
        if self._is_settled(accesses):
            # The most frequent case by far: everything is there, and stays.
            hit_bytes = 0
            for address, size_bytes, is_write in accesses:
                self._resident.move_to_end(address)
                if is_write:
                    self._dirty.move_to_end(address)
                hit_bytes += size_bytes
            return Traffic(hit_bytes, 0)
        if all(self._resident.get(address) == n for address, n, _ in accesses):
            for access in accesses:
                self._resident.move_to_end(access.address)
            written = {address: n for address, n, is_write in accesses if is_write}
            late_bytes = self._write_back(written, 0, waits=len(written) < len(accesses))
            return Traffic(sum(access.size_bytes for access in accesses), 0, late_bytes)
        read: dict[int, int] = {}
        written = {}
        for access in accesses:
            sizes = written if access.is_write else read
            sizes[access.address] = max(access.size_bytes, sizes.get(access.address, 0))
        room = {address: float(size_bytes) for address, size_bytes in read.items()}
        for address, size_bytes in written.items():
            room[address] = max(room.get(address, 0.0), size_bytes * _WRITTEN_SHARE)
        fits = sum(room.values()) <= self.capacity_bytes
        hit_bytes = self._found(read)
        if fits:  # then what it has read is still there when it writes it
            again = {key: min(n, read.get(key, 0)) for key, n in written.items()}
            hit_bytes += sum(max(again[key], self._found({key: n})) for key, n in written.items())
        else:
            hit_bytes += self._found({key: n for key, n in written.items() if key not in read})
        total_bytes = sum(read.values()) + sum(written.values())
        self._update_resident(read | written, room, fits=fits)
        late_bytes = self._write_back(written, total_bytes - hit_bytes, waits=bool(read))
        return Traffic(hit_bytes, total_bytes - hit_bytes, late_bytes)

    def _is_settled(self, accesses: Sequence[CacheAccess]) -> bool:
        """Tell whether all is in the cache, and what is written was written there before."""
        resident, dirty = self._resident, self._dirty
        for address, size_bytes, is_write in accesses:
            if resident.get(address) != size_bytes:
                return False
            if is_write and dirty.get(address) != size_bytes:
                return False
        return True

    def _write_back(self, written: dict[int, int], miss_bytes: int, *, waits: bool) -> int:
        """Mark what is written, and return how much of older results delays the kernel."""
        for address in written:  # what is written over never goes to memory
            self._dirty_bytes -= self._dirty.pop(address, 0)
        written_bytes = sum(written.values())
        room_bytes = self._dirty_capacity_bytes
        most_bytes = max(room_bytes, written_bytes)
        dirty = {address: size * room_bytes // most_bytes for address, size in written.items()}
        too_many_bytes = self._dirty_bytes + sum(dirty.values()) - room_bytes
        swept_bytes = int(miss_bytes * _SWEPT_SHARE)
        pushed_bytes = min(self._dirty_bytes, max(too_many_bytes, swept_bytes))
        self._clean(pushed_bytes)
        self._dirty |= dirty
        self._dirty_bytes += sum(dirty.values())
        # A kernel that only writes is not slowed: its own bytes wait in the cache meanwhile.
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

    def _found(self, sizes: dict[int, int]) -> int:
        return sum(min(self._resident.get(key, 0), size) for key, size in sizes.items())

    def _update_resident(
        self, sizes: dict[int, int], room: dict[int, float], *, fits: bool
    ) -> None:
        """Make what the kernel touched the most recent, and drop the longest unused."""
        share = 1.0
        if not fits:
            self._resident.clear()
            self._room.clear()
            self._used_bytes = 0.0
            # More than fits pushes itself out: the larger, the less is left for the next kernel.
            share = max(0.0, 2 * self.capacity_bytes / sum(sizes.values()) - 1)
        for address, size_bytes in sizes.items():
            self._drop(address)
            self._resident[address] = int(size_bytes * share)
            self._room[address] = room[address] * share
            self._used_bytes += room[address] * share
        while self._used_bytes > self.capacity_bytes and len(self._resident) > len(sizes):
            self._drop(next(iter(self._resident)))

    def _drop(self, address: int) -> None:
        if self._resident.pop(address, None) is not None:
            self._used_bytes -= self._room.pop(address)
