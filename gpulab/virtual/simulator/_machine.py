"""Join host, GPUs and memory to the simulated machine, and know which machine is entered now."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any, cast

from gpulab.errors import NotModelledError, VirtualGpuError
from gpulab.gpus import GpuSpec
from gpulab.happens_before import Checker, MemoryAccess, Snapshot, user_site
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._graphs import Capture, Graph
from gpulab.virtual.simulator._host import Host
from gpulab.virtual.simulator._task import Kind, SimulatedStream, StreamTask
from gpulab.virtual.simulator._unrolled import Unrolled
from gpulab.virtual.simulator.memory import (
    Allocator,
    DeviceHooks,
    MemoryBlock,
    PinnedAllocator,
    PinnedBlock,
)

# PyTorch hands out side streams from a pool of 32, round and round.
_N_POOL_STREAMS = 32

# What the allocator asks of the device, as seen on an H200: cudaMalloc takes 30 µs and 0.035 µs a
# MiB (1 ms more the first time), cudaFree 30 µs and 0.3 µs a MiB after it has waited for all work.
_MALLOC_NS, _MALLOC_NS_PER_MIB = 30_000, 35
_FREE_NS, _FREE_NS_PER_MIB = 30_000, 300
# Pinning host memory took 0.1 ms and 1 ms for each 2.8 MB; a block that is used again, _REUSE_NS.
_PINNING_NS, _PINNING_BYTES_PER_S = 100_000, 2.8e9
_REUSE_NS = 2_000
_NS = 1e9


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """What carries values; none of it depends on how fast or how busy the host is.

    Attributes
    ----------
    max_elements
        The largest tensor.
    budget_s
        What the host may take for one operator, by an estimate from FLOPs and bytes.
    max_bytes
        All tensors with values together.
    """

    max_elements: int
    budget_s: float
    max_bytes: int


class SimulatedGpu:
    """One GPU of the machine.

    Attributes
    ----------
    index
        Its number, as in ``cuda:0``.
    device
        Its streams and engines.
    memory
        Its memory, as PyTorch hands it out.
    stream
        Its current stream.
    """

    def __init__(self, device: SimulatedDevice, machine: "Machine") -> None:
        self.index = device.index
        self.spec = device.spec
        self.device = device
        hooks = DeviceHooks(
            mark=lambda number: machine.unfinished(self.device.streams[number]),
            is_done=machine.is_over,
            wait=lambda task: machine.host.wait(cast("StreamTask", task)),
            on_malloc=lambda size_bytes: machine.device_malloc(self, size_bytes),
            on_free=lambda size_bytes: machine.device_free(self, size_bytes),
        )
        self.memory = Allocator(device.spec.memory_bytes, device_index=device.index, hooks=hooks)
        self.stream = self.device.streams[0]
        self._pool: list[SimulatedStream] = []
        self._n_handed_out = 0

    def next_stream(self) -> SimulatedStream:
        """Return the next side stream of the pool."""
        slot = self._n_handed_out % _N_POOL_STREAMS
        self._n_handed_out += 1
        if slot == len(self._pool):
            self._pool.append(self.device.add_stream())
        return self._pool[slot]


class Machine:
    """Virtual GPUs with the host that drives them; it lives on between contexts.

    Attributes
    ----------
    gpus
        The GPUs, by index.
    current
        Index of the current one.
    capture
        What is being captured, or None.
    pinned
        The host memory that copies read and write while the host goes on.
    value_bytes
        The size of all tensors that carry values.
    has_warned
        Whether the program was told that a value which it read is missing.
    hazards
        The checker that watches, or None.
    follow_backward
        Called before each operator of a backward pass, if there are such layers.
    cuda_error
        The class of errors that CUDA itself reports.
    sync_debug_mode
        What a hidden synchronization does besides waiting: 0 nothing, 1 warn, 2 raise.
    """

    def __init__(
        self,
        spec: GpuSpec,
        limits: ValueLimits,
        *,
        first_use: bool,
        count: int = 1,
        cuda_error: type[Exception] = VirtualGpuError,
    ) -> None:
        self.spec = spec
        self.limits = limits
        self.cuda_error = cuda_error
        event_queue = EventQueue()
        devices = [
            SimulatedDevice(spec, event_queue=event_queue, index=index) for index in range(count)
        ]
        self.host = Host(devices, first_use=first_use)
        self.gpus = tuple(SimulatedGpu(device, self) for device in devices)
        self.pinned = PinnedAllocator(lambda stream: stream.last, self.is_over)
        self.value_bytes = 0
        self.has_warned = False
        self.current = 0
        self.capture: Capture | None = None
        self.hazards: Checker | None = None
        self._unrolled: Unrolled | None = None
        self.follow_backward: Callable[[], None] | None = None
        self.sync_debug_mode = 0

    @property
    def gpu(self) -> SimulatedGpu:
        """The current GPU."""
        return self.gpus[self.current]

    @property
    def unrolled(self) -> Unrolled | None:
        """What takes the operators that are launched, in the place of the device."""
        return self._unrolled

    @unrolled.setter
    def unrolled(self, unrolled: Unrolled | None) -> None:
        """Let somebody else take the operators, or the device again."""
        self._unrolled = unrolled
        self.host.is_free = unrolled is not None

    def allocate(self, gpu: SimulatedGpu, size_bytes: int) -> MemoryBlock:
        """Take memory of ``gpu`` for its current stream, at the host's cost."""
        self.host.start_context()
        return gpu.memory.allocate(size_bytes, gpu.stream.number)

    def device_malloc(self, gpu: SimulatedGpu, size_bytes: int) -> None:
        """Take the time of a cudaMalloc, which only captured streams may do during a capture."""
        if self.capture is not None and not self.capture.has(gpu.stream):
            self.require_no_capture()
        self.host.load("malloc")
        self.host.spend(_MALLOC_NS + _MALLOC_NS_PER_MIB * (size_bytes >> 20))

    def device_free(self, gpu: SimulatedGpu, size_bytes: int) -> None:
        """Take the time of a cudaFree, which waits for the device."""
        if self.capture is None:  # a pool may be dropped during a capture
            self.wait_for_gpu(gpu)
        self.host.spend(_FREE_NS + _FREE_NS_PER_MIB * (size_bytes >> 20))

    def pin(self, size_bytes: int) -> PinnedBlock:
        """Take pinned host memory, at the host's cost: little, if a block can be used again."""
        self.host.spend(_REUSE_NS)
        return self.pinned.allocate(size_bytes, self.pin_anew)

    def empty_pinned(self) -> None:
        """Give pinned memory that nothing uses back to the system, at the host's cost."""
        self.pinned.empty_cache(self.pin_anew)

    def pin_anew(self, size_bytes: int) -> int:
        """Take the time of a cudaHostAlloc, and return it in nanoseconds."""
        duration_ns = _PINNING_NS + round(size_bytes / _PINNING_BYTES_PER_S * _NS)
        self.host.spend(duration_ns)
        return duration_ns

    def launch(
        self, task: StreamTask, host_ns: int, accesses: Sequence[MemoryAccess] = ()
    ) -> StreamTask:
        """Launch ``task``, or write it down if its stream is captured."""
        if self._unrolled is not None and task.kind is Kind.KERNEL:
            self._unrolled.add(task, accesses)
            return task
        site = user_site() if self.hazards is not None and accesses else ("", 0)
        if self.capture is not None and self.capture.includes(task):
            self.host.spend(host_ns)
            if self.capture.depends_on_outside(task):
                self.fail_capture("dependency created on uncaptured work in another stream")
            self.capture.add(task, accesses, site)
            return task
        launched = self.host.launch(task, host_ns)  # may wait for room, and be left there
        if self.hazards is not None and accesses:
            self.hazards.launch(task.stream.key, task.name, accesses, site)
        return launched

    def mark(
        self, stream: SimulatedStream, host_ns: int, waits_for: tuple[StreamTask, ...] = ()
    ) -> StreamTask:
        """Put a mark into ``stream``: an event's record, or its wait for ``waits_for``."""
        task = StreamTask(Kind.MARK, stream, name="event", waits_for=waits_for)
        if waits_for:
            task.site = user_site()
        return self.launch(task, host_ns)

    def order(self, first: SimulatedStream, second: SimulatedStream, host_ns: int) -> None:
        """Let later work of ``second`` wait for what ``first`` has now."""
        if first is second:
            return
        task = self.mark(first, host_ns)
        self.mark(second, host_ns, (task,))
        if self.hazards is not None:
            self.hazards.stream_wait(second.key, self.hazards.record(first.key))

    def replay(self, graph: Graph, stream: SimulatedStream) -> None:
        """Launch a graph on ``stream``."""
        checker = self.hazards
        launched = graph.launch(self.host, stream)
        if checker is None:
            return
        start = checker.record(stream.key)
        after: dict[StreamTask, Snapshot] = {}
        for node, task in launched:
            checker.stream_wait(task.stream.key, start)
            for other in task.waits_for:
                checker.stream_wait(task.stream.key, after.get(other))
            checker.launch(task.stream.key, task.name, node.accesses, node.site)
            after[task] = checker.record(task.stream.key)
        for snapshot in after.values():
            checker.stream_wait(stream.key, snapshot)

    def wait(self, task: StreamTask | None, snapshot: Snapshot | None = None) -> None:
        """Block the host until ``task`` is done; ``snapshot`` is what an event has seen."""
        self.require_no_capture()
        self.host.wait(task)
        if self.hazards is not None and snapshot is not None:
            self.hazards.host_wait(snapshot)

    def wait_for_stream(self, stream: SimulatedStream) -> None:
        """Block the host until everything submitted to ``stream`` is done."""
        self.require_no_capture()
        self.host.wait_for_stream(stream)
        if self.hazards is not None:
            self.hazards.host_wait_stream(stream.key)

    def wait_for_gpu(self, gpu: SimulatedGpu) -> None:
        """Block the host until everything submitted to ``gpu`` is done."""
        self.require_no_capture()
        self.host.wait_for_device(gpu.device)
        if self.hazards is not None:
            self.hazards.host_wait_device(gpu.index)

    def query(self, task: StreamTask | None) -> bool:
        """Tell whether ``task`` is done, at the cost of asking."""
        self.require_no_capture()
        return self.host.is_done(task)

    def note_hidden_wait(self) -> None:
        """Warn of a call that waits for the device, or refuse it, as the program asked."""
        message = "called a synchronizing CUDA operation"
        if self.sync_debug_mode == 1:
            warnings.warn(message, stacklevel=2)
        elif self.sync_debug_mode:
            raise RuntimeError(message)

    def require_no_capture(self) -> None:
        """Refuse what would wait for the device while it is captured, and spoil the capture."""
        if self.capture is not None:
            self.fail_capture("operation not permitted when stream is capturing")

    def fail_capture(self, reason: str) -> None:
        """Raise CUDA's error; what is captured from here on is of no use."""
        if self.capture is not None:
            self.capture.failure = reason
        raise self.cuda_error(f"CUDA error: {reason}")

    def unfinished(self, stream: SimulatedStream) -> StreamTask | None:
        """Return the youngest task of a stream, or None if the stream is idle by now."""
        return None if self.is_over(stream.last) else stream.last

    def is_over(self, task: Any) -> bool:
        """Tell whether ``task`` is done by the host's time; asking costs nothing."""
        self.host.catch_up()
        return task is None or bool(task.is_done)


