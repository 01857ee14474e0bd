"""Streams and events behind ``torch.cuda.Stream`` and ``Event``, and which stream is current.

An event is a mark in a simulated stream. Backward needs the stream that was current when an
operator ran, so changes of the current stream are kept with autograd's numbers. Streams and events
outlive the context that they were made in, and name the cause where they are used outside of it.
"""

from bisect import bisect_right
from functools import cache
from typing import Any, Self
from weakref import WeakKeyDictionary

import torch

from gpulab.errors import NotModelledError, VirtualGpuError
from gpulab.happens_before import Snapshot
from gpulab.torch_private import next_sequence_number
from gpulab.virtual._lasting import lasting_class
from gpulab.virtual.simulator import Machine, SimulatedGpu, SimulatedStream, StreamTask, active
from gpulab.virtual.tensors import cuda_device

CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA
_EVENT_TICK_NS = 32  # event times on an H200 are multiples of 32 ns
_NS_PER_MS = 1e6
_N_PRIORITIES = 3  # above the usual one, as torch 2.11 offers on an H200
# Beyond it the older half is forgotten; backward then runs what is older on the oldest known.
_N_CHANGES_KEPT = 10_000


class StreamBase:
    """A stream of a virtual device, by its number.

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
        """Take the next stream of the pool, or the one whose number or handle is given."""
        machine = active()
        index = index_of(device, machine) if device is not None else device_index
        gpu = machine.gpu if index is None else machine.gpus[index]
        number = stream_id if stream_ptr is None else stream_ptr
        stream: Any = object.__new__(lasting_class(cls, StreamBase, _CHECKS[StreamBase]))
        stream._left = []  # noqa: SLF001 # its own
        stream.priority = max(-_N_PRIORITIES, min(0, priority))
        stream.core = _new_stream(gpu) if number is None else _known_stream(gpu, number)
        return stream

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """Return the least and the greatest priority; lower numbers come first."""
        return 0, -_N_PRIORITIES

    device_type = CUDA_DEVICE_TYPE
    cuda_stream = property(lambda self: self.core.number)
    native_handle = property(lambda self: self.core.number)
    device_index = property(lambda self: self.core.device.index)
    device = property(lambda self: cuda_device(self.core.device.index))

    @property
    def stream_id(self) -> int:
        """The number by which PyTorch makes the stream current."""
        machine_with(self.core)
        return self.core.number

    def query(self) -> bool:
        """Tell whether everything in the stream is done."""
        machine = machine_with(self.core)
        is_done = machine.query(self.core.last)
        if is_done and machine.hazards is not None:
            machine.hazards.host_wait_stream(self.core.key)
        return is_done

    def synchronize(self) -> None:
        """Block the host until everything in the stream is done."""
        machine_with(self.core).wait_for_stream(self.core)

    def is_capturing(self) -> bool:
        """Tell whether work on the stream is captured into a graph."""
        capture = active().capture
        return capture is not None and capture.has(self.core)

    def __enter__(self) -> Self:
        """Make the stream current and remember what was."""
        machine = machine_with(self.core)
        gpu = machine.gpus[self.core.device.index]
        self._left.append((machine.current, gpu.stream))
        switch_to(self)
        return self

    def __exit__(self, *_error: object) -> None:
        """Make current again what was before."""
        machine = machine_with(self.core)
        before, core = self._left.pop()
        make_current(machine.gpus[self.core.device.index], core)
        machine.current = before

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamBase) and other.core is self.core

    def __hash__(self) -> int:
        return hash(self.core)


class EventBase:
    """An event of a virtual device; recording it again moves it.

    Attributes
    ----------
    is_external
        Whether a record that is captured belongs to the graph, and moves at each replay.
    task
        The mark that its last record put into a stream.
    snapshot
        What had been launched by then, for the hazard checker.
    """

    enable_timing: bool
    is_external: bool
    task: StreamTask | None
    snapshot: Snapshot | None

    def __new__(cls, enable_timing: bool = False, **flags: Any) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        """Make an event that no stream has recorded."""
        if flags.get("interprocess"):
            raise NotModelledError(
                "the virtual GPU has no model of events shared by processes; use one process"
            )
        event: Any = object.__new__(lasting_class(cls, EventBase, _CHECKS[EventBase]))
        event.enable_timing = enable_timing
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
        """The device on which it was recorded, or None."""
        return None if self.task is None else cuda_device(self.task.stream.device.index)

    def record(self, stream: Any) -> None:
        """Record the event after the work in ``stream``."""
        machine = machine_with(stream.core)
        if self.task is not None and self.task.stream.device is not stream.core.device:
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
        """Move to the mark of a graph that has just been launched."""
        self.task = task
        self.snapshot = None

    def wait(self, stream: Any) -> None:
        """Let later work in ``stream`` wait for the event; the host goes on."""
        machine = machine_with(stream.core)
        if self.task is None:
            return
        machine_with(self.task.stream)
        machine.mark(stream.core, machine.host.costs.stream_wait_ns, (self.task,))
        if machine.hazards is not None and self.snapshot is not None:
            machine.hazards.stream_wait(stream.core.key, self.snapshot)

    def query(self) -> bool:
        """Tell whether the event is done, or was never recorded."""
        self._require_not_captured()
        is_done = active().query(self.task)
        if is_done and self.snapshot is not None:
            self._seen_done()
        return is_done

    def synchronize(self) -> None:
        """Block the host until the event is done."""
        self._require_not_captured()
        active().wait(self.task, self.snapshot)

    def _require_not_captured(self) -> None:
        machine = active() if self.task is None else machine_with(self.task.stream)
        if machine.capture is not None and machine.capture.captured(self.task):
            machine.fail_capture(
                "operation not permitted on an event last recorded in a capturing stream"
            )

    def _seen_done(self) -> None:
        """Tell the race detector that the host comes after all work before the event."""
        checker = active().hazards
        if checker is not None and self.snapshot is not None:
            checker.host_wait(self.snapshot)

    def elapsed_time(self, other: Any) -> float:
        """Return the milliseconds from this event to ``other``, both of them done."""
        if isinstance(self, torch.cuda.Event) and not isinstance(other, torch.cuda.Event):
            raise RuntimeError("expected other to be a torch.cuda.Event object")  # noqa: TRY004 # as PyTorch
        if not (self.enable_timing and other.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.task is None or other.task is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and other.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        if self.task.stream.device is not other.task.stream.device:  # each has a clock of its own
            raise active().cuda_error("CUDA error: invalid resource handle")
        return (_tick_ns(other.task) - _tick_ns(self.task)) / _NS_PER_MS


# By GPU, from which of autograd's numbers on a stream was current. PyTorch numbers the nodes of
# autograd as it makes them, and each operator that backward must know of makes one.
_changes: WeakKeyDictionary[SimulatedGpu, list[tuple[int, SimulatedStream]]] = WeakKeyDictionary()


def make_current(gpu: SimulatedGpu, stream: SimulatedStream) -> None:
    """Make ``stream`` the current one of its GPU."""
    if stream is gpu.stream:
        return
    changes = _changes.setdefault(gpu, [(0, gpu.stream)])
    number = next_sequence_number()
    if changes[-1][0] == number:
        changes.pop()  # nothing was made since, as in most blocks that only copy
    if not changes or changes[-1][1] is not stream:
        changes.append((number, stream))
    if len(changes) > _N_CHANGES_KEPT:
        del changes[: _N_CHANGES_KEPT // 2]
    gpu.stream = stream


def switch_to(stream: StreamBase) -> None:
    """Make a stream current, and its GPU too."""
    machine = machine_with(stream.core)
    machine.current = stream.core.device.index
    make_current(machine.gpu, stream.core)


def has_changed(gpu: SimulatedGpu) -> bool:
    """Tell whether operators that backward may know of ran on more than one stream."""
    return len(_changes.get(gpu, ())) > 1


def stream_at(gpu: SimulatedGpu, number: int) -> SimulatedStream:
    """Return the stream that was current when autograd's node of this number was made."""
    changes = _changes.get(gpu)
    if changes is None:
        return gpu.stream
    n_before = bisect_right(changes, number, key=lambda change: change[0])
    return changes[max(0, n_before - 1)][1]


