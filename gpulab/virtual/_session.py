"""``virtual_gpu()``: a context manager that makes ``torch.cuda`` use a virtual GPU."""

import sys
import threading
from collections.abc import Callable
from functools import cache
from types import TracebackType
from typing import Self

import torch

from gpulab import gpus
from gpulab.core import torch_private, versions
from gpulab.core.errors import UnsupportedVersionError, VirtualGpuError
from gpulab.core.interrupts import Undo, all_are_steps, hold, let_go, step
from gpulab.core.requirements import COUNT, COUNT_OR_ZERO, DURATION, FLAG, TEXT, Requirement
from gpulab.core.torch_private import disable_dispatch, leave_mode, mode_flags
from gpulab.virtual import _clock, _settings, _timer_loops
from gpulab.virtual._entered import entered, stack
from gpulab.virtual._environment import Environment
from gpulab.virtual._freed_memory import return_freed_memory
from gpulab.virtual._replaced import Replaced
from gpulab.virtual._self_check import failures
from gpulab.virtual.dispatch import VirtualMode
from gpulab.virtual.patches import install
from gpulab.virtual.simulator import (
    MODEL_HOST,
    Machine,
    ValueLimits,
    enter,
    leave,
    recorded_host,
)

# PyTorch's own limit: C10_COMPILE_TIME_MAX_GPUS.
_MOST_GPUS = 120
_N_GPUS = Requirement(
    f"a whole number from 1 to {_MOST_GPUS}, the most that PyTorch supports",
    lambda value: COUNT.accepts(value) and value <= _MOST_GPUS,
)

_BUDGET = Requirement(
    "a finite number of seconds above 0; max_value_elements=0 switches values off",
    DURATION.accepts,
)

# Ctrl-C waits for the end of every function of this package: an operator that is half launched, or
# a kernel that has half ended, would stay so.
all_are_steps("gpulab.virtual")
step(torch_private.find_dispatch_rule)

_IN_USE = (
    "the virtual {} is in use on another thread, which measures or is inside `with gpu:`, and a "
    "process has one virtual clock; measure on one thread at a time"
)
# Held from the check whether another thread is inside until this one has entered or left.
_ENTRY = threading.RLock()


