"""What the L2 cache of the virtual GPU holds: bytes by address, the longest unused leave first."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# An H200's cache of 60 MiB is two partitions, and what is read comes to lie in both: additions
# that read 16.8 MB and write 16.8 MB find everything, those of 33.5 and 16.8 MB a quarter of it,
# and a kernel that reads 33.5 MB again finds half.
USABLE_SHARE = 0.42
_WRITTEN_SHARE = 0.5  # room that written bytes take of what read ones do


class Access(NamedTuple):
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
    """Bytes of one kernel by where they were served; both in bytes."""

    hit_bytes: int
    miss_bytes: int


class L2:
    """Bytes resident by the address that they begin at, in order of their last use."""

    def __init__(self, size_bytes: int) -> None:
        self.capacity_bytes = int(size_bytes * USABLE_SHARE)
        self._resident: OrderedDict[int, int] = OrderedDict()
        self._room: dict[int, float] = {}
        self._used_bytes = 0.0

    def serve(self, accesses: Sequence[Access]) -> Traffic:
        """Account for one kernel's accesses, in order, and update what is resident."""
        if all(self._resident.get(address) == n for address, n, _ in accesses):
            # The most frequent case by far: everything is there, and stays.
            for access in accesses:
                self._resident.move_to_end(access.address)
            return Traffic(sum(access.size_bytes for access in accesses), 0)
        read: dict[int, int] = {}
        written: dict[int, int] = {}
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
        self._keep(read | written, room, fits=fits)
        return Traffic(hit_bytes, total_bytes - hit_bytes)

    def _found(self, sizes: dict[int, int]) -> int:
        return sum(min(self._resident.get(key, 0), size) for key, size in sizes.items())

    def _keep(self, sizes: dict[int, int], room: dict[int, float], *, fits: bool) -> None:
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
