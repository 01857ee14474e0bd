"""Simulate PyTorch's caching allocator: blocks of device memory, pools, and their statistics."""

from gpulab.virtual.simulator.memory._allocator import Allocator
from gpulab.virtual.simulator.memory._blocks import MemoryBlock, PoolId, Segment
from gpulab.virtual.simulator.memory._out_of_memory import OutOfDeviceMemoryError
from gpulab.virtual.simulator.memory._pending_frees import DeviceHooks

__all__ = [
    "Allocator",
    "DeviceHooks",
    "MemoryBlock",
    "OutOfDeviceMemoryError",
    "PoolId",
    "Segment",
]
