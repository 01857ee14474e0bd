"""Runs a learner's function on the GPU in use and says what it did, whatever it did."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real

import torch

from gpulab import device

# Half a millisecond for each million cycles on the GPUs of today; only ratios are judged.
WORK_CYCLES = 4_000_000
BACKLOG_CYCLES = 20_000_000


@dataclass(frozen=True, slots=True)
class Trial:
    """What one call of a learner's function gave and did.

    Attributes
    ----------
    value
        What it returned.
    error
        What it raised, or None.
    n_calls
        How often it called the work it was given.
    n_elapsed
        How often it asked a pair of events for their distance.
    work_s, backlog_s
        What the work, and what was queued in front of it, took by our own stopwatch.
    """

    value: object
    error: Exception | None
    n_calls: int
    n_elapsed: int
    work_s: float
    backlog_s: float

    @property
    def ratio(self) -> float | None:
        """Returned seconds divided by those of the work; None if no number was returned."""
        if isinstance(self.value, bool) or not isinstance(self.value, Real):
            return None
        return float(self.value) / self.work_s


def run(function: Callable[..., object], *, backlog: bool = False) -> Trial:
    """Call a learner's function with some work, on an idle GPU or on one with a backlog.

    Parameters
    ----------
    function
        Takes the work, a function without arguments.
    backlog
        Whether five times as much is still in the queue when it is called.

    Returns
    -------
    Trial
        Times of the GPU in use, real or virtual: only their ratios mean something.
    """
    calls: list[None] = []

    def work() -> None:
        calls.append(None)
        _spin(WORK_CYCLES)

    with device.active():
        _spin(1)  # the first launch of all pays for loading the kernel
        work_s = _stopwatch(WORK_CYCLES)
        backlog_s = _stopwatch(BACKLOG_CYCLES) if backlog else 0.0
        if backlog:
            _spin(BACKLOG_CYCLES)
        with _elapsed_calls() as elapsed:
            value, error = _call(function, work)
        torch.cuda.synchronize()
    return Trial(value, error, len(calls), len(elapsed), work_s, backlog_s)


def _call(
    function: Callable[..., object], work: Callable[[], None]
) -> tuple[object, Exception | None]:
    try:
        return function(work), None
    except Exception as error:  # noqa: BLE001  # a learner's function may raise anything
        return None, error


def _spin(cycles: int) -> None:
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]  # torch's gap


def _stopwatch(cycles: int) -> float:
    torch.cuda.synchronize()
    start_s = time.perf_counter()
    _spin(cycles)
    torch.cuda.synchronize()
    return time.perf_counter() - start_s


@contextmanager
def _elapsed_calls() -> Iterator[list[None]]:
    """Count the calls of ``torch.cuda.Event.elapsed_time``; the method is put back."""
    calls: list[None] = []
    event = torch.cuda.Event
    original = event.elapsed_time

    def elapsed_time(self: torch.cuda.Event, end_event: torch.cuda.Event) -> float:
        calls.append(None)
        elapsed_ms: float = original(self, end_event)
        return elapsed_ms

    event.elapsed_time = elapsed_time  # type: ignore[method-assign]  # put back below
    try:
        yield calls
    finally:
        event.elapsed_time = original  # type: ignore[method-assign]  # as it was
