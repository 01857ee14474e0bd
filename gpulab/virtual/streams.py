"""What stands behind ``torch.cuda.Stream`` and ``torch.cuda.Event``: marks in virtual streams."""

from functools import cache
from typing import Any

import torch

from gpulab.virtual.machine import active
from gpulab.virtual.task import Task

CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA
_EVENT_TICK_NS = 32  # event times on an H200 are multiples of 32 ns
_NS_PER_MS = 1e6


class StreamBase:
    """A stream of the virtual device, by its number."""

    def __new__(cls, priority: int = 0, stream_id: int | None = None, **_handles: Any) -> Any:
        """Take the next stream of the pool, or the one whose number is given."""
        stream: Any = object.__new__(cls)
        stream.priority = max(-5, min(0, priority))
        stream.stream_id = active().new_stream() if stream_id is None else stream_id
        stream.device_index = 0
        stream.device_type = CUDA_DEVICE_TYPE
        return stream

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    stream_id: int
    device = property(lambda _self: torch.device("cuda", 0))
    cuda_stream = property(lambda self: self.stream_id)

    def query(self) -> bool:
        """Tell whether everything in the stream is done."""
        machine = active()
        return machine.host.is_done(machine.device.last_task(self.stream_id))

    def synchronize(self) -> None:
        """Block the host until everything in the stream is done."""
        active().host.wait_for_stream(self.stream_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamBase) and other.stream_id == self.stream_id

    def __hash__(self) -> int:
        return hash(self.stream_id)


class EventBase:
    """An event of the virtual device; recording it again moves it."""

    enable_timing: bool
    task: Task | None

    def __new__(cls, enable_timing: bool = False, **_flags: bool) -> Any:  # noqa: FBT001, FBT002 # torch's signature
        """Make an event that no stream has recorded."""
        event: Any = object.__new__(cls)
        event.enable_timing = enable_timing
        event.task = None
        active().host.spend(active().host.costs.event_create_ns)
        return event

    def __init__(self, *_args: object, **_kwargs: object) -> None:
        pass

    device = property(lambda _self: torch.device("cuda", 0))
    cuda_event = property(lambda self: id(self) if self.task is not None else 0)

    def record(self, stream: Any) -> None:
        """Put the event behind the work in ``stream``."""
        host = active().host
        self.task = host.mark(stream.stream_id, host.costs.event_record_ns)

    def wait(self, stream: Any) -> None:
        """Let later work in ``stream`` wait for the event; the host goes on."""
        host = active().host
        if self.task is not None:
            host.mark(stream.stream_id, host.costs.stream_wait_ns, (self.task,))

    def query(self) -> bool:
        """Tell whether the event is done, or was never recorded."""
        return active().host.is_done(self.task)

    def synchronize(self) -> None:
        """Block the host until the event is done."""
        active().host.wait(self.task)

    def elapsed_time(self, other: Any) -> float:
        """Return the milliseconds from this event to ``other``, both of them done."""
        if not (self.enable_timing and other.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.task is None or other.task is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and other.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return (_tick_ns(other.task) - _tick_ns(self.task)) / _NS_PER_MS


def _tick_ns(task: Task) -> int:
    return round((task.end_ns or 0) / _EVENT_TICK_NS) * _EVENT_TICK_NS


@cache  # one class for good: streams and events outlive the context they were made in
def stand_in(original: type, base: type) -> type:
    """Make a class of ``base`` with the pure-Python methods of ``original``.

    For builds of PyTorch with CUDA, whose classes have a C base that cannot be exchanged.
    """
    own = {
        name: value
        for name, value in vars(original).items()
        if callable(value) and name not in vars(base) and "__class__" not in _free_names(value)
    }
    return type(original.__name__, (_with_defaults(base),), {**own, "__module__": "torch.cuda"})


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
