"""Let ``torch.utils.benchmark.Timer`` wait for the virtual GPU."""

import time
import timeit
from typing import Any

import torch

from gpulab.interrupts import Undo
from gpulab.virtual.simulator import Machine


def install(_machine: Machine, undo: Undo) -> None:
    """Let timers wait for the virtual GPU where torch found no GPU, until ``undo`` is closed."""
    from torch.utils.benchmark.utils.timer import Timer

    make: Any = Timer.__init__
    before = make.__defaults__ or ()

    def waiting() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    # The class bound its timer when it was defined, and without CUDA that waits for nothing.
    swapped = tuple(waiting if value is timeit.default_timer else value for value in before)
    undo.callback(setattr, make, "__defaults__", make.__defaults__)
    make.__defaults__ = swapped
