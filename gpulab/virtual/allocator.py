"""Device memory, cached as PyTorch does it: freed blocks are kept by stream and reused."""

from collections import defaultdict
from dataclasses import dataclass

from gpulab.errors import VirtualGpuError

# Sizes of PyTorch's CUDACachingAllocator: blocks are multiples of 512 bytes, small ones are cut
# from segments of 2 MiB, and large ones take whole multiples of 2 MiB.
_BLOCK_BYTES = 512
_SMALL_BYTES = 1 << 20
_SEGMENT_BYTES = 2 << 20
_FIRST_ADDRESS = 0x7F00_0000_0000


class OutOfDeviceMemoryError(VirtualGpuError):
    """The virtual GPU has no memory left for a block."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of device memory.

    Attributes
    ----------
    address, size_bytes
        Where it lies and how large it is.
    stream
        The stream whose later work may reuse it after it is freed.
    """

    address: int
    size_bytes: int
    stream: int


class Allocator:
    """Hands out blocks and counts them.

    Attributes
    ----------
    allocated_bytes, peak_bytes, reserved_bytes
        In use now, at most so far, and held from the device, in bytes.
    n_device_allocations
        How often the device itself was asked, which is what costs time.
    """

    def __init__(self, capacity_bytes: int) -> None:
        self.capacity_bytes = capacity_bytes
        self.allocated_bytes = self.peak_bytes = self.reserved_bytes = 0
        self.n_device_allocations = 0
        self._free: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)
        self._next_address = _FIRST_ADDRESS

    def allocate(self, size_bytes: int, stream: int) -> Block:
        """Return a block of at least ``size_bytes`` for ``stream``.

        Raises
        ------
        OutOfDeviceMemoryError
            If the device's memory does not suffice, even after freed blocks were given back.
        """
        rounded = self._round(size_bytes)
        kept = self._free[stream, rounded]
        block = kept.pop() if kept else self._cut(rounded, stream)
        self.allocated_bytes += rounded
        self.peak_bytes = max(self.peak_bytes, self.allocated_bytes)
        return block

    def release(self, block: Block) -> None:
        """Keep ``block`` for the next request of its size on its stream."""
        self.allocated_bytes -= block.size_bytes
        self._free[block.stream, block.size_bytes].append(block)

    def empty_cache(self) -> None:
        """Give the large blocks that are not in use back to the device."""
        for (_, size_bytes), blocks in self._free.items():
            if size_bytes >= _SEGMENT_BYTES:
                self.reserved_bytes -= size_bytes * len(blocks)
                blocks.clear()

    def _round(self, size_bytes: int) -> int:
        unit = _BLOCK_BYTES if size_bytes <= _SMALL_BYTES else _SEGMENT_BYTES
        return max(1, -(-size_bytes // unit)) * unit

    def _cut(self, size_bytes: int, stream: int) -> Block:
        if size_bytes >= _SEGMENT_BYTES:
            return Block(self._reserve(size_bytes), size_bytes, stream)
        start = self._reserve(_SEGMENT_BYTES)
        blocks = [
            Block(start + offset, size_bytes, stream)
            for offset in range(0, _SEGMENT_BYTES - size_bytes + 1, size_bytes)
        ]
        self._free[stream, size_bytes].extend(reversed(blocks[1:]))
        return blocks[0]

    def _reserve(self, size_bytes: int) -> int:
        if self.reserved_bytes + size_bytes > self.capacity_bytes:
            self.empty_cache()
        if self.reserved_bytes + size_bytes > self.capacity_bytes:
            raise OutOfDeviceMemoryError(
                f"{size_bytes} bytes do not fit: {self.reserved_bytes} of {self.capacity_bytes} "
                "bytes are in use; delete tensors or choose smaller sizes"
            )
        self.reserved_bytes += size_bytes
        self.n_device_allocations += 1
        address, self._next_address = self._next_address, self._next_address + size_bytes
        return address
