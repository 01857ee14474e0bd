"""The simulated machine: one host, its GPUs and their memory."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from gpulab.core.errors import VirtualGpuError
from gpulab.gpus import GpuSpec
from gpulab.happens_before import NOWHERE, Checker, MemoryAccess, Snapshot, user_site
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._graphs import Capture, Graph, report_launch
from gpulab.virtual.simulator._host import Host
from gpulab.virtual.simulator._recorded_host import MODEL_HOST, RecordedHost
from gpulab.virtual.simulator._task import Kind, SimulatedStream, StreamTask
from gpulab.virtual.simulator.memory import (
    Allocator,
    DeviceHooks,
    MemoryBlock,
    PinnedAllocator,
    PinnedBlock,
)
from gpulab.virtual.simulator.values import PendingValues

# PyTorch has a pool of 32 side streams for each device. The 33rd stream that a program asks for is
# the first one again.
_N_POOL_STREAMS = 32

# Measured on an H200: cudaMalloc takes 30 µs and 0.035 µs for each MiB (1 ms more the first time).
# cudaFree takes 30 µs and 0.3 µs for each MiB, after it has waited for all work.
_MALLOC_NS, _MALLOC_NS_PER_MIB = 30_000, 35
_FREE_NS, _FREE_NS_PER_MIB = 30_000, 300
# Pinning host memory took 1 ms for each 3.2 MB, but 0.01 ms up to 1 MiB, because the driver has
# pinned a larger piece before. A block that PyTorch has cached takes _REUSE_NS instead.
_PINNING_NS, _PINNING_BYTES_PER_S, _PINNED_BEFORE_BYTES = 10_000, 3.2e9, 1 << 20
_REUSE_NS = 1_000
_NS = 1e9


@dataclass(frozen=True, slots=True)
class ValueLimits:
    """Which tensors have values; none of the limits depends on the speed of the host.

    Attributes
    ----------
    max_elements
        The most elements of one tensor.
    budget_s
        The most real time for the values of one operator, estimated from its FLOPs and bytes.
    max_bytes
        The most bytes of all tensors with values together.
    """

    max_elements: int
    budget_s: float
    max_bytes: int


class SimulatedGpu:
    """One GPU of the machine."""

    def __init__(self, device: SimulatedDevice, machine: "Machine") -> None:
        self.index = device.index
        self.spec = device.spec
        self.device = device
        # The allocator knows streams by their numbers and nothing of the machine.
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
        # Made when it is first asked for: a wait for the device looks at every stream that exists.
        if slot == len(self._pool):
            self._pool.append(self.device.add_stream())
        return self._pool[slot]


class Machine:
    """Virtual GPUs with their host; a machine continues from one context to the next.

    Attributes
    ----------
    limits
        Which tensors have values.
    capture
        The capture of a CUDA graph in progress, or None.
    graph_class
        The class ``torch.cuda.graph`` of its contexts; None until the first one.
    values
        The values that are not computed yet.
    value_bytes
        The size of all tensors that have values.
    has_warned
        Whether the program was warned that it has read a missing value.
    hazards
        The race detector, or None.
    cuda_error
        The class for errors that CUDA itself reports.
    blocks_launches
        Whether each launch of a kernel or a graph waits until its work is done.
    sync_debug_mode
        What a hidden synchronization does besides waiting: 0 nothing, 1 warn, 2 raise.
    """

    def __init__(  # noqa: PLR0913 # all but the first two by their names
        self,
        spec: GpuSpec,
        limits: ValueLimits,
        *,
        first_use: bool,
        count: int = 1,
        recorded: RecordedHost = MODEL_HOST,
        cuda_error: type[Exception] = VirtualGpuError,
    ) -> None:
        self.spec = spec
        self.limits = limits
        self.cuda_error = cuda_error
        event_queue = EventQueue()
        devices = [
            SimulatedDevice(spec, event_queue=event_queue, index=index) for index in range(count)
        ]
        self.host = Host(devices, first_use=first_use, recorded=recorded)
        self.gpus = tuple(SimulatedGpu(device, self) for device in devices)
        # Pinned memory belongs to the host, so all GPUs of the machine share one allocator.
        self.pinned = PinnedAllocator(lambda stream: stream.last, self.is_over)
        self.values = PendingValues(event_queue)
        event_queue.before_going_on(self.values.do_more)
        self.value_bytes = 0
        self.has_warned = False
        self.current = 0
        self.capture: Capture | None = None
        self.graph_class: type | None = None
        self.hazards: Checker | None = None
        self.blocks_launches = False
        self.sync_debug_mode = 0

    @property
    def gpu(self) -> SimulatedGpu:
        """The current GPU."""
        return self.gpus[self.current]

    @property
    def lists_accesses(self) -> bool:
        """Whether launches name the memory that they use, which costs each some microseconds.

        The race detector needs it. So does a graph, because the detector may start before its
        next replay.
        """
        return self.hazards is not None or self.capture is not None

    def allocate(self, gpu: SimulatedGpu, size_bytes: int) -> MemoryBlock:
        """Return a block of ``gpu``'s memory for its current stream, and charge the host."""
        self.host.start_context()
        return gpu.memory.allocate(size_bytes, gpu.stream.number)

    def device_malloc(self, gpu: SimulatedGpu, size_bytes: int) -> None:
        """Charge a cudaMalloc; during a capture only captured streams may call it."""
        if self.capture is not None and not self.capture.has(gpu.stream):
            self.require_no_capture()
        self.host.load("malloc")
        self.host.spend(_MALLOC_NS + _MALLOC_NS_PER_MIB * (size_bytes >> 20))

    def device_free(self, gpu: SimulatedGpu, size_bytes: int) -> None:
        """Charge a cudaFree, which waits for the device."""
        # During a capture a memory pool may be dropped, and then without a wait.
        if self.capture is None:
            self.wait_for_gpu(gpu)
        self.host.spend(_FREE_NS + _FREE_NS_PER_MIB * (size_bytes >> 20))

    def pin(self, size_bytes: int) -> PinnedBlock:
        """Return a block of pinned host memory, and charge the host: little for a cached block."""
        self.host.spend(_REUSE_NS)
        return self.pinned.allocate(size_bytes, self.host_alloc)

    def empty_pinned(self) -> None:
        """Give unused pinned memory back to the system, and charge the host."""
        self.pinned.empty_cache(self.host_free)

    def host_alloc(self, size_bytes: int) -> None:
        """Charge a cudaHostAlloc."""
        duration_ns = _PINNING_NS
        if size_bytes > _PINNED_BEFORE_BYTES:
            duration_ns += round(size_bytes / _PINNING_BYTES_PER_S * _NS)
        self.host.spend(duration_ns)

    def host_free(self, size_bytes: int) -> None:
        """Charge a cudaFreeHost, which was not measured, as a cudaHostAlloc."""
        self.host_alloc(size_bytes)

    def launch(
        self, task: StreamTask, host_ns: int, accesses: Sequence[MemoryAccess] = ()
    ) -> StreamTask:
        """Launch ``task``, or capture it if its stream is being captured.

        ``host_ns`` is the host's time for the call, ``accesses`` what the race detector sees.
        """
        # The walk up the stack takes real time, so it is made only for the race detector.
        site = user_site() if accesses and self.lists_accesses else NOWHERE
        if self.capture is not None and self.capture.includes(task):
            self.host.spend(host_ns)
            if task.stream.number == 0 and not self.capture.has(task.stream):
                # The default stream is CUDA's legacy stream, which cannot join a capture.
                self.fail_capture(
                    "operation would make the legacy stream depend on a capturing blocking stream"
                )
            if self.capture.depends_on_outside(task):
                self.fail_capture("dependency created on uncaptured work in another stream")
            self.capture.add(task, accesses, site)
            return task
        # Before the report to the checker: Ctrl-C may end the wait for the launch queue, and then
        # nothing was launched.
        launched = self.host.launch(task, host_ns)
        if self.hazards is not None and accesses:
            self.hazards.launch(task.stream.key, task.name, accesses, site)
        if self.blocks_launches and task.kind is Kind.KERNEL:
            self._wait_for_launch(task.stream)
        return launched

    def mark(
        self, stream: SimulatedStream, host_ns: int, waits_for: tuple[StreamTask, ...] = ()
    ) -> StreamTask:
        """Put a mark into ``stream``: the record of an event, or a wait for ``waits_for``."""
        task = StreamTask(Kind.MARK, stream, name="event", waits_for=waits_for)
        return self.launch(task, host_ns)

    def order(self, first: SimulatedStream, second: SimulatedStream, host_ns: int) -> None:
        """Make later work of ``second`` wait for the present work of ``first``."""
        if first is second:
            return
        # As an event would do it: recorded on the one stream, awaited on the other.
        task = self.mark(first, host_ns)
        self.mark(second, host_ns, (task,))
        if self.hazards is not None:
            self.hazards.stream_wait(second.key, self.hazards.record(first.key))

    def replay(self, graph: Graph, stream: SimulatedStream) -> None:
        """Launch a graph on ``stream``."""
        launched = graph.launch(self.host, stream)
        if self.hazards is not None:
            report_launch(self.hazards, stream, launched)
        if self.blocks_launches:
            self._wait_for_launch(stream)

    def _wait_for_launch(self, stream: SimulatedStream) -> None:
        """Wait for what was just launched on ``stream``, as ``CUDA_LAUNCH_BLOCKING=1`` asks."""
        self.host.wait_for_launch(stream)
        if self.hazards is not None:
            self.hazards.host_wait_stream(stream.key)

    def wait(self, task: StreamTask | None, snapshot: Snapshot | None = None) -> None:
        """Block the host until ``task`` is done.

        ``snapshot`` is the work before the event, for the race detector.
        """
        self.require_no_capture()
        self.host.wait(task)
        if self.hazards is not None:
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
        """Return whether ``task`` is done; the question takes host time."""
        self.require_no_capture()
        return self.host.is_done(task)

    def note_hidden_wait(self) -> None:
        """Warn of a call that waits for the device, or raise, as ``sync_debug_mode`` says.

        ``torch.cuda.set_sync_debug_mode()`` sets the mode.
        """
        message = "called a synchronizing CUDA operation"  # PyTorch's text
        if self.sync_debug_mode == 1:
            warnings.warn(message, stacklevel=2)
        elif self.sync_debug_mode:
            raise RuntimeError(message)

    def require_no_capture(self) -> None:
        """Raise CUDA's error if a capture is in progress; the capture has failed then."""
        if self.capture is not None:
            self.fail_capture("operation not permitted when stream is capturing")

    def fail_capture(self, reason: str) -> None:
        """Raise CUDA's error, and mark the capture in progress as failed."""
        # The mark remains if the program catches the error: as on CUDA, such a capture is lost.
        if self.capture is not None:
            self.capture.failure = reason
        raise self.cuda_error(f"CUDA error: {reason}")

    def unfinished(self, stream: SimulatedStream) -> StreamTask | None:
        """Return the last task of a stream, or None if the stream is idle."""
        return None if self.is_over(stream.last) else stream.last

    def is_over(self, task: Any) -> bool:
        """Return whether ``task`` is done at the host's time; the question takes no host time."""
        self.host.catch_up()
        return task is None or bool(task.is_done)
