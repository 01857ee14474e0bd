"""Follow a program on a CUDA GPU from Python: what it launches, what waits, and what is freed."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpulab.happens_before import (
    NOWHERE,
    Checker,
    MemoryAccess,
    Site,
    Snapshot,
    StreamKey,
    user_site,
)
from gpulab.interrupts import contextmanager
from gpulab.sanitizer._cuda_memory import Memories
from gpulab.sanitizer._cuda_operators import ObservedCall, TorchOperator, read_call
from gpulab.sanitizer._cuda_waits import DeviceArgument, waits_reported_to
from gpulab.tensor_accesses import check_host_operation, host_access


@dataclass(frozen=True, slots=True)
class Hardware:
    """What PyTorch is asked about the GPU; tests without one answer instead.

    Attributes
    ----------
    cuda
        The module ``torch.cuda``.
    holds
        Whether a tensor lies on a GPU.
    index_of
        Index of the GPU that a tensor lies on.
    is_pinned
        Whether a host tensor lies in pinned memory.
    """

    cuda: ModuleType = torch.cuda
    holds: Callable[[torch.Tensor], bool] = lambda tensor: tensor.is_cuda
    index_of: Callable[[torch.Tensor], int] = torch.Tensor.get_device
    is_pinned: Callable[[torch.Tensor], bool] = torch.Tensor.is_pinned


@contextmanager
def watched(checker: Checker, hardware: Hardware | None = None) -> Iterator[None]:
    """Tell ``checker`` what the block launches, waits for and frees; leave all as found."""
    watch = ProgramWatch(checker, hardware or Hardware())
    with waits_reported_to(watch, watch.hardware.cuda), watch:
        try:
            yield
        finally:
            watch.memories.close()


@dataclass(slots=True)
class _Backward:
    """A pass of autograd: the line that called it, and the streams that it came over."""

    site: Site
    last: StreamKey
    used: set[StreamKey] = field(default_factory=set)


class ProgramWatch(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's is untyped
    """Sees every operator of the thread, and is told of every wait."""

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

    def __torch_dispatch__(
        self,
        func: TorchOperator,
        types: object,  # torch's signature
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        out = func(*args, **(kwargs or {}))
        if not self.hardware.cuda.is_current_stream_capturing():
            with self._lock:
                self._note(func, args, kwargs or {}, out)
        return out

    def recorded(self, event: torch.cuda.Event, stream: torch.cuda.Stream) -> None:
        """Take note that ``event`` stands behind the work of ``stream``."""
        with self._lock:
            # On the event itself: weak references to events ended the process (torch 2.11).
            event.seen_by_gpulab = self, self._checker.record(self._key(stream))  # type: ignore[attr-defined] # our mark

    def _seen(self, event: torch.cuda.Event) -> Snapshot | None:
        """Return what an event stands for, if it was recorded in this block."""
        watch, snapshot = getattr(event, "seen_by_gpulab", (None, None))
        return snapshot if watch is self else None

    def stream_waits(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        """Take note that later work of ``stream`` waits for ``event``."""
        with self._lock:
            self._checker.stream_wait(self._key(stream), self._seen(event))

    def event_is_done(self, event: torch.cuda.Event) -> None:
        """Take note that the host has seen ``event`` done."""
        with self._lock:
            self._checker.host_wait(self._seen(event))

    def stream_is_done(self, stream: torch.cuda.Stream) -> None:
        """Take note that the host has seen ``stream`` idle."""
        with self._lock:
            self._checker.host_wait_stream(self._key(stream))

    def device_is_done(self, device: DeviceArgument) -> None:
        """Take note that the host has waited for a device, or for the current one."""
        index = device if isinstance(device, int) else _index_of(device)
        with self._lock:
            current: int = self.hardware.cuda.current_device()
            self._checker.host_wait_device(current if index is None else index)

    def is_kept(self, tensor: torch.Tensor, stream: torch.cuda.Stream) -> None:
        """Take note that the memory of ``tensor`` is kept for ``stream``, once it is dropped."""
        if self.hardware.holds(tensor):
            with self._lock:
                key = self.memories.see(tensor, (self.hardware.index_of(tensor), 0))
                self.memories.tell(key, self._key(stream))

    def host_reads(self, tensor: torch.Tensor, name: str) -> None:
        """Take note that the host reads the memory of ``tensor`` without an operator."""
        if not self.hardware.holds(tensor) and self.memories.has_pinned:
            with self._lock:
                self._checker.host_access(host_access(tensor, is_write=False), name, user_site())

    @contextmanager
    def backward(self) -> Iterator[None]:
        """Take what autograd launches meanwhile as ordered, and its caller's stream behind it."""
        outer, caller = self._backward, self._current(None)
        self._backward = _Backward(user_site(), caller)
        try:
            yield
        finally:
            with self._lock:
                for stream in sorted(self._backward.used):
                    self._checker.stream_wait(caller, self._checker.record(stream))
                self._backward = outer

    def _note(
        self, func: TorchOperator, args: tuple[object, ...], kwargs: dict[str, object], out: object
    ) -> None:
        call = read_call(func, args, kwargs, out)
        on_device = [t for t in (*call.made, *call.written, *call.read) if self.hardware.holds(t)]
        if not on_device:
            if self.memories.has_pinned:
                check_host_operation(self._checker, func, args, kwargs)
            return
        stream = self._current(self.hardware.index_of(on_device[0]))
        for tensor in call.made:
            if self.hardware.holds(tensor):
                self.memories.see(tensor, stream)
        if call.has_kernel:
            self._launched(call, stream)

    def _launched(self, call: ObservedCall, stream: StreamKey) -> None:
        origin = self._origin(call, stream)
        if origin != stream:  # PyTorch lets the two current streams wait for each other
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
        # What was made before the block is taken as allocated for the default stream.
        memory = self.memories.see(tensor, (stream[0], 0))
        if self._backward is not None:  # autograd tells the allocator by itself
            self.memories.tell(memory, stream)
        return host_access(tensor, is_write=is_write)._replace(memory=memory)

    def _origin(self, call: ObservedCall, stream: StreamKey) -> StreamKey:
        """Return the stream that carries a call: a copy between GPUs runs where it reads."""
        sources = [tensor for tensor in call.read if self.hardware.holds(tensor)]
        if not (call.is_copy and sources):
            return stream
        index = self.hardware.index_of(sources[0])
        return stream if index == stream[0] else self._current(index)

    def _copy_waits(self, call: ObservedCall) -> bool:
        """Tell whether the host waits for a copy to or from its own memory."""
        targets = [t for t in (*call.made, *call.written) if not self.hardware.holds(t)]
        sources = [t for t in call.read if not self.hardware.holds(t)]
        if not call.is_copy or not (targets or sources):
            return False
        # From pageable memory the copy goes on alone, but into it PyTorch waits in any case.
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
        # On autograd's own thread no line of the user's runs.
        return self._backward.site if site == NOWHERE and self._backward is not None else site

    def _current(self, index: int | None) -> StreamKey:
        return self._key(self.hardware.cuda.current_stream(index))

    def _key(self, stream: torch.cuda.Stream) -> StreamKey:
        device, identity = stream.device_index, stream.stream_id
        if identity == 0:
            return device, 0
        taken = sum(known == device for known, _ in self._numbers)
        return device, self._numbers.setdefault((device, identity), taken + 1)


def _index_of(device: torch.device | str | None) -> int | None:
    return None if device is None else torch.device(device).index
