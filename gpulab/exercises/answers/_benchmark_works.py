"""Works for a learner's benchmark: kernels of known length, and others that need a flush."""

from collections.abc import Iterator
from itertools import chain, cycle, repeat

from gpulab.device.work import Work
from gpulab.exercises._gpu_work import spinning

N_SLOW = 55  # slow first calls: more than half of 100 samples, so that they move a median
_SLOW_BY = (40, 20, 30, 10)  # neighbours differ, so that no three of them look steady
OUTLIER_EACH, OUTLIER_BY = 7, 20  # one call in seven takes 20 times as long


def slow_at_first(length_ms: float) -> Work:
    """Return work whose first calls take up to forty times as long, the later ones less."""
    lengths_ms = (
        length_ms * (1 + _SLOW_BY[number % len(_SLOW_BY)] * (1 - number / N_SLOW))
        for number in range(N_SLOW)
    )
    return _in_turn(chain(lengths_ms, repeat(length_ms)))


def sometimes_slow(length_ms: float) -> Work:
    """Return work of which one call in seven takes twenty times as long."""
    usual = (length_ms,) * (OUTLIER_EACH - 1)
    return _in_turn(cycle((*usual, OUTLIER_BY * length_ms)))


def never_steady(length_ms: float) -> Work:
    """Return work whose time doubles and halves again and again."""
    return _in_turn(cycle(factor * length_ms for factor in (1, 2, 4, 2)))


def _in_turn(lengths_ms: Iterator[float]) -> Work:
    """Return work that spins for the next length at each call."""

    def work() -> None:
        spinning(next(lengths_ms))()

    return work


def hot_matmul() -> Work:
    """Return a matmul that reaches the power limit."""
    import torch

    # It reaches the power limit. With lighter work the clock would be the same at any moment, and
    # reading it too early would not show.
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.float16)
    return lambda: a @ a


def reduction() -> Work:
    """Return work that takes another time after each kind of flush."""
    import torch

    # 14 MiB, a quarter of the L2, which stay there between two calls. It only reads, so it pays in
    # full for what another kernel left to be written, and it takes longer than its launch.
    a = torch.randn(896, 4096, device="cuda")
    return lambda: a.logsumexp(1)


def matmul(n: int) -> Work:
    """Return a matmul in single precision."""
    import torch

    a = torch.randn(n, n, device="cuda")
    return lambda: a @ a


def long_sum(n: int) -> Work:
    """Return a sum of zeros."""
    import torch

    a = torch.zeros(n, device="cuda")
    return a.sum


def small_kernels(n_kernels: int) -> Work:
    """Return work of many kernels, each shorter than its launch."""
    import torch

    a = torch.zeros(1 << 14, device="cuda")

    def work() -> None:
        b = a
        for _ in range(n_kernels):
            b = torch.relu(b)

    return work
