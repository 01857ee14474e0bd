"""``torch.cuda.memory_stats`` and related functions, answered by the simulated allocator."""

from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.torch_private import C, device_index
from gpulab.virtual.simulator import Machine
from gpulab.virtual.simulator.memory import Allocator

# Before torch 2.13, torch.cuda.memory_stats() could not show statistics by pool. The comparison is
# by version and not by text, because torch.__version__ is a TorchVersion.
_KNOWS_POOLS = torch.__version__ >= "2.13"


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for functions about memory, by module."""
    info = _mem_get_info(machine)
    return [
        (C, {**_figures(machine), **_limits(machine)}),
        (torch.cuda.memory, {"is_initialized": lambda: True, "mem_get_info": info}),
        (torch.cuda, {"mem_get_info": info}),
    ]


def _of(machine: Machine, index: int) -> Allocator:
    if not 0 <= index < len(machine.gpus):
        raise RuntimeError(f"Allocator not initialized for device {index}: did you call init?")
    return machine.gpus[index].memory


def _figures(machine: Machine) -> dict[str, Any]:
    def statistics(index: int) -> dict[str, Any]:
        nested = _of(machine, index).usage.nested()
        if not _KNOWS_POOLS:
            del nested["reserved_bytes_by_private_pools"]
        return nested

    def reset_peak(index: int) -> None:
        _of(machine, index).usage.reset_peak()

    def reset_accumulated(index: int) -> None:
        _of(machine, index).usage.reset_accumulated()

    return {
        "_cuda_memoryStats": statistics,
        "_cuda_resetPeakMemoryStats": reset_peak,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getDeviceStats": statistics,
        "_accelerator_resetPeakStats": reset_peak,
        "_accelerator_resetAccumulatedStats": reset_accumulated,
    }


def _limits(machine: Machine) -> dict[str, Any]:
    def empty_cache() -> None:
        for gpu in machine.gpus:
            gpu.memory.empty_cache()

    def set_fraction(fraction: float, index: int) -> None:
        _of(machine, index).set_fraction(fraction)

    def info(index: int) -> tuple[int, int]:
        memory = _of(machine, index)
        return memory.free_bytes, memory.capacity_bytes

    return {
        "_cuda_emptyCache": empty_cache,
        "_accelerator_emptyCache": empty_cache,
        "_host_emptyCache": machine.empty_pinned,
        "_accelerator_emptyHostCache": machine.empty_pinned,
        "_accelerator_getMemoryInfo": info,
        "_cuda_setMemoryFraction": set_fraction,
        "_cuda_getMemoryFraction": lambda index: _of(machine, index).fraction,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
    }


def _mem_get_info(machine: Machine) -> Callable[..., tuple[int, int]]:
    def mem_get_info(device: Any = None) -> tuple[int, int]:
        index = device_index(device, optional=True)
        memory = _of(machine, index)
        return memory.free_bytes, memory.capacity_bytes

    return mem_get_info
