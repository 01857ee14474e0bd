"""Work of a known length for the GPU in use, and the host's stopwatch for it."""

import time
from collections.abc import Callable

import torch


def spin(n_cycles: int) -> None:
    """Enqueue a kernel that does nothing for a number of clock cycles of the GPU."""
    torch.cuda._sleep(n_cycles)  # type: ignore[no-untyped-call]  # noqa: SLF001  # PyTorch has no public name for it


def stopwatch_s(work: Callable[[], object]) -> float:
    """Return the seconds from an idle GPU to the end of the work, by the host's clock."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s
