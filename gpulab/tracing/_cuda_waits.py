"""Report a program's waits to a listener, by wrapping the functions of PyTorch that wait."""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import TypeAlias

import torch

from gpulab.core.interrupts import Undo, contextmanager
from gpulab.core.torch_private import disable_dispatch
from gpulab.happens_before import is_answer_used

Function = Callable[..., object]
DeviceArgument: TypeAlias = torch.device | str | int | None


class WaitListener:
    """The methods that are called after each wait, and around each backward pass.

    They do nothing; a listener has its own in place of those that it needs.
    """

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Note that ``event`` was recorded on ``stream``."""

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Note that later work of ``stream`` waits for ``event``."""

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Note that the host has seen ``event`` done."""

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Note that the host has seen ``stream`` idle."""

    def device_is_done(self, device: DeviceArgument) -> None:
        """Note that the host has waited for a device; None is the current one."""

    def host_reads(self, tensor: torch.Tensor, name: str) -> None:
        """Note that the host reads the memory of ``tensor`` without an operator."""

    def is_kept(self, tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        """Note a call of ``tensor.record_stream(stream)``."""

    def backward(self) -> AbstractContextManager[None]:
        """Return a context manager that is entered around a backward pass."""
        return nullcontext()


@contextmanager
def waits_reported_to(listener: WaitListener, cuda: ModuleType) -> Iterator[None]:
    """Call the methods of ``listener`` at every wait of the block; tests give another ``cuda``."""
    undo = Undo()
    try:
        for replacement in _replacements(listener, cuda):
            _put(*replacement, undo)
        yield
    finally:
        undo.close()


def _replacements(listener: WaitListener, cuda: ModuleType) -> list[tuple[object, str, Function]]:
    def record(
        _: object, event: torch.cuda.Event, stream: torch.cuda.Stream | None = None
    ) -> None:
        listener.recorded(event, cuda.current_stream() if stream is None else stream)

    def wait(_: object, event: torch.cuda.Event, stream: torch.cuda.Stream | None = None) -> None:
        listener.stream_waits(cuda.current_stream() if stream is None else stream, event)

    def event_query(is_done: object, event: torch.cuda.Event) -> None:
        if is_done and is_answer_used():
            listener.event_is_done(event)

    def stream_query(is_done: object, stream: torch.cuda.Stream) -> None:
        if is_done and is_answer_used():
            listener.stream_is_done(stream)

    # ``Stream.wait_event``, ``wait_stream`` and ``record_event`` need no entry: in PyTorch they
    # call the methods of ``Event``.
    followers: list[tuple[object, str, Function]] = [
        (cuda.Event, "record", record),
        (cuda.Event, "wait", wait),
        (cuda.Event, "query", event_query),
        (cuda.Event, "synchronize", lambda _, event: listener.event_is_done(event)),
        (cuda.Stream, "query", stream_query),
        (cuda.Stream, "synchronize", lambda _, stream: listener.stream_is_done(stream)),
        (cuda, "synchronize", lambda _, device=None: listener.device_is_done(device)),
        *(
            (
                torch.Tensor,
                name,
                lambda _, tensor, name=name, **_k: listener.host_reads(tensor, name),
            )
            for name in ("numpy", "tolist")
        ),
    ]

    def record_stream(tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        listener.is_kept(tensor, stream)
        # Without dispatch modes: one that got a stream as an argument ended the process on a GPU
        # (torch 2.11).
        # The guard ends when the object dies, so it is deleted by hand right after the call.
        unseen = disable_dispatch()
        keep(tensor, stream)
        del unseen

    keep = torch.Tensor.record_stream
    blocks = [(torch.autograd, name) for name in ("backward", "grad")]
    return [
        (torch.Tensor, "record_stream", record_stream),
        *((owner, name, _followed(getattr(owner, name), then)) for owner, name, then in followers),
        *((owner, name, _inside(getattr(owner, name), listener)) for owner, name in blocks),
    ]


def _followed(original: Function, then: Function) -> Function:
    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        # After the call: a wait that raises has not waited.
        then(result, *args, **kwargs)
        return result

    return call


def _inside(original: Function, listener: WaitListener) -> Function:
    @functools.wraps(original)
    def call(*args: object, **kwargs: object) -> object:
        with listener.backward():
            return original(*args, **kwargs)

    return call


def _put(owner: object, name: str, value: Function, undo: Undo) -> None:
    attributes = vars(owner)
    if name in attributes:
        # The raw attribute: getattr would resolve descriptors, such as static methods.
        undo.callback(setattr, owner, name, attributes[name])
    else:  # inherited, as Tensor.numpy is
        undo.callback(_take_away, owner, name)
    setattr(owner, name, value)


def _take_away(owner: object, name: str) -> None:
    if name in vars(owner):
        delattr(owner, name)
