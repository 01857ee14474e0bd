"""Simulate PyTorch's caching allocator: blocks of device memory, pools, and their statistics.

It splits, reuses and counts blocks by PyTorch's rules, so a program sees the same figures of
``torch.cuda.memory_stats`` as on hardware.
"""

from gpulab.virtual.simulator.memory._allocator import Allocator
from gpulab.virtual.simulator.memory._blocks import MemoryBlock
from gpulab.virtual.simulator.memory._out_of_memory import OutOfDeviceMemoryError
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks
from gpulab.virtual.simulator.memory._pinned import PinnedAllocator, PinnedBlock

__all__ = [
    "Allocator",
    "DeviceHooks",
    "MemoryBlock",
    "OutOfDeviceMemoryError",
    "PinnedAllocator",
    "PinnedBlock",
]