def machine_with(stream: SimulatedStream) -> Machine:
    """Return the machine whose context is entered, which must be the one with ``stream``."""
    machine = active()
    gpus, device = machine.gpus, stream.device
    if device.index >= len(gpus) or gpus[device.index].device is not device:
        raise VirtualGpuError(
            f"a stream or event of another virtual GPU ({device.spec.name}) is used; use it while "
            "that one is entered, and make one of its own for this one"
        )
    return machine


def index_of(device: Any, machine: Machine) -> int:
    """Return the index that a device, a name such as ``"cuda:1"`` or a number means."""
    if isinstance(device, int):
        index: int | None = device
    else:
        index = torch.device(device).index
    index = machine.current if index is None or index < 0 else index
    require_device(index, machine)
    return index


def require_device(index: int, machine: Machine) -> None:
    """Refuse a device that the machine does not have, in CUDA's words."""
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
    """Asks for the virtual GPU before torch's methods look up other objects of torch."""

    def record_event(self, event: Any = None) -> Any:
        active()
        return super().record_event(event)  # type: ignore[misc] # torch's class has it

    def wait_stream(self, stream: Any) -> None:
        active()
        super().wait_stream(stream)  # type: ignore[misc] # as above


class _CheckedEvent:
    """Asks for the virtual GPU before torch's methods look up the current stream."""

    def record(self, stream: Any = None) -> None:
        active()
        super().record(stream)  # type: ignore[misc] # torch's class has it

    def wait(self, stream: Any = None) -> None:
        active()
        super().wait(stream)  # type: ignore[misc] # as above


