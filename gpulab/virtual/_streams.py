"""The virtual GPU's classes for ``torch.cuda.Stream`` and ``Event``, and the current stream.

An event is a mark in a simulated stream. A backward pass runs each operator on the stream of its
forward call, so changes of the current stream are stored with autograd's sequence numbers. Streams
and events exist longer than the context that they were made in. If you use one outside of it, an
error says so.
"""

from bisect import bisect_right
from functools import cache
from typing import Any, Self
from weakref import WeakKeyDictionary

import torch

from gpulab.core.errors import NotModelledError, VirtualGpuError
from gpulab.core.torch_private import next_sequence_number
from gpulab.core.tracebacks import ends_at_the_call
from gpulab.happens_before import Snapshot, is_answer_used
from gpulab.virtual._after_exit import lasting_class
from gpulab.virtual.simulator import Machine, SimulatedGpu, SimulatedStream, StreamTask, active
from gpulab.virtual.tensors import cuda_device

CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA
# Event times on an H200 are multiples of 32 ns.
_EVENT_TICK_NS = 32
_NS_PER_MS = 1e6
# Besides the default one. PyTorch has at most 4 (max_compile_time_stream_priorities), and torch
# 2.11 offers all of them on an H200.
_N_PRIORITIES = 3
# At this number of stream changes the older half is dropped, so that a long program does not grow.
# Backward then runs older operators on the oldest stream that is left.
_N_CHANGES_KEPT = 10_000


