"""Follow a program on a CUDA GPU from Python: what it launches, what waits, and what is freed."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import not_compiled
from gpulab.happens_before import (
    NOWHERE,
    Checker,
    MemoryAccess,
    Site,
    Snapshot,
    StreamKey,
    user_site,
)
from gpulab.happens_before.tensor_accesses import check_host_operation, host_access
from gpulab.tracing._cuda_waits import DeviceArgument, WaitListener, waits_reported_to
from gpulab.tracing.sanitizer._cuda_memory import Memories
from gpulab.tracing.sanitizer._cuda_operators import ObservedCall, read_call


@dataclass(frozen=True, slots=True)
class Hardware:
    """The questions to PyTorch about the GPU; tests without a GPU give other answers.

    ``holds`` says whether a tensor is on a GPU, and ``index_of`` on which. Each looks up PyTorch's
    method when it is asked: this module may be imported while a virtual GPU replaces them.
    """

    cuda: ModuleType = torch.cuda
    holds: Callable[[torch.Tensor], bool] = lambda tensor: tensor.is_cuda
    index_of: Callable[[torch.Tensor], int] = lambda tensor: tensor.get_device()
    is_pinned: Callable[[torch.Tensor], bool] = lambda tensor: tensor.is_pinned()


@contextmanager
def watched(checker: Checker, hardware: Hardware | None = None) -> Iterator[None]:
    """Report to ``checker`` what the block launches, waits for and frees.

    At the end of the block all functions of PyTorch are as they were.
    """
    watch = ProgramWatch(checker, hardware or Hardware())
    with waits_reported_to(watch, watch.hardware.cuda), watch:
        try:
            yield
        finally:
            watch.memories.close()


@dataclass(slots=True)
class _Backward:
    """A pass of autograd: the line that called it, and the streams that it has used."""

    site: Site
    last: StreamKey
    used: set[StreamKey] = field(default_factory=set)


class ProgramWatch(TorchDispatchMode, WaitListener):  # type: ignore[no-untyped-call] # torch's is untyped
    """Reports the thread's operators and waits to a checker."""

    # Otherwise PyTorch refuses operators of operators, such as flex_attention's.
    supports_higher_order_operators = True

    def __init__(self, checker: Checker, hardware: Hardware) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch's is untyped
        self.hardware = hardware
        self.memories = Memories(checker)
        self._checker = checker
        self._numbers: dict[tuple[int, int], int] = {}
        self._backward: _Backward | None = None
        self._lock = threading.RLock()  # autograd's threads come here too

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # True would import torch._dynamo (1.3 s) and wrap every operation.
        return False

    @not_compiled
    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 # operators have no public type
        types: object,  # torch's signature
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        # The operator runs first: one that raises has done nothing, and only the result has the
        # new tensors.
        out = func(*args, **(kwargs or {}))
        # Captured work does not run now, and its replay passes no dispatcher.
        if not self.hardware.cuda.is_current_stream_capturing():
            with self._lock:
                self._note(func, args, kwargs or {}, out)
        return out

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Note that ``event`` was recorded on ``stream``."""
        with self._lock:
            # The mark is an attribute of the event, because weak references to events ended the
            # process (torch 2.11).
            event.seen_by_gpulab = self, self._checker.record(self._key(stream))  # type: ignore[attr-defined] # our mark

    def _snapshot_of(self, event: torch.cuda.Event) -> Snapshot | None:
        """Return the work before ``event``, or None if it was not recorded in this block."""
        watch, snapshot = getattr(event, "seen_by_gpulab", (None, None))
        return snapshot if watch is self else None

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Note that later work of ``stream`` waits for ``event``."""
        with self._lock:
            self._checker.stream_wait(self._key(stream), self._snapshot_of(event))

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Note that the host has seen ``event`` done."""
        with self._lock:
            self._checker.host_wait(self._snapshot_of(event))

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Note that the host has seen ``stream`` idle."""
        with self._lock:
            self._checker.host_wait_stream(self._key(stream))

    def device_is_done(self, device: DeviceArgument) -> None:
        """Note that the host has waited for a device; None is the current one."""
        index = device if isinstance(device, int) else _index_of(device)
        with self._lock:
            current: int = self.hardware.cuda.current_device()
            self._checker.host_wait_device(current if index is None else index)

    def is_kept(self, tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        """Note a call of ``tensor.record_stream(stream)``."""
        if self.hardware.holds(tensor):
            with self._lock:
                key = self.memories.see(tensor, (self.hardware.index_of(tensor), 0))
                self.memories.record_stream(key, self._key(stream))

    def host_reads(self, tensor: torch.Tensor, name: str) -> None:
        """Note that the host reads the memory of ``tensor`` without an operator."""
        if not self.hardware.holds(tensor) and self.memories.has_pinned:
            with self._lock:
                self._checker.host_access(host_access(tensor, is_write=False), name, user_site())

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Treat all work of a backward pass as ordered, and before later work of its caller.

        Autograd itself makes the streams of a pass wait for one another, in C++ code that
        calls none of the functions that are watched here.
        """
        # A hook of the pass may call backward() again, so passes nest.
        outer, caller = self._backward, self._current(None)
        self._backward = _Backward(user_site(), caller)
        try:
            yield
        finally:
            with self._lock:
                # Sorted, because each record ends an epoch and a set has no fixed order.
                for stream in sorted(self._backward.used):
                    self._checker.stream_wait(caller, self._checker.record(stream))
                self._backward = outer

    def _note(
        self,
        func: Any,  # noqa: ANN401 # as above
        args: tuple[object, ...],
        kwargs: dict[str, object],
        out: object,
    ) -> None:
        call = read_call(func, args, kwargs, out)
        on_device = [t for t in (*call.made, *call.written, *call.read) if self.hardware.holds(t)]
        if not on_device:
            # What would launch no kernel on the GPU, a view or an allocation, reads nothing here.
            if self.memories.has_pinned and call.has_kernel:
                check_host_operation(self._checker, func, args, kwargs)
            return
        stream = self._current(self.hardware.index_of(on_device[0]))
        # Even without a kernel: a tensor from torch.empty is allocated for the current stream.
        for tensor in call.made:
            if self.hardware.holds(tensor):
                self.memories.see(tensor, stream)
        if call.has_kernel:
            self._launched(call, stream)

    def _launched(self, call: ObservedCall, stream: StreamKey) -> None:
        origin = self._origin(call, stream)
        if origin != stream:  # PyTorch makes the two current streams wait for each other
            self._checker.stream_wait(origin, self._checker.record(stream))
        self._follow_backward(origin)
        accesses = list(self._accesses(call, origin))
        self._checker.launch(origin, call.name, accesses, self._site())
        if origin != stream:
            self._checker.stream_wait(stream, self._checker.record(origin))
        if call.waits or self._copy_waits(call):
            self._checker.host_wait_stream(origin)

    def _accesses(self, call: ObservedCall, stream: StreamKey) -> Iterator[MemoryAccess]:
        for tensors, is_write in ((call.read, False), (call.written, True), (call.made, True)):
            for tensor in tensors:
                if not tensor.numel():
                    continue
                if self.hardware.holds(tensor):
                    yield self._device_access(tensor, stream, is_write=is_write)
                elif call.is_copy and self.hardware.is_pinned(tensor):
                    access = host_access(tensor, is_write=is_write)
                    self.memories.pin(access.memory, tensor)
                    yield access

    def _device_access(
        self, tensor: torch.Tensor, stream: StreamKey, *, is_write: bool
    ) -> MemoryAccess:
        # PyTorch does not say for which stream a tensor was allocated. One from before the block
        # counts as allocated for the default stream.
        memory = self.memories.see(tensor, (stream[0], 0))
        if self._backward is not None:  # autograd calls record_stream itself, in C++
            self.memories.record_stream(memory, stream)
        return host_access(tensor, is_write=is_write)._replace(memory=memory)

    def _origin(self, call: ObservedCall, stream: StreamKey) -> StreamKey:
        """Return the stream that a call runs on: a copy between GPUs runs on its source."""
        sources = [tensor for tensor in call.read if self.hardware.holds(tensor)]
        if not (call.is_copy and sources):
            return stream
        index = self.hardware.index_of(sources[0])
        return stream if index == stream[0] else self._current(index)

    def _copy_waits(self, call: ObservedCall) -> bool:
        """Return whether the host waits for a copy to or from its own memory."""
        targets = [t for t in (*call.made, *call.written) if not self.hardware.holds(t)]
        sources = [t for t in call.read if not self.hardware.holds(t)]
        if not call.is_copy or not (targets or sources):
            return False
        # With ``non_blocking`` the host does not wait for a copy from pageable memory, but PyTorch
        # always waits for a copy into it.
        return not (call.non_blocking and all(map(self.hardware.is_pinned, targets)))

    def _follow_backward(self, stream: StreamKey) -> None:
        running = self._backward
        if running is None:
            return
        if stream != running.last:
            self._checker.stream_wait(stream, self._checker.record(running.last))
        running.last = stream
        running.used.add(stream)

    def _site(self) -> Site:
        site = user_site()
        # Autograd's own thread runs no line of the user's; its work gets the line of backward().
        return self._backward.site if site == NOWHERE and self._backward is not None else site

    def _current(self, index: int | None) -> StreamKey:
        return self._key(self.hardware.cuda.current_stream(index))

    def _key(self, stream: torch.cuda.Stream) -> StreamKey:
        device, identity = stream.device_index, stream.stream_id
        if identity == 0:
            return device, 0
        # PyTorch's stream ids are large numbers. The report counts streams in the order of their
        # first use instead.
        n_used = sum(used_on == device for used_on, _ in self._numbers)
        return device, self._numbers.setdefault((device, identity), n_used + 1)


def _index_of(device: torch.device | str | None) -> int | None:
    return None if device is None else torch.device(device).index
