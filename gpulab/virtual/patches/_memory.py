"""``torch.cuda.memory_stats`` and related functions, answered by the simulated allocator."""

import sys
from collections.abc import Callable
from typing import Any

import torch

from gpulab.core.torch_private import C, device_index
from gpulab.virtual.patches._cuda_graphs import new_pool
from gpulab.virtual.patches._unsupported import unsupported_error
from gpulab.virtual.simulator import Machine, active
from gpulab.virtual.simulator.memory import (
    Allocator,
    MemoryBlock,
    PoolId,
    Segment,
)

# PyTorch's id for memory that belongs to no private pool.
_NO_POOL = (0, 0)
# Names that torch.cuda.memory imported from torch._C, and that must be replaced there, too.
_IMPORTED = (
    *("_cuda_beginAllocateCurrentThreadToPool", "_cuda_beginAllocateToPool"),
    *("_cuda_endAllocateToPool", "_cuda_releasePool"),
)

# Before torch 2.13, torch.cuda.memory_stats() could not show statistics by pool. The comparison is
# by version and not by text, because torch.__version__ is a TorchVersion.
_KNOWS_POOLS = torch.__version__ >= "2.13"


class MemPool:
    """A pool of device memory for allocations inside ``torch.cuda.use_mem_pool``."""

    def __init__(self, *args: object, **options: object) -> None:
        if any(args) or any(options.values()):
            raise unsupported_error("the options of torch.cuda.MemPool", "leave them out")
        self._memory = active().gpu.memory
        self._id = new_pool()
        self._memory.pools.retain(self._id)

    @property
    def id(self) -> tuple[int, int]:
        """The id of the pool, a pair of numbers."""
        return self._id

    def use_count(self) -> int:
        """Return the number of users of the pool, including this object."""
        return self._memory.pools.use_count(self._id)

    def snapshot(self, include_traces: bool = True) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        """Return its segments and blocks, as ``torch.cuda.memory_snapshot`` does."""
        snapshot = vars(C)["_cuda_memorySnapshot"]  # the replacement below
        return snapshot((*self._id, include_traces))["segments"]

    def __del__(self, _at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # Without an id, __init__ raised an error. When Python exits, modules that this needs may
        # be gone already.
        if hasattr(self, "_id") and not _at_exit():
            self._memory.pools.release(self._id)
            self._memory.empty_cache(self._id)


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the replacements for functions about memory, by module."""
    pools = _pools(machine)
    c_layer = {**_figures(machine), **_limits(machine), **pools}
    return [
        (C, c_layer),
        (
            torch.cuda.memory,
            {
                **{name: pools[name] for name in _IMPORTED},
                "is_initialized": lambda: True,
                "mem_get_info": (info := _mem_get_info(machine)),
                "MemPool": MemPool,
            },
        ),
        (torch.cuda, {"mem_get_info": info, "MemPool": MemPool}),
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

    def statistics_of_any(index: int) -> dict[str, Any]:
        nested = statistics(index)
        # torch.accelerator does not report private pools; only torch.cuda does.
        nested.pop("reserved_bytes_by_private_pools", None)
        return nested

    def reset_peak(index: int) -> None:
        _of(machine, index).usage.reset_peak()

    def reset_accumulated(index: int) -> None:
        _of(machine, index).usage.reset_accumulated()

    def snapshot(which: tuple[Any, ...] | None = None) -> dict[str, Any]:
        pool = tuple(which[:2]) if which else _NO_POOL
        segments = [
            _segment(machine.gpus[index].memory, segment)
            for index in range(len(machine.gpus))
            for segment in machine.gpus[index].memory.segments()
        ]
        return {
            "segments": [s for s in segments if pool in (_NO_POOL, s["segment_pool_id"])],
            "device_traces": [[] for _ in machine.gpus],
            "allocator_settings": {"max_split_size": -1, "expandable_segments": False},
            "external_annotations": [],
        }

    return {
        "_cuda_memoryStats": statistics,
        "_cuda_resetPeakMemoryStats": reset_peak,
        "_cuda_resetAccumulatedMemoryStats": reset_accumulated,
        "_cuda_memorySnapshot": snapshot,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getDeviceStats": statistics_of_any,
        "_accelerator_resetPeakStats": reset_peak,
        "_accelerator_resetAccumulatedStats": reset_accumulated,
    }


def _segment(memory: Allocator, segment: Segment) -> dict[str, Any]:
    # The keys are those of torch.cuda.memory_snapshot(). Frames stay empty, as without a history.
    arena, blocks = segment.arena, segment.blocks()
    in_use = [block for block in blocks if block.is_allocated]
    active_blocks = [block for block in blocks if not block.is_free]
    return {
        "device": memory.device_index,
        "address": segment.address,
        "total_size": segment.size_bytes,
        "allocated_size": sum(block.size_bytes for block in in_use),
        "active_size": sum(block.size_bytes for block in active_blocks),
        "requested_size": sum(block.requested_bytes for block in active_blocks),
        "stream": arena.stream,
        "segment_type": "small" if arena.is_small else "large",
        "segment_pool_id": arena.pool.identity if arena.pool else _NO_POOL,
        "is_expandable": False,
        "frames": [],
        "blocks": [_block(block) for block in blocks],
    }


def _block(block: MemoryBlock) -> dict[str, Any]:
    unused = "inactive" if block.is_free else "active_pending_free"
    return {
        "address": block.address,
        "size": block.size_bytes,
        "requested_size": block.requested_bytes,
        "state": "active_allocated" if block.is_allocated else unused,
        "frames": [],
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


def _pools(machine: Machine) -> dict[str, Any]:
    def begin(index: int, pool: PoolId) -> None:
        _of(machine, index).pools.route(pool)

    def end(index: int, pool: PoolId) -> None:
        _of(machine, index).pools.unroute(pool)

    def release(index: int, pool: PoolId) -> None:
        _of(machine, index).pools.release(pool)

    return {
        "_cuda_beginAllocateCurrentThreadToPool": begin,
        "_cuda_beginAllocateToPool": begin,
        "_cuda_endAllocateToPool": end,
        "_cuda_releasePool": release,
    }