class StreamBase:
    """The base of ``torch.cuda.Stream`` while a virtual GPU is entered.

    Attributes
    ----------
    core
        The stream of the simulated device.
    """

    core: SimulatedStream
    priority: int
    _left: list[tuple[int, SimulatedStream]]

    def __new__(  # torch's signature
        cls,
        device: Any = None,
        priority: int = 0,
        stream_id: int | None = None,
        device_index: int | None = None,
        stream_ptr: int | None = None,
        **_handles: Any,
    ) -> Any:
        """Return the next stream of the pool, or the one with the given number or handle."""
        machine = active()
        index = index_of(device, machine) if device is not None else device_index
        gpu = machine.gpu if index is None else machine.gpus[index]
        number = stream_id if stream_ptr is None else stream_ptr
        stream: Any = object.__new__(lasting_class(cls, StreamBase, _CHECKS[StreamBase]))
        stream._left = []  # noqa: SLF001 # its own
        # CUDA clamps a priority to its range. The simulation runs all priorities alike.
        stream.priority = max(-_N_PRIORITIES, min(0, priority))
        stream.core = _new_stream(gpu) if number is None else _known_stream(gpu, number)
        return stream

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the lowest and the highest priority; a lower number is a higher priority."""
        return 0, -_N_PRIORITIES

    device_type = CUDA_DEVICE_TYPE
    cuda_stream = property(lambda self: self.core.number)
    native_handle = property(lambda self: self.core.number)
    device_index = property(lambda self: self.core.device.index)
    device = property(lambda self: cuda_device(self.core.device.index))

    @property
    def stream_id(self) -> int:
        """The number that PyTorch uses when it makes the stream current."""
        machine_with(self.core)
        return self.core.number

    def query(self) -> bool:
        """Return whether everything in the stream is done."""
        machine = machine_with(self.core)
        is_done = machine.query(self.core.last)
        # A program that acts because the stream is idle relies on it: for races this is a wait.
        if is_done and machine.hazards is not None and is_answer_used():
            machine.hazards.host_wait_stream(self.core.key)
        return is_done

    @ends_at_the_call
    def synchronize(self) -> None:
        """Block the host until everything in the stream is done."""
        machine = machine_with(self.core)
        machine.note_hidden_wait()  # in PyTorch, too, although the program asks for this wait
        machine.wait_for_stream(self.core)

    def is_capturing(self) -> bool:
        """Return whether work on the stream is captured into a graph."""
        capture = active().capture
        return capture is not None and capture.has(self.core)

    def __enter__(self) -> Self:
        """Make the stream current, and store which stream and device were."""
        machine = machine_with(self.core)
        gpu = machine.gpus[self.core.device.index]
        self._left.append((machine.current, gpu.stream))
        switch_to(self)
        return self

    def __exit__(self, *_error: object) -> None:
        """Make the earlier stream and device current again."""
        machine = machine_with(self.core)
        before, core = self._left.pop()
        make_current(machine.gpus[self.core.device.index], core)
        machine.current = before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamBase) and other.core is self.core

    def __hash__(self) -> int:
        return hash(self.core)


class EventBase:
    """The base of ``torch.cuda.Event`` while a virtual GPU is entered.

    Attributes
    ----------
    is_blocking
        Whether a wait for it sleeps; otherwise the host asks for it again and again.
    is_external
        Whether the event was made with ``external=True``: if it is recorded during a capture,
        each replay of the graph records it again.
    task
        The mark in a stream that its last record has made.
    snapshot
        The work before that mark, for the race detector.
    """

    enable_timing: bool
    is_blocking: bool
    is_external: bool
    task: StreamTask | None
    snapshot: Snapshot | None

    def __new__(cls, enable_timing: bool = False, **flags: Any) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        """Return an event that has not been recorded."""
        if flags.get("interprocess"):
            raise NotModelledError(
                "the virtual GPU has no model of events shared by processes; use one process"
            )
        event: Any = object.__new__(lasting_class(cls, EventBase, _CHECKS[EventBase]))
        event.enable_timing = enable_timing
        event.is_blocking = bool(flags.get("blocking"))
        event.is_external = bool(flags.get("external"))
        event.task = None
        event.snapshot = None
        active().host.spend(active().host.costs.event_create_ns)
        return event

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    cuda_event = property(lambda self: id(self) if self.task is not None else 0)
    event_id = cuda_event

    @property
    def device(self) -> torch.device | None:
        """The device of its last record, or None."""
        return None if self.task is None else cuda_device(self.task.stream.device.index)

    def record(self, stream: Any = None) -> None:
        """Record the event after the work in ``stream``, by default the current one."""
        active()  # outside of a context PyTorch's own function would be called
        stream = stream or torch.cuda.current_stream()
        machine = machine_with(stream.core)
        if self.task is not None and self.task.stream.device is not stream.core.device:
            # First our own error, if the two devices are of different virtual GPUs.
            machine_with(self.task.stream)
            raise RuntimeError(
                f"Event device {self.task.stream.device.index} does not match recording "
                f"stream's device {stream.device_index}."
            )
        task = machine.mark(stream.core, machine.host.costs.event_record_ns)
        if self.is_external and machine.capture is not None and machine.capture.captured(task):
            machine.capture.follow(task, self._record_again)
            return
        self.task = task
        if machine.hazards is not None:
            self.snapshot = machine.hazards.record(stream.core.key)

    def _record_again(self, task: StreamTask) -> None:
        """Use the mark of a replay from now on."""
        self.task = task
        # The checker gets the order of a replay from the graph itself.
        self.snapshot = None

    def wait(self, stream: Any = None) -> None:
        """Make later work in ``stream`` wait for the event; the host does not wait."""
        active()  # as above
        stream = stream or torch.cuda.current_stream()
        machine = machine_with(stream.core)
        # As on CUDA, a wait for an event that was never recorded is no wait.
        if self.task is None:
            return
        machine_with(self.task.stream)
        machine.mark(stream.core, machine.host.costs.stream_wait_ns, (self.task,))
        if machine.hazards is not None and self.snapshot is not None:
            machine.hazards.stream_wait(stream.core.key, self.snapshot)

    def query(self) -> bool:
        """Return whether the event is done, or was never recorded."""
        # PyTorch makes the event when it is first recorded, and does not ask CUDA before.
        if self.task is None:
            active()
            return True
        self._require_not_captured(self.task)
        is_done = active().query(self.task)
        checker = active().hazards
        if is_done and checker is not None and self.snapshot is not None and is_answer_used():
            checker.host_wait(self.snapshot)
        return is_done

    @ends_at_the_call
    def synchronize(self) -> None:
        """Block the host until the event is done."""
        if self.task is None:  # as above
            active()
            return
        self._require_not_captured(self.task)
        host = active().host
        start_ns = host.now_ns
        active().wait(self.task, self.snapshot)
        if self.is_blocking:
            # For the clocks of the processor's time.
            host.slept_ns += host.now_ns - start_ns

    def _require_not_captured(self, task: StreamTask) -> None:
        machine = machine_with(task.stream)
        if machine.capture is not None and machine.capture.captured(task):
            machine.fail_capture(
                "operation not permitted on an event last recorded in a capturing stream"
            )

    @ends_at_the_call
    def elapsed_time(self, other: Any) -> float:
        """Return the milliseconds from this event to ``other``; both must be done."""
        # PyTorch's checks, in its order and with its texts.
        if isinstance(self, torch.cuda.Event) and not isinstance(other, torch.cuda.Event):
            raise RuntimeError("expected other to be a torch.cuda.Event object")  # noqa: TRY004 # as PyTorch
        if not (self.enable_timing and other.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.task is None or other.task is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and other.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        # Each GPU has its own clock.
        if self.task.stream.device is not other.task.stream.device:
            raise active().cuda_error("CUDA error: invalid resource handle")
        return (_tick_ns(other.task) - _tick_ns(self.task)) / _NS_PER_MS


# For each GPU, the sequence number from which on each stream was current. PyTorch numbers the
# nodes of autograd as it makes them, and each operator that backward needs makes one.
_changes: WeakKeyDictionary[SimulatedGpu, list[tuple[int, SimulatedStream]]] = WeakKeyDictionary()


def make_current(gpu: SimulatedGpu, stream: SimulatedStream) -> None:
    """Make ``stream`` the current stream of ``gpu``."""
    if stream is gpu.stream:
        return
    # From number 0 on, so that nodes made before the first change have a stream, too.
    changes = _changes.setdefault(gpu, [(0, gpu.stream)])
    number = next_sequence_number()
    if changes[-1][0] == number:
        # No node was made on that stream, as in most blocks that only copy.
        changes.pop()
    if not changes or changes[-1][1] is not stream:
        changes.append((number, stream))
    if len(changes) > _N_CHANGES_KEPT:
        del changes[: _N_CHANGES_KEPT // 2]
    gpu.stream = stream


def switch_to(stream: StreamBase) -> None:
    """Make a stream and its GPU current."""
    machine = machine_with(stream.core)
    machine.current = stream.core.device.index
    make_current(machine.gpu, stream.core)


def has_changed(gpu: SimulatedGpu) -> bool:
    """Return whether backward must look up streams: there was more than one current stream."""
    return len(_changes.get(gpu, ())) > 1


def stream_at(gpu: SimulatedGpu, number: int) -> SimulatedStream:
    """Return the stream that was current when autograd made the node with this number."""
    changes = _changes.get(gpu)
    if changes is None:
        return gpu.stream
    n_before = bisect_right(changes, number, key=lambda change: change[0])
    return changes[max(0, n_before - 1)][1]


def machine_with(stream: SimulatedStream) -> Machine:
    """Return the entered machine.

    Raises
    ------
    VirtualGpuError
        If ``stream`` belongs to another machine.
    """
    machine = active()
    gpus, device = machine.gpus, stream.device
    if device.index >= len(gpus) or gpus[device.index].device is not device:
        raise VirtualGpuError(
            f"a stream or event of another virtual GPU ({device.spec.name}) is used; use it while "
            "that GPU is entered, and make a new one for this GPU"
        )
    return machine


def index_of(device: Any, machine: Machine) -> int:
    """Return the index of a device, which may be a name such as ``"cuda:1"`` or a number."""
    if isinstance(device, int):
        index: int | None = device
    else:
        index = torch.device(device).index
    index = machine.current if index is None or index < 0 else index
    require_device(index, machine)
    return index


def require_device(index: int, machine: Machine) -> None:
    """Raise CUDA's error if the machine has no device with this index."""
    if index >= len(machine.gpus):
        raise machine.cuda_error(
            "CUDA error: invalid device ordinal\n"
            "GPU device may be out of range, do you have enough GPUs?"
        )


