"""What the L2 cache of the virtual GPU holds: bytes by storage, the longest unused leave first."""

from collections import OrderedDict
from dataclasses import dataclass

# A working set of half the L2 is the largest that stays: an H200's cache is two partitions, and a
# kernel that re-reads 33.5 MB still fetches 16 MB from memory although the L2 is 60 MiB.
USABLE_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Access:
    """One storage that a kernel reads or writes.

    Attributes
    ----------
    storage
        Identity of the storage.
    size_bytes
        Bytes touched.
    is_write
        Whether they are written.
    """

    storage: int
    size_bytes: int
    is_write: bool


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of one kernel by where they were served; both in bytes."""

    hit_bytes: int
    miss_bytes: int


class L2:
    """Bytes resident by storage, in order of their last use."""

    def __init__(self, size_bytes: int) -> None:
        self.capacity_bytes = int(size_bytes * USABLE_SHARE)
        self._resident: OrderedDict[int, int] = OrderedDict()
        self._used_bytes = 0

    def serve(self, accesses: tuple[Access, ...]) -> Traffic:
        """Account for one kernel's accesses, in order, and update what is resident."""
        # Writes stay in the cache only when the whole kernel fits; else they are written back
        # while it runs, and cost memory bandwidth.
        fits = sum(access.size_bytes for access in accesses) <= self.capacity_bytes
        hit_bytes = miss_bytes = 0
        for access in accesses:
            resident = self._touch(access.storage, access.size_bytes)
            kept = access.size_bytes if access.is_write and fits else resident
            if access.is_write and not fits:
                kept = 0
            hit_bytes += kept
            miss_bytes += access.size_bytes - kept
        return Traffic(hit_bytes, miss_bytes)

    def forget(self, storage: int) -> None:
        """Drop a storage that was freed."""
        self._used_bytes -= self._resident.pop(storage, 0)

    def _touch(self, storage: int, size_bytes: int) -> int:
        """Make ``storage`` the most recent and return how much of it was resident."""
        before = self._resident.pop(storage, 0)
        kept = min(max(size_bytes, before), self.capacity_bytes)
        self._resident[storage] = kept
        self._used_bytes += kept - before
        while self._used_bytes > self.capacity_bytes:
            _, evicted = self._resident.popitem(last=False)
            self._used_bytes -= evicted
        return min(before, size_bytes)