_entered: list[tuple[Machine, int]] = []  # with the thread that entered it
_lost: list[bool] = []  # filled in a forked process, which has no device


def is_entered() -> bool:
    """Tell whether a machine's context is entered."""
    return bool(_entered)


def is_owner() -> bool:
    """Tell whether the calling thread has entered the machine's context, in this very process."""
    return bool(_entered) and not _lost and get_ident() == _entered[-1][1]


def active() -> Machine:
    """Return the machine whose context is entered.

    Raises
    ------
    VirtualGpuError
        If none is, or if another thread has entered it.
    """
    if _lost:
        raise forked_error()
    if not _entered:
        raise VirtualGpuError(
            "no virtual GPU is active, but a tensor, stream, event or graph of one is used; "
            "work with it inside `with gpu:` or after gpulab.use(...)"
        )
    machine, owner = _entered[-1]
    if get_ident() != owner:
        raise NotModelledError(
            "the virtual GPU has no model of device work from a second thread; do it on the "
            "thread that entered the virtual GPU, or use a CUDA GPU"
        )
    return machine


def forked_error() -> RuntimeError:
    """Return what PyTorch says when a forked process uses CUDA."""
    return RuntimeError(
        "Cannot re-initialize CUDA in forked subprocess. "
        "To use CUDA with multiprocessing, you must use the 'spawn' start method"
    )


def disown() -> None:
    """Take the device from this process, which was forked."""
    _lost.append(True)


def enter(machine: Machine) -> None:
    """Make ``machine`` the active one, on this thread."""
    _entered.append((machine, get_ident()))


def leave(machine: Machine) -> None:
    """Undo :func:`enter`, if it was done."""
    _entered[:] = [entry for entry in _entered if entry[0] is not machine]
