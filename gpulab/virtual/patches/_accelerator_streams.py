"""Virtual streams and events for ``torch.Stream``, ``torch.Event`` and ``torch.accelerator``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.core.torch_private import C
from gpulab.virtual._streams import EventBase, StreamBase, switch_to
from gpulab.virtual.simulator import Machine, active
from gpulab.virtual.simulator import SimulatedStream as CoreStream

# On the host of an H200 torch.accelerator.current_stream() took 1.9 µs and
# torch.cuda.current_stream() 7.4 µs. This is the same share of the latter's cost in the model.
_CURRENT_STREAM_NS = 1_300


class _Kind(type):
    """The metaclass of the virtual ``torch.Event`` and ``torch.Stream``.

    Instances of ``torch.cuda.Event`` and PyTorch's own class pass ``isinstance``, and a call for
    another device than CUDA makes an object of PyTorch's own class.
    """

    _base: type
    _original: Any

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (cls._base, cls._original))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, (cls._base, cls._original))

    def __call__(cls, device: Any = None, **options: Any) -> Any:
        if _is_cuda(device):
            return super().__call__(device, **options)
        return cls._original(device, **options)


def _is_cuda(device: Any) -> bool:
    if isinstance(device, bool):
        # To Python a bool is an int. PyTorch's own class gets it, and refuses it.
        return False
    return device is None or isinstance(device, int) or torch.device(device).type == "cuda"


class Event(EventBase, metaclass=_Kind):
    """The virtual ``torch.Event``."""

    _base = EventBase
    _original = torch.Event

    def __new__(
        cls,
        device: Any = None,  # noqa: ARG004 # the device is that of the stream that records it
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Any:
        """Return a new event that is not recorded yet."""
        return super().__new__(cls, enable_timing, blocking=blocking, interprocess=interprocess)

    @property
    def device(self) -> torch.device:
        """The device on which it was recorded; ``cuda`` without an index before that."""
        return super().device or torch.device("cuda")

    def record(self, stream: Any = None) -> None:
        """Record the event in ``stream``, by default the current one."""
        super().record(stream or current_stream())

    def wait(self, stream: Any = None) -> None:
        """Let later work of ``stream``, by default the current one, wait for the event."""
        super().wait(stream or current_stream())

    def elapsed_time(self, end_event: Any) -> float:
        """Return the milliseconds from this event to ``end_event``; both must be done."""
        if type(end_event) is not Event:
            raise RuntimeError("expected other to be a torch.Event object")
        return super().elapsed_time(end_event)

    def __repr__(self) -> str:
        index = -1 if self.task is None else self.device.index
        return (
            f"torch.Event device_type=cuda, device_index={index}, "
            f"event_flag={int(self.enable_timing)}, event_id={self.event_id}"
        )


class Stream(StreamBase, metaclass=_Kind):
    """The virtual ``torch.Stream``; inside ``with`` it is the current stream."""

    _base = StreamBase
    _original = torch.Stream

    def record_event(self, event: Any = None) -> Any:
        """Record ``event``, by default a new one, in the stream, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Any) -> None:
        """Let later work of the stream wait for ``event``."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Let later work of the stream wait for the work that ``stream`` has now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        # As in PyTorch: a torch.Stream never equals a torch.cuda.Stream of the same CUDA stream.
        return type(other) is Stream and super().__eq__(other)

    __hash__ = StreamBase.__hash__

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type=cuda, device_index={self.device_index}, "
            f"stream_id={self.core.number}"
        )


# Messages show the module of a class, and some programs compare it.
for _class in (Event, Stream):
    _class.__module__ = "torch"


def current_stream(device_index: int = -1) -> Stream:
    """Return the current stream of a virtual GPU, by default of the current one."""
    machine = active()
    gpu = machine.gpu if device_index < 0 else machine.gpus[device_index]
    return _stream_of(gpu.stream)


def _stream_of(core: CoreStream) -> Stream:
    stream: Stream = Stream(stream_id=core.number, device_index=core.device.index)
    return stream


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the classes ``Event`` and ``Stream``, and the functions of ``torch.accelerator``."""

    def get_stream(index: int) -> Stream:
        machine.host.spend(_CURRENT_STREAM_NS)
        return current_stream(index)

    def set_stream(stream: Any) -> None:
        if not isinstance(stream, StreamBase):
            raise TypeError(
                "_accelerator_setStream(): incompatible function arguments. The following "
                f"argument types are supported:\n    1. (arg0: torch.Stream) -> None\n\n"
                f"Invoked with: {stream!r}"
            )
        switch_to(stream)

    def capability(_index: int) -> Any:
        raise RuntimeError("Backend doesn't support getting device capabilities.")  # as on CUDA

    accelerator = {
        "_accelerator_getStream": get_stream,
        "_accelerator_setStream": set_stream,
        "_accelerator_getDeviceCapability": capability,
    }
    return [
        (torch, {"Event": Event, "Stream": Stream}),
        (C, accelerator),
        # These contexts are PyTorch's own Python code, in which Ctrl-C could strike half-way. As
        # functions of gpulab.virtual they are steps, which an interrupt does not divide.
        *(
            (kind, {name: _as_step(vars(kind)[name]) for name in ("__enter__", "__exit__")})
            for kind in (torch.cuda.StreamContext, torch.cuda.device)
        ),
    ]


def _as_step(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls PyTorch's from this package, where each call is a step."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return called
