"""Time work by events with the host ahead, as the right programs of the cases do."""

from gpulab.core.torch_private import spin
from gpulab.device.work import Work

_AHEAD_CYCLES = 20_000_000  # about 10 ms of sleep, in which the host launches all calls


def device_s(work: Work, n_calls: int = 10) -> float:
    """Return the seconds that one call takes on the GPU, without its launch.

    ``n_calls`` calls of ``work`` are between the two events.
    """
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]  # torch's gap
    for _ in range(3):  # first uses
        work()
    torch.cuda.synchronize()
    spin(_AHEAD_CYCLES)
    start.record()
    for _ in range(n_calls):
        work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / n_calls
