"""The time that some work takes on the device alone, as the right programs read it."""

from gpulab.torch_private import spin
from gpulab.work import Work

_AHEAD_CYCLES = 20_000_000  # 10 ms in which the host launches all calls


def device_s(work: Work, n_calls: int = 10) -> float:
    """Return the seconds of one call between two events, with the host ahead.

    Parameters
    ----------
    work
        Puts work into the current stream.
    n_calls
        Calls between the two events.
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
