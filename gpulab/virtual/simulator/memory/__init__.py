"""Simulate PyTorch's caching allocator: blocks of device memory, pools, and their statistics."""

from gpulab.virtual.simulator.memory._allocator import Allocator, OutOfDeviceMemoryError
from gpulab.virtual.simulator.memory._blocks import MemoryBlock, PoolId, Segment
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks

__all__ = [
    "Allocator",
    "DeviceHooks",
    "MemoryBlock",
    "OutOfDeviceMemoryError",
    "PoolId",
    "Segment",
]
