"""The wall time of one call and of the wait for its end."""

import time

import torch

from gpulab.device.work import Work


def wall_s(work: Work) -> float:
    """Return the seconds that one call takes, from an idle device to an idle device."""
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start_s
