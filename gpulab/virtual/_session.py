"""``virtual_gpu()``: a context manager that puts a virtual GPU behind ``torch.cuda``."""

import threading
from types import TracebackType
from typing import Self

import torch

from gpulab import gpus
from gpulab.errors import VirtualGpuError
from gpulab.interrupts import Undo, all_are_steps, hold, let_go
from gpulab.requirements import COUNT, COUNT_OR_ZERO, DURATION, FLAG, Requirement
from gpulab.torch_private import leave_mode, mode_flags
from gpulab.virtual import _clock, _settings, _timer_loops
from gpulab.virtual._entered import entered, stack
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.dispatch import VirtualMode
from gpulab.virtual.patches import abandon_captures, install
from gpulab.virtual.simulator import Machine, ValueLimits, enter, leave

_MOST_GPUS = 120  # that PyTorch can tell apart: C10_COMPILE_TIME_MAX_GPUS
_N_GPUS = Requirement(
    f"a whole number from 1 to {_MOST_GPUS}, as many as PyTorch can tell apart",
    lambda value: COUNT.accepts(value) and value <= _MOST_GPUS,
)

_BUDGET = Requirement(
    "a finite number of seconds above 0; max_value_elements=0 switches values off",
    DURATION.accepts,
)

# An operator that is half launched, or a kernel that has half ended, would be so for good.
all_are_steps("gpulab.virtual")


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

    def __init__(  # noqa: PLR0913 # the options of virtual_gpu(), each by its name
        self,
        gpu: str,
        *,
        count: int,
        first_use: bool,
        max_value_elements: int,
        max_value_bytes: int,
        value_budget_s: float,
    ) -> None:
        _N_GPUS.check(count=count)
        COUNT_OR_ZERO.check(max_value_elements=max_value_elements, max_value_bytes=max_value_bytes)
        _BUDGET.check(value_budget_s=value_budget_s)
        FLAG.check(first_use=first_use)
        self.spec = gpus.gpu(gpu)
        limits = ValueLimits(max_value_elements, value_budget_s, max_value_bytes)
        self.machine = Machine(
            self.spec,
            limits,
            first_use=first_use,
            count=count,
            cuda_error=torch.AcceleratorError,
        )
        self._undo = Undo()
        self._depth = 0
        self._thread = 0
        self._default_device = _settings.DefaultDevice()

    @property
    def entered(self) -> bool:
        """Whether it stands behind ``torch.cuda`` now."""
        return self._depth > 0

    @property
    def now_s(self) -> float:
        """The virtual host's time in seconds; looking costs nothing."""
        return self.machine.host.now_ns / 1e9

    def abandon(self) -> None:
        """Keep no values in memory that nobody uses: another GPU takes this one's place."""
        for gpu in self.machine.gpus:
            gpu.memory.abandon()

    def __enter__(self) -> Self:
        if self._depth == 0:
            self._install()
            return self
        if threading.get_ident() != self._thread:
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
        try:
            self._leave()
        except MemoryError:
            if self in stack:
                self._leave()
            raise

    def _leave(self) -> None:
        if self._depth == 0 and self not in stack:
            raise VirtualGpuError(
                f"the virtual {self.spec.name} is not entered, so it cannot be left; leave it "
                "once for each time that you enter it, as `with gpu:` does"
            )
        if threading.get_ident() != self._thread:
            raise VirtualGpuError(
                f"the virtual {self.spec.name} was entered on another thread; leave it there"
            )
        if self._depth > 1:
            self._depth -= 1
        else:
            self._remove()

    def _install(self) -> None:
        other = entered()
        if other is not None and not other.entered:
            other.__exit__(None, None, None)  # an error has cut its beginning or its end off
            other = entered()
        if other is not None:
            raise VirtualGpuError(
                f"the virtual {other.spec.name} is entered already; "
                f"leave it before entering the virtual {self.spec.name}"
            )
        self._thread = threading.get_ident()
        undo = self._undo
        try:
            undo.callback(let_go, self)  # the last one: from there on Ctrl-C is heard at once
            hold(self)
            undo.callback(leave, self.machine)
            enter(self.machine)
            undo.callback(_forget, self)
            stack.append(self)
            _settings.install(self._default_device, undo)
            replaced = Replaced()
            undo.callback(replaced.restore)
            install(self.machine, replaced, undo)
            _clock.install(self.machine.host, replaced, undo)
            _timer_loops.install(self.machine.host, replaced)
            mode = VirtualMode()  # type: ignore[no-untyped-call] # torch's is untyped
            # Not by its own __exit__, which would take off whatever mode is the last one then.
            undo.callback(leave_mode, mode, mode_flags())
            mode.__enter__()  # type: ignore[no-untyped-call] # torch's is untyped
            undo.callback(setattr, self, "_depth", 0)
            self._depth = 1
        except BaseException:  # what fails in the middle is undone as far as it came
            undo.close()
            raise

    def _remove(self) -> None:
        try:
            abandon_captures(self.machine)
        finally:
            self._undo.close()


def _forget(gpu: VirtualGpu) -> None:
    stack[:] = [other for other in stack if other is not gpu]


def virtual_gpu(  # noqa: PLR0913 # all but the first by their names
    gpu: str = "H200",
    *,
    count: int = 1,
    first_use: bool = True,
    max_value_elements: int = 1 << 26,
    max_value_bytes: int = 4 << 30,
    value_budget_s: float = 0.05,
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
    max_value_elements, max_value_bytes
        Tensors of more elements carry no values, and neither do further ones once those that do
        take so many bytes of the host's memory: they have shape, type and cost only. Reading one
        gives ``nan``, with one warning that says why, or raises ``NoValuesError`` where the type
        has no ``nan``. 0 elements switch values off.
    value_budget_s
        Real time that the host may take to compute the values of one operator. It is estimated,
        at 500 GFLOP/s and 10 GB/s (random numbers: 1 GB/s), and not measured: what carries values
        is the same on every machine. Results of longer ones carry none.

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
        max_value_bytes=max_value_bytes,
        value_budget_s=value_budget_s,
    )
