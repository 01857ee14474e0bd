"""Virtual streams and events for ``torch.Stream``, ``torch.Event`` and ``torch.accelerator``."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.core.torch_private import C
from gpulab.virtual._streams import EventBase, StreamBase, switch_to
from gpulab.virtual.simulator import Machine

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
            return super().__call__(device=device, **options)
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


# Messages show the module of a class, and some programs compare it.
for _class in (Event, Stream):
    _class.__module__ = "torch"


def replacements(machine: Machine) -> list[tuple[Any, dict[str, Any]]]:
    """Return the classes ``Event`` and ``Stream``, and the functions of ``torch.accelerator``."""

    def get_stream(index: int) -> Stream:
        machine.host.spend(_CURRENT_STREAM_NS)
        gpu = machine.gpu if index < 0 else machine.gpus[index]
        stream: Stream = Stream(stream_id=gpu.stream.number, device_index=gpu.index)
        return stream

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