def _new_stream(gpu: SimulatedGpu) -> SimulatedStream:
    host = active().host
    host.spend(host.costs.stream_create_ns)
    return gpu.next_stream()


def _known_stream(gpu: SimulatedGpu, number: int) -> SimulatedStream:
    streams = gpu.device.streams
    if not 0 <= number < len(streams):
        raise NotModelledError(
            f"the virtual GPU has no stream with the handle {number}; it knows only the streams "
            "that torch.cuda.Stream() made"
        )
    return streams[number]


def _tick_ns(task: StreamTask) -> int:
    return round((task.end_ns or 0) / _EVENT_TICK_NS) * _EVENT_TICK_NS


class _CheckedStream:
    """Raises our error outside the context, before torch's method makes an event.

    It goes on to torch's class, whose methods a program may have replaced.
    """

    def record_event(self, event: Any = None) -> Any:
        active()
        return super().record_event(event)  # type: ignore[misc] # torch's class has it


class _CheckedEvent:
    """The same for events, before torch's methods ask for the current stream."""

    def record(self, stream: Any = None) -> None:
        active()
        super().record(stream)  # type: ignore[misc] # as above

    def wait(self, stream: Any = None) -> None:
        active()
        super().wait(stream)  # type: ignore[misc] # as above


_CHECKS: dict[type, type] = {StreamBase: _CheckedStream, EventBase: _CheckedEvent}


# Cached, so that it is the same class in every context: streams and events outlive a context.
@cache
def class_with_base(original: type, base: type) -> type:
    """Return a class of ``base`` with the pure-Python methods and properties of ``original``.

    Builds of PyTorch with CUDA need it: their classes have a C base that cannot be replaced.
    """
    # A method with ``__class__`` among its free names calls ``super()`` and fits no other class.
    members = {
        name: value
        for name, value in vars(original).items()
        if (callable(value) or isinstance(value, property))
        and name not in vars(base)
        and "__class__" not in _free_names(value)
    }
    # After the context torch has its own class again, and Python cannot derive ours from it.
    # ``isinstance`` asks ``__class__``, too, so that what the program kept is still a Stream.
    members["__class__"] = property(lambda _self: original)
    new_class = type(original.__name__, (base,), {**members, "__module__": "torch.cuda"})
    if base not in _CHECKS:
        return new_class
    return type(original.__name__, (_CHECKS[base], new_class), {"__module__": "torch.cuda"})


@cache
def external_stream_class(stream_class: Any) -> type:
    """Return the class ``ExternalStream``, whose streams are given by their handle."""

    def new(cls: type, stream_ptr: int, device: Any = None, **_handles: Any) -> Any:
        return stream_class.__new__(cls, device=device, stream_ptr=stream_ptr)

    return type("ExternalStream", (stream_class,), {"__new__": new, "__module__": "torch.cuda"})


def _free_names(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return code.co_freevars if code is not None else ()
