"""Time work on the GPU by the host's clock, with a synchronization before and after."""

import time
from collections.abc import Callable

import torch


def stopwatch_s(work: Callable[[], object]) -> float:
    """Return the seconds from an idle GPU to the end of the work, by the host's clock."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s
