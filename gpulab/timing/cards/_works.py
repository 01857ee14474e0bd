"""The works of a card: those of the lessons, and hidden ones whose sizes are random."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import torch

from gpulab.core.torch_private import spin
from gpulab.core.units import format_bytes
from gpulab.device.work import Work

LESSONS, HIDDEN = "lessons", "hidden"
_CYCLES_PER_US = 1980  # boost clock of an H200 in MHz; on others the times are only about right
_N_SLOW = 30  # first calls that are slow: more than half of 50 samples, so a median sees them


@dataclass(frozen=True, slots=True)
class CardWork:
    """One piece of work of a card, of the group ``"lessons"`` if they use it, else ``"hidden"``.

    Its name has its size. ``make`` creates the inputs and returns the work.
    """

    name: str
    group: str
    make: Callable[[], Work]


def works(seed: int) -> tuple[CardWork, ...]:
    """Return the works of a card; the seed determines the sizes of the hidden ones."""
    # The order of these draws is part of what a seed means: a new work draws after them.
    drawn = Random(seed)  # noqa: S311  # sizes, no secrets
    n, n_wide = drawn.randrange(700, 1900), drawn.randrange(2500, 4500)
    n_rows, n_columns = drawn.randrange(500, 8000), drawn.randrange(500, 3000)
    n_kernels, n_us = drawn.randrange(5, 50), drawn.randrange(4, 60)
    n_elements, n_ms = drawn.randrange(1 << 18, 1 << 24), drawn.randrange(2, 6)
    return (
        CardWork("matmul of 2,048", LESSONS, lambda: matmul(2048)),
        CardWork("sum of 128 MiB", LESSONS, lambda: torch.zeros(1 << 25, device="cuda").sum),
        CardWork("10 small kernels", LESSONS, lambda: small_kernels(10)),
        CardWork(f"matmul of {n:,}", HIDDEN, lambda: matmul(n)),
        CardWork(f"half matmul of {n_wide:,}", HIDDEN, lambda: matmul(n_wide, torch.half)),
        CardWork(f"exp of {format_bytes(4 * n_elements)}", HIDDEN, lambda: exp(n_elements)),
        CardWork(
            f"softmax of {n_rows:,} x {n_columns:,}", HIDDEN, lambda: softmax(n_rows, n_columns)
        ),
        CardWork(f"{n_kernels} small kernels", HIDDEN, lambda: small_kernels(n_kernels)),
        CardWork(f"a kernel of about {n_us} µs", HIDDEN, lambda: spinning(n_us)),
        CardWork(f"a kernel of about {n_ms} ms", HIDDEN, lambda: spinning(1000 * n_ms)),
    )


def matmul(n: int, dtype: torch.dtype = torch.float32) -> Work:
    """Return a matmul of square matrices: bound by compute."""
    a, b = torch.randn(2, n, n, device="cuda", dtype=dtype)
    return lambda: a @ b


def exp(n_elements: int) -> Work:
    """Return an exponential of each element: bound by memory."""
    return torch.randn(n_elements, device="cuda").exp


def softmax(n_rows: int, n_columns: int) -> Work:
    """Return a softmax along rows."""
    x = torch.randn(n_rows, n_columns, device="cuda")
    return lambda: torch.softmax(x, dim=1)


def small_kernels(n_kernels: int) -> Work:
    """Return small kernels whose launches take longer than they run: bound by the host."""
    x = torch.randn(1 << 14, device="cuda")

    def work() -> None:
        y = x
        for _ in range(n_kernels):
            y = torch.relu(y)

    return work


def spinning(n_us: float) -> Work:
    """Return a kernel that only waits on the GPU, whatever the state of the cache."""
    n_cycles = round(n_us * _CYCLES_PER_US)
    return lambda: spin(n_cycles)


def slow_at_first(n_us: float) -> Work:
    """Return a spinning kernel whose first calls take longer, decreasing from call to call."""
    # From 40 times the usual length down to about twice; pop() takes the longest first.
    slow = [spinning(n_us * (1 + 39 * n_left / _N_SLOW)) for n_left in range(1, _N_SLOW + 1)]
    usual = spinning(n_us)

    def work() -> None:
        (slow.pop() if slow else usual)()

    return work


def on_another_stream(n_us: float) -> Work:
    """Return a spinning kernel on a side stream; only a synchronization of the device sees it."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # torch's gap
    usual = spinning(n_us)

    def work() -> None:
        with torch.cuda.stream(side):
            usual()

    return work


def waiting(n_us: float) -> Work:
    """Return a spinning kernel followed by a wait for its end, inside the work."""
    usual = spinning(n_us)

    def work() -> None:
        usual()
        torch.cuda.current_stream().synchronize()

    return work
