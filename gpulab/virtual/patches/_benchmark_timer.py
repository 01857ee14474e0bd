"""Let ``torch.utils.benchmark.Timer`` wait for the virtual GPU before it reads the clock.

Its methods that choose their number of readings say so to the timer that they call.
"""

import time
import timeit
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from gpulab.core.interrupts import Undo
from gpulab.virtual.simulator import Machine


def install(_machine: Machine, undo: Undo) -> None:
    """Let timers wait for the virtual GPU, until ``undo`` is closed."""
    from torch.utils.benchmark.utils.timer import Timer

    make: Any = Timer.__init__
    before = make.__defaults__ or ()

    def waiting() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    # The default timer is an argument default that was chosen when the class was defined; without
    # CUDA it is timeit.default_timer, which waits for no GPU.
    swapped = tuple(waiting if value is timeit.default_timer else value for value in before)
    undo.callback(setattr, make, "__defaults__", make.__defaults__)
    make.__defaults__ = swapped
    for name in ("blocked_autorange", "adaptive_autorange"):
        plain = getattr(Timer, name)
        undo.callback(setattr, Timer, name, plain)
        setattr(Timer, name, _choosing(plain))


def _choosing(plain: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(plain)
    def choose(self: Any, *args: Any, **kwargs: Any) -> Any:
        inner = self._timer
        inner.chooses_readings = True
        try:
            return plain(self, *args, **kwargs)
        finally:
            inner.chooses_readings = False

    return choose
