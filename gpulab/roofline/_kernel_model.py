"""The refined prediction: run a workload on a private virtual GPU, and add up its kernels' times.

This module has no model of its own. The virtual GPU says which kernels a call launches, what its
cache serves, and how long each kernel takes.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import RLock

import torch

from gpulab.core.errors import InvalidOptionError
from gpulab.core.torch_private import allows_tf32
from gpulab.device import outside
from gpulab.gpus import GpuSpec
from gpulab.virtual import (
    Gaps,
    KernelWork,
    Kind,
    L2Cache,
    ModelledKernel,
    StreamTask,
    Traffic,
    VirtualGpu,
    duration_ns,
    virtual_gpu,
)
from gpulab.workloads import workload

_NS = 1e-9
_N_TRACES_KEPT = 4_000
_THIN = 1_000_000  # bytes are divided by this to ask what the kernel takes without them
_N_WARM = 2  # after this many calls the contents of the cache no longer change

_tracing = RLock()  # only one thread at a time can enter the private virtual GPU


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """The time of a call in parts, in seconds, and the part that limits it.

    It lasts from the start of the first kernel to the end of the last. In each kernel, arithmetic
    and moving bytes overlap, so only the longer counts. ``launch_s`` is the rest: floors,
    latencies, and the pauses between kernels.
    """

    duration_s: float
    compute_s: float
    memory_s: float
    launch_s: float
    bound: str


def predict_by_kernels(
    name: str, size: int, dtype: str, spec: GpuSpec, cache: str
) -> TimeBreakdown:
    """Return the time of one call by the virtual GPU's model, at the burst clock.

    If inputs and result do not fit into the GPU's memory, this raises `InvalidOptionError`.
    """
    # Read here, outside the cached function, which must not answer for another setting.
    switches = (allows_tf32("matmul"), allows_tf32("conv"))
    kernels = _kernels_of(name, size, dtype, spec.name, switches)
    return _add_up([_Kernel.of(item, spec) for item in _cache_traffic(kernels, spec, cache)])


@lru_cache(maxsize=_N_TRACES_KEPT)
def _kernels_of(
    name: str, size: int, dtype: str, gpu: str, _switches: tuple[bool, bool]
) -> tuple[ModelledKernel, ...]:
    """Return the kernels of one call of a workload.

    The switches for TF32 are in the key of the cache, because they change which kernels run.
    """
    with private_gpu_entered(gpu) as virtual:
        try:
            work = workload(name).make(size, dtype)
            work()  # the first call of an optimizer also creates its state
            return _record_launches(virtual, work)
        except torch.OutOfMemoryError:
            raise InvalidOptionError(
                f"{name} of size={size} in {dtype} does not fit into the "
                f"{virtual.spec.memory_bytes / 1e9:.0f} GB of the {virtual.spec.driver_name}; "
                "take a smaller size"
            ) from None


@contextmanager
def private_gpu_entered(gpu: str) -> Iterator[VirtualGpu]:
    """Enter the virtual GPU that predicts, and yield it; around many predictions it saves time."""
    with _tracing:
        virtual = _private_gpu(gpu)
        if virtual.entered:
            yield virtual
            return
        # Another virtual GPU may be in use, and torch.cuda can use only one at a time.
        with outside(), virtual:
            yield virtual


@lru_cache(maxsize=4)
def _private_gpu(gpu: str) -> VirtualGpu:
    """Return a virtual GPU for this module alone; it computes no values, so size costs nothing."""
    return virtual_gpu(gpu, first_use=False, max_value_elements=0)


def _record_launches(
    virtual: VirtualGpu, work: Callable[[], object]
) -> tuple[ModelledKernel, ...]:
    """Return the kernels that ``work`` launches, recorded at their launch."""
    machine = virtual.machine
    kernels: list[ModelledKernel] = []

    def note(task: StreamTask, _host_ns: int, _touches: object = ()) -> StreamTask:
        if task.kind is Kind.KERNEL and isinstance(task.demand, ModelledKernel):
            kernels.append(task.demand)
        return task

    # Replaced on this object only, so that other virtual GPUs launch as usual.
    vars(machine)["launch"] = note
    try:
        work()
    finally:
        del vars(machine)["launch"]
    return tuple(kernels)


def _cache_traffic(
    kernels: Iterable[ModelledKernel], spec: GpuSpec, cache: str
) -> list[tuple[KernelWork, Traffic]]:
    """Return each kernel with the bytes that come from the cache and from memory."""
    l2 = L2Cache(spec.l2_bytes)  # empty and clean, as a read flush leaves it
    for _ in range(_N_WARM if cache == "hot" else 0):
        for kernel in kernels:
            l2.serve(kernel.accesses)
    return [(kernel.work, l2.serve(kernel.accesses)) for kernel in kernels]


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Durations of one kernel in nanoseconds: in full, and without some of its parts."""

    whole_ns: int
    without_memory_ns: int
    without_arithmetic_ns: int
    with_neither_ns: int
    is_from_cache: bool

    @classmethod
    def of(cls, item: tuple[KernelWork, Traffic], spec: GpuSpec) -> "_Kernel":
        """Return the model's durations if bytes, or arithmetic, or both took no time."""
        work, traffic = item
        # The model caches costs by the identity of the work, so copy it only if necessary.
        idle = replace(work, scratch_bytes=0) if work.scratch_bytes else work
        # The ratio of hits to misses stays, because the model's correction depends on it.
        thin = Traffic(*(-(-n // _THIN) for n in (traffic.hit_bytes, traffic.miss_bytes)))
        # stretch=0 removes the time of the arithmetic and keeps the schedule of the kernel.
        return cls(
            duration_ns(work, traffic, spec),
            duration_ns(idle, thin, spec),
            duration_ns(work, traffic, spec, stretch=0.0),
            duration_ns(idle, thin, spec, stretch=0.0),
            traffic.hit_bytes > traffic.miss_bytes + work.scratch_bytes,
        )

    @property
    def compute_ns(self) -> int:
        return max(0, self.without_memory_ns - self.with_neither_ns)

    @property
    def memory_ns(self) -> int:
        return max(0, self.without_arithmetic_ns - self.with_neither_ns)

    @property
    def limit(self) -> str:
        """The part that takes the time beyond the floor."""
        if self.compute_ns >= self.memory_ns:
            return "compute"
        return "L2" if self.is_from_cache else "memory"


def _add_up(kernels: list[_Kernel]) -> TimeBreakdown:
    """Return the time of kernels that run one after another."""
    # Kernels of one call are enqueued in time, so the pauses are the device's own.
    pauses_ns = max(0, len(kernels) - 1) * Gaps().work_to_work_ns
    shares_ns = dict.fromkeys(("launch", "compute", "memory", "L2"), 0)
    shares_ns["launch"] = pauses_ns + sum(item.with_neither_ns for item in kernels)
    # Each kernel's time beyond the floor goes to the part that limits it; the other overlaps.
    for item in kernels:
        shares_ns[item.limit] += item.whole_ns - item.with_neither_ns
    return TimeBreakdown(
        (pauses_ns + sum(item.whole_ns for item in kernels)) * _NS,
        sum(item.compute_ns for item in kernels) * _NS,
        sum(item.memory_ns for item in kernels) * _NS,
        shares_ns["launch"] * _NS,
        max(shares_ns, key=lambda name: shares_ns[name]),
    )
