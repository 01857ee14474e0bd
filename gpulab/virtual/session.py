"""The virtual GPU as a context that can be entered again and again, with its state kept."""

import importlib
import threading
from types import TracebackType
from typing import Self

from gpulab import gpus
from gpulab.errors import InvalidOptionError, VirtualGpuError
from gpulab.virtual import clock, machine, torch_cuda
from gpulab.virtual.dispatch import VirtualMode


class VirtualGpu:
    """One virtual GPU; inside ``with`` it stands behind ``torch.cuda``.

    Tensors, streams, the cache and the clock live on from one ``with`` to the next.

    Attributes
    ----------
    spec
        The data-sheet figures that it is computed from.
    machine
        Its parts: host, device and memory.
    """

    def __init__(
        self, gpu: str, *, first_use: bool, max_value_elements: int, max_value_flops: int
    ) -> None:
        for name, value in (
            ("max_value_elements", max_value_elements),
            ("max_value_flops", max_value_flops),
        ):
            if value < 0:
                raise InvalidOptionError(f"{name}={value}; it must be at least 0")
        self.spec = gpus.gpu(gpu)
        limits = machine.ValueLimits(max_value_elements, max_value_flops)
        self.machine = machine.Machine(self.spec, limits, first_use=first_use)
        self._undo: list[torch_cuda.Undo] = []
        self._mode: VirtualMode | None = None
        self._depth = 0
        self._thread = 0

    @property
    def entered(self) -> bool:
        """Whether it stands behind ``torch.cuda`` now."""
        return self._depth > 0

    @property
    def now_s(self) -> float:
        """The virtual host's time in seconds; looking costs nothing."""
        return self.machine.host.now_ns / 1e9

    def __enter__(self) -> Self:
        if self._depth == 0:
            self._install()
        elif threading.get_ident() != self._thread:
            raise VirtualGpuError(
                "this virtual GPU is in use on another thread; give each thread its own"
            )
        self._depth += 1
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._remove()

    def _install(self) -> None:
        other = entered()
        if other is not None:
            raise VirtualGpuError(
                f"the virtual {other.spec.name} is entered already; "
                f"leave it before entering the virtual {self.spec.name}"
            )
        # PyTorch imports it at the first addition; it must not see the replaced torch.cuda.
        importlib.import_module("torch._dynamo")
        self._thread = threading.get_ident()
        machine.enter(self.machine)
        _entered.append(self)
        self._undo = torch_cuda.install(self.machine) + clock.install(self.machine.host)
        self._mode = VirtualMode()  # type: ignore[no-untyped-call] # torch's is untyped
        self._mode.__enter__()  # type: ignore[no-untyped-call] # torch's is untyped

    def _remove(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)  # type: ignore[no-untyped-call] # as above
        for undo in reversed(self._undo):
            undo()
        self._undo = []
        machine.leave()
        _entered.remove(self)


# at most one: two devices cannot both stand behind torch.cuda
_entered: list[VirtualGpu] = []


def entered() -> VirtualGpu | None:
    """Return the virtual GPU that stands behind ``torch.cuda`` now, or None."""
    return _entered[-1] if _entered else None