class VirtualGpu:
    """A machine with virtual GPUs; inside its ``with`` block ``torch.cuda`` uses it.

    Tensors, streams, the cache and the clock continue from one ``with`` block to the next.

    Attributes
    ----------
    spec
        The data-sheet figures that its times are computed from.
    machine
        The simulated host, GPUs and memory.
    """

    def __init__(  # noqa: PLR0913 # the options of virtual_gpu(), each by its name
        self,
        gpu: str = "H200",
        *,
        count: int = 1,
        first_use: bool = True,
        max_value_elements: int = 1 << 26,
        max_value_bytes: int = 4 << 30,
        value_budget_s: float = 0.05,
        host: str | None = None,
    ) -> None:
        _N_GPUS.check(count=count)
        COUNT_OR_ZERO.check(max_value_elements=max_value_elements, max_value_bytes=max_value_bytes)
        _BUDGET.check(value_budget_s=value_budget_s)
        FLAG.check(first_use=first_use)
        TEXT.or_none.check(host=host)
        self.spec = gpus.gpu(gpu)
        limits = ValueLimits(max_value_elements, value_budget_s, max_value_bytes)
        self.machine = Machine(
            self.spec,
            limits,
            first_use=first_use,
            count=count,
            recorded=MODEL_HOST if host is None else recorded_host(host),
            cuda_error=torch.AcceleratorError,
        )
        self.machine.values.guard = disable_dispatch
        self._undo = Undo()
        self._is_abandoned = False
        self._depth = 0
        self._thread = 0
        self._default_device = _settings.DefaultDevice()
        self._clocks = _clock.HostClocks(self.machine.host)
        self._environment = Environment(count)

    @property
    def entered(self) -> bool:
        """Whether ``torch.cuda`` uses it now."""
        return self._depth > 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether the thread that entered it last, perhaps halfway, is another one."""
        return self._thread != threading.get_ident()

    @property
    def depth(self) -> int:
        """How often it was entered and not left yet."""
        return self._depth

    @property
    def now_s(self) -> float:
        """The virtual host's time in seconds; reading it costs no virtual time."""
        return self.machine.host.now_ns / 1e9

    def abandon(self) -> None:
        """Free the real memory of all values that no tensor uses, now and later.

        ``gpulab.use`` calls it when you choose another GPU: a notebook's history of outputs may
        hold this object for the rest of the process.
        """
        self._is_abandoned = True
        for gpu in self.machine.gpus:
            gpu.memory.abandon()

    @property
    def is_abandoned(self) -> bool:
        """Whether a notebook has chosen another GPU instead of this one."""
        return self._is_abandoned

    def __del__(self, _at_exit: Callable[[], bool] = sys.is_finalizing) -> None:
        # The machine is part of reference cycles, so without this call its values would take real
        # memory until the garbage collector runs. Nobody can enter the machine any more.
        if hasattr(self, "machine") and not _at_exit():
            self.abandon()

    def __enter__(self) -> Self:
        with _ENTRY:
            if self._depth == 0:
                self._install()
                return self
            if self.is_elsewhere:
                raise VirtualGpuError(_IN_USE.format(self.spec.name))
            self._depth += 1
            return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _ENTRY:
            # An entry that was cut off has a depth of 0 but is in the stack, and can be left.
            if self._depth == 0 and self not in stack:
                raise VirtualGpuError(
                    f"the virtual {self.spec.name} is not entered, so it cannot be left; leave it "
                    "once for each time that you enter it, as `with gpu:` does"
                )
            if self.is_elsewhere:
                raise VirtualGpuError(
                    f"the virtual {self.spec.name} was entered on another thread; leave it there"
                )
            if self._depth > 1:
                self._depth -= 1
            else:
                self._remove()

    def _install(self) -> None:
        other = entered()
        if other is not None and other.is_elsewhere:
            raise VirtualGpuError(_IN_USE.format(other.spec.name))
        if other is not None and not other.entered:
            # An error interrupted its beginning or its end, so the rest of the end is done now.
            other.__exit__(None, None, None)
            other = entered()
        if other is not None:
            raise VirtualGpuError(
                f"the virtual {other.spec.name} is entered already; "
                f"leave it before entering the virtual {self.spec.name}"
            )
        self._environment.read()
        self.machine.blocks_launches = self._environment.blocks_launches
        self._thread = threading.get_ident()
        undo = self._undo
        try:
            # Callbacks run in reverse order, and each is added before its action, so that an error
            # between the two is undone as well.
            # The last one to run: after it Ctrl-C has its usual effect.
            undo.callback(let_go, self)
            hold(self)
            undo.callback(leave, self.machine)
            enter(self.machine)
            undo.callback(_forget, self)
            stack.append(self)
            _settings.install(self._default_device, undo)
            replaced = Replaced()
            undo.callback(replaced.restore)
            install(self.machine, replaced, undo)
            _clock.install(self._clocks, replaced, undo)
            _timer_loops.install(self.machine.host, replaced)
            # The mode comes last: operators reach the virtual GPU from here on, and need the rest.
            mode = VirtualMode()  # type: ignore[no-untyped-call] # torch's is untyped
            # The mode's own __exit__ would remove the innermost mode, whichever that is by then.
            undo.callback(leave_mode, mode, mode_flags())
            mode.__enter__()  # type: ignore[no-untyped-call] # torch's is untyped
            # A depth of 0 in the stack shows the next entry that this one was interrupted.
            undo.callback(setattr, self, "_depth", 0)
            self._depth = 1
        except BaseException:
            # Undoes the steps that were done before the error.
            undo.close()
            raise

    def _remove(self) -> None:
        self._undo.close()
        for gpu in self.machine.gpus:
            if not gpu.device.n_pending:
                gpu.memory.drop_unused_values()
        self.machine.values.drop_released()
        return_freed_memory()


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
    host: str | None = None,
) -> VirtualGpu:
    """Return a virtual GPU; inside a ``with`` block of it ``torch.cuda`` uses it.

    You can enter it as often as you like. On the thread that entered it, the clocks of ``time``
    and ``time.sleep`` use the virtual clock. Every duration is computed from a model of the named
    GPU and is not a measurement of one. The same seed always gives the same
    random numbers here; they differ from those of a CPU generator and of a real GPU.

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
        The largest tensor that has values, in elements, and the most real memory for the values
        of all tensors together, in bytes. Tensors beyond these limits have shape, type and cost,
        and no values. If you read one you get ``nan`` and one warning that says why, or
        ``NoValuesError`` if the type has no ``nan``. 0 elements switch values off.
    value_budget_s
        The real time that the host may take to compute the values of one operator. It is an
        estimate with 500 GFLOP/s and 10 GB/s (random numbers: 1 GB/s) and not a measurement, so
        the same tensors have values on every machine. The result of a longer operator has none.
    host
        The name of a recording whose host launches the work, e.g. ``"h100-sxm-2026-11"``; by
        default the model's. ``machine.host.recorded`` says how many times as long its calls take.

    Raises
    ------
    UnknownNameError
        If there is no GPU or no recorded host of that name; the message names the most similar
        one.
    UnsupportedVersionError
        If gpulab was not tried with this torch, and the virtual GPU fails its self-check.

    Examples
    --------
    >>> import gpulab, torch
    >>> with gpulab.virtual_gpu("H200"):
    ...     torch.arange(3, device="cuda").sum().item()
    3
    """
    _check_untried_torch()
    return VirtualGpu(
        gpu,
        count=count,
        first_use=first_use,
        max_value_elements=max_value_elements,
        max_value_bytes=max_value_bytes,
        value_budget_s=value_budget_s,
        host=host,
    )


def self_check() -> str:
    """Return which parts of a new virtual GPU fail with this torch; empty if none does."""
    try:
        with VirtualGpu():
            failed = failures()
    except Exception as error:  # noqa: BLE001 # an unknown torch can fail in any way
        return f"{type(error).__name__}: {error}"
    return "; ".join(f"{name}: {reason}" for name, reason in failed.items())


@cache  # once a process is enough; an error is not stored
def _check_untried_torch() -> None:
    """Refuse a torch that was not tried and with which the virtual GPU fails its self-check."""
    if versions.torch_was_tried():
        return
    versions.warn_of_untried_torch()
    problem = self_check()
    if problem:
        raise UnsupportedVersionError(
            f"the virtual GPU does not work with torch {versions.torch_version()} ({problem}); "
            f"install a torch that was tried: {versions.INSTALL_TORCH}"
        )
