"""``virtual_gpu()``: a context manager that puts a virtual GPU behind ``torch.cuda``."""

import gc
import importlib
import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import torch

from gpulab import gpus
from gpulab.errors import VirtualGpuError
from gpulab.requirements import COUNT, COUNT_OR_ZERO, FLAG, Requirement
from gpulab.virtual import _clock
from gpulab.virtual._entered import entered, stack
from gpulab.virtual.dispatch import VirtualMode
from gpulab.virtual.patches import abandon_captures, install
from gpulab.virtual.simulator import Machine, ValueLimits, enter, leave

_MOST_GPUS = 120  # that PyTorch can tell apart: C10_COMPILE_TIME_MAX_GPUS
_N_GPUS = Requirement(
    f"a whole number from 1 to {_MOST_GPUS}, as many as PyTorch can tell apart",
    lambda value: COUNT.accepts(value) and value <= _MOST_GPUS,
)
_GC_THRESHOLD = 10_000  # allocations between collections of the youngest objects


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
        self,
        gpu: str,
        *,
        count: int,
        first_use: bool,
        max_value_elements: int,
        max_value_flops: int,
    ) -> None:
        _N_GPUS.check(count=count)
        COUNT_OR_ZERO.check(max_value_elements=max_value_elements, max_value_flops=max_value_flops)
        FLAG.check(first_use=first_use)
        self.spec = gpus.gpu(gpu)
        limits = ValueLimits(max_value_elements, max_value_flops)
        self.machine = Machine(
            self.spec,
            limits,
            first_use=first_use,
            count=count,
            cuda_error=torch.AcceleratorError,
        )
        self._undo = ExitStack()
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
        with ExitStack() as undo:  # what fails in the middle is undone as far as it came
            enter(self.machine)
            undo.callback(leave)
            stack.append(self)
            undo.callback(stack.remove, self)
            # Values are computed in small pieces, which several threads make slower, not faster.
            undo.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
            # Pending work is a few dozen objects a launch, none of them garbage: with Python's own
            # thresholds its collector would take longer than the simulation.
            undo.callback(gc.set_threshold, *gc.get_threshold())
            gc.set_threshold(max(_GC_THRESHOLD, gc.get_threshold()[0]), *gc.get_threshold()[1:])
            install(self.machine, undo)
            _clock.install(self.machine.host, undo)
            undo.enter_context(VirtualMode())  # type: ignore[no-untyped-call] # torch's is untyped
            self._undo = undo.pop_all()

    def _remove(self) -> None:
        abandon_captures(self.machine)
        self._undo.close()


def virtual_gpu(
    gpu: str = "H200",
    *,
    count: int = 1,
    first_use: bool = True,
    max_value_elements: int = 1 << 20,
    max_value_flops: int = 50_000_000,
) -> VirtualGpu:
    """Make a virtual GPU; ``with`` puts it behind ``torch.cuda``, as often as wanted.

    Inside the context the virtual clock stands behind ``time.perf_counter`` and its relatives,
    on the thread that entered. Every duration is computed from a model of the named GPU: it is
    no measurement of one. The same seed gives the same random numbers here again, and neither
    those of a CPU generator nor those of a real GPU.

    Parameters
    ----------
    gpu
        A name of :func:`gpulab.gpus.names`, e.g. ``"H200"`` or ``"A100"``.
    count
        How many GPUs the machine has: ``cuda:0``, ``cuda:1`` ...
    first_use
        Whether the first use of the context, of libraries and of each kernel costs time, as it
        does on hardware.
    max_value_elements, max_value_flops
        Tensors above this many elements, and results of more floating-point operations, carry
        no values: they have shape, type and cost only. Reading one gives ``nan``, or raises
        ``NoValuesError`` where the type has no ``nan``.

    Raises
    ------
    UnknownNameError
        If there is no GPU of that name; the message names the nearest.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     torch.arange(3, device="cuda").sum().item()
    3
    """
    return VirtualGpu(
        gpu,
        count=count,
        first_use=first_use,
        max_value_elements=max_value_elements,
        max_value_flops=max_value_flops,
    )