_CHECKS: dict[type, type] = {StreamBase: _CheckedStream, EventBase: _CheckedEvent}


@cache  # one class for good: streams and events outlive the context they were made in
def class_with_base(original: type, base: type) -> type:
    """Make a class of ``base`` with the pure-Python methods and properties of ``original``.

    For builds of PyTorch with CUDA, whose classes have a C base that cannot be exchanged.
    """
    own = {
        name: value
        for name, value in vars(original).items()
        if (callable(value) or isinstance(value, property))
        and name not in vars(base)
        and "__class__" not in _free_names(value)
    }
    made = type(original.__name__, (_with_defaults(base),), {**own, "__module__": "torch.cuda"})
    if base not in _CHECKS:
        return made
    return type(original.__name__, (_CHECKS[base], made), {"__module__": "torch.cuda"})


@cache
def external_stream_class(stream_class: Any) -> type:
    """Make the class of streams that are given by their handle."""

    def new(cls: type, stream_ptr: int, device: Any = None, **_handles: Any) -> Any:
        return stream_class.__new__(cls, device=device, stream_ptr=stream_ptr)

    return type("ExternalStream", (stream_class,), {"__new__": new, "__module__": "torch.cuda"})


def _free_names(function: Any) -> tuple[str, ...]:
    code = getattr(function, "__code__", None)
    return code.co_freevars if code is not None else ()


def _with_defaults(base: type) -> type:
    """Give ``record`` and ``wait`` the current stream as default, as torch's own layer does."""
    if base is not EventBase:
        return base

    class Event(EventBase):
        def record(self, stream: Any = None) -> None:
            super().record(stream or torch.cuda.current_stream())

        def wait(self, stream: Any = None) -> None:
            super().wait(stream or torch.cuda.current_stream())

    return Event
