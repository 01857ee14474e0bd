"""The rungs: each way to time GPU work is one small function, written once against torch.cuda.

A rung takes samples and nothing else. Warm-up, stopping and doubts belong to
:func:`gpulab.measure`, so a new rung is one function, one line in ``METHODS`` and one
exact test.
"""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

import torch

from gpulab.errors import UnknownNameError

__all__ = [
    "METHODS",
    "Method",
    "Rung",
    "Work",
    "collector_paused",
    "events",
    "find_method",
    "naive",
    "new_event",
    "synchronized",
]

Work = Callable[[], object]

# About 1,000 launches may wait for the GPU before the next one blocks the host.
_N_QUEUED = 800
_N_PAIRS = 50


class Rung(Protocol):
    """What every timing method looks like."""

    def __call__(self, work: Work, *, n_samples: int, inner_loops: int = 1) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of ``work``."""
        ...


@dataclass(frozen=True, slots=True)
class Method:
    """A timing method by its name.

    Attributes
    ----------
    name
        What ``method=`` takes.
    function
        Takes the samples.
    summary
        One line on what it reads.
    """

    name: str
    function: Rung
    summary: str


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's garbage collector out of the block, and leave it as it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def naive(work: Work, *, n_samples: int, inner_loops: int = 1) -> list[float]:
    """Time the call alone: a stopwatch round it that waits for nothing.

    The device is drained between the samples, outside of the interval, so that each
    sample is a launch into an empty queue. The number is what the host spends to
    enqueue the work. It says nothing of how long the GPU takes, unless the work itself
    waits or launches more than the queue holds.

    Parameters
    ----------
    work
        Enqueues the work to be timed.
    n_samples, inner_loops
        Timed intervals, and calls of ``work`` inside each; both at least 1.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    samples_s = []
    with collector_paused():
        for _ in range(n_samples):
            torch.cuda.synchronize()
            start_s = time.perf_counter()
            for _ in range(inner_loops):
                work()
            samples_s.append((time.perf_counter() - start_s) / inner_loops)
        torch.cuda.synchronize()
    return samples_s


def synchronized(work: Work, *, n_samples: int, inner_loops: int = 1) -> list[float]:
    """Time from an idle device to an idle device, on the host's clock.

    The number is what a program waits that needs the result at once: the launch, the
    work and the wake-up of the host. It is not the time of the kernel; of a short one
    it is mostly launch and wake-up.

    Parameters
    ----------
    work
        Enqueues the work to be timed.
    n_samples, inner_loops
        Timed intervals, and calls of ``work`` inside each; both at least 1.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    samples_s = []
    with collector_paused():
        for _ in range(n_samples):
            torch.cuda.synchronize()
            start_s = time.perf_counter()
            for _ in range(inner_loops):
                work()
            torch.cuda.synchronize()
            samples_s.append((time.perf_counter() - start_s) / inner_loops)
    return samples_s


def events(work: Work, *, n_samples: int, inner_loops: int = 1) -> list[float]:
    """Time on the device's own clock, between two markers in the current stream.

    Pairs are recorded back to back and read after one wait at the end of each batch, so
    the host may run ahead of the GPU. The number is the time between the markers. It is
    more than the kernel's own time by a floor of a few microseconds; and where the GPU is
    faster than Python it is the pace of the host, because the GPU waits between the
    markers. Work on other streams is outside of it.

    Parameters
    ----------
    work
        Enqueues the work to be timed; should not wait for the GPU.
    n_samples, inner_loops
        Timed intervals, and calls of ``work`` inside each; both at least 1.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    n_batch = max(1, min(n_samples, _N_PAIRS, _N_QUEUED // (inner_loops + 2)))
    pairs = _event_pairs(n_batch)
    samples_s: list[float] = []
    with collector_paused():
        while len(samples_s) < n_samples:
            batch = pairs[: n_samples - len(samples_s)]
            _record(work, batch, inner_loops)
            torch.cuda.synchronize()
            for start, end in batch:
                elapsed_s = start.elapsed_time(end) * 1e-3  # CUDA answers in milliseconds
                samples_s.append(elapsed_s / inner_loops)
    return samples_s


def new_event() -> torch.cuda.Event:
    """Return an event that keeps the time at which the device reaches it."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch's gap


def _event_pairs(n_pairs: int) -> list[tuple[torch.cuda.Event, torch.cuda.Event]]:
    pairs = [(new_event(), new_event()) for _ in range(n_pairs)]
    # The driver makes an event at its first record: outside of the intervals, then.
    for start, end in pairs:
        start.record()
        end.record()
    torch.cuda.synchronize()
    return pairs


def _record(
    work: Work, pairs: list[tuple[torch.cuda.Event, torch.cuda.Event]], inner_loops: int
) -> None:
    stream = torch.cuda.current_stream()  # looked up once, not between the markers
    for start, end in pairs:
        start.record(stream)
        for _ in range(inner_loops):
            work()
        end.record(stream)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method("naive", naive, "the host's clock, nothing waited for: the launch alone"),
            Method("synchronized", synchronized, "the host's clock, from idle to idle device"),
            Method("events", events, "the device's clock, between two events in the stream"),
        )
    }
)


def find_method(name: str) -> Method:
    """Return the timing method of this name.

    Raises
    ------
    UnknownNameError
        If there is none; the message names the nearest.
    """
    if name not in METHODS:
        raise UnknownNameError("timing method", name, METHODS)
    return METHODS[name]
