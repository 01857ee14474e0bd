"""The rungs: each way to time GPU work is one small function, written once against torch.cuda.

A rung takes samples and nothing else. Warm-up, stopping and doubts belong to
:func:`gpulab.measure`, so a new rung is one function, one line in ``METHODS`` and one
exact test. The rungs that learn while they sample, or prepare something first, have modules of
their own: :mod:`gpulab.timing._saturated`, :mod:`gpulab.timing._cuda_graph` and
:mod:`gpulab.timing._profiler`.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Protocol

import torch

from gpulab.errors import UnknownNameError
from gpulab.timing._cuda_graph import Replayed, graph
from gpulab.timing._event_pairs import Pair, elapsed_s, new_pairs
from gpulab.timing._profiler import Referee, profiler, profiler_span
from gpulab.timing._saturated import Saturated, saturated
from gpulab.work import Work, collector_paused, nothing

__all__ = ["METHODS", "Method", "TimingFunction", "events", "find_method", "naive", "synchronized"]


# About 1,000 launches may wait for the GPU before the next one blocks the host.
_N_QUEUED = 800
_N_PAIRS = 50

Sampler = Callable[[int], list[float]]


class TimingFunction(Protocol):
    """What every timing method looks like."""

    def __call__(
        self, work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
    ) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of ``work``."""
        ...


class Prepared(Protocol):
    """A rung that keeps something from one batch of samples to the next."""

    def __call__(self, work: Work, *, inner_loops: int = 1, before: Work = nothing) -> Sampler:
        """Return what takes samples: so many of them, in seconds per call."""
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
    prepared
        The same with a memory, for those who take samples in several batches; None where
        ``function`` has nothing to remember.
    clock
        Whose clock it reads: ``"host"``, ``"events"`` or ``"records"`` of the driver.
    cache
        In which state a cache is that nobody asked for: ``"hot"`` or ``"cold"``.
    floor_of
        Which floor :func:`gpulab.measure` takes off its samples; see :func:`gpulab.timing.floor`.
        None where it takes off none.
    """

    name: str
    function: TimingFunction
    summary: str
    prepared: Prepared | None = None
    clock: str = "events"
    cache: str = "hot"
    floor_of: str | None = None

    def sampler(self, work: Work, *, inner_loops: int, before: Work) -> Sampler:
        """Return what takes so many samples of ``work``, in seconds per call."""
        if self.prepared is not None:
            return self.prepared(work, inner_loops=inner_loops, before=before)
        take = partial(self.function, work, inner_loops=inner_loops, before=before)
        return lambda n_samples: take(n_samples=n_samples)


def naive(
    work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
) -> list[float]:
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
    before
        Called ahead of each sample and not timed: a cache flush, a setup.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    samples_s = []
    with collector_paused():
        for _ in range(n_samples):
            before()
            torch.cuda.synchronize()
            start_s = time.perf_counter()
            for _ in range(inner_loops):
                work()
            samples_s.append((time.perf_counter() - start_s) / inner_loops)
        torch.cuda.synchronize()
    return samples_s


def synchronized(
    work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
) -> list[float]:
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
    before
        Called ahead of each sample and not timed: a cache flush, a setup.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    samples_s = []
    with collector_paused():
        for _ in range(n_samples):
            before()
            torch.cuda.synchronize()
            start_s = time.perf_counter()
            for _ in range(inner_loops):
                work()
            torch.cuda.synchronize()
            samples_s.append((time.perf_counter() - start_s) / inner_loops)
    return samples_s


def events(
    work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
) -> list[float]:
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
    before
        Called ahead of each sample and not timed: a cache flush, a setup.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.
    """
    n_batch = max(1, min(n_samples, _N_PAIRS, _N_QUEUED // (inner_loops + 3)))
    pairs = new_pairs(n_batch)
    samples_s: list[float] = []
    with collector_paused():
        while len(samples_s) < n_samples:
            batch = pairs[: n_samples - len(samples_s)]
            _record(work, batch, inner_loops, before)
            torch.cuda.synchronize()
            samples_s += [elapsed_s(pair) / inner_loops for pair in batch]
    return samples_s


def _record(work: Work, pairs: list[Pair], inner_loops: int, before: Work) -> None:
    stream = torch.cuda.current_stream()  # looked up once, not between the markers
    for start, end in pairs:
        before()
        start.record(stream)
        for _ in range(inner_loops):
            work()
        end.record(stream)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        method.name: method
        for method in (
            Method(
                "naive",
                naive,
                "the host's clock, nothing waited for: the launch alone",
                clock="host",
            ),
            Method(
                "synchronized",
                synchronized,
                "the host's clock, from idle to idle device",
                clock="host",
            ),
            Method("events", events, "the device's clock, between two events in the stream"),
            Method(
                "saturated",
                saturated,
                "events behind a sleep of the GPU, so that the host is ahead",
                Saturated,
                cache="cold",
            ),
            Method(
                "calibrated",
                saturated,
                "the same, less what events read of no work at all: the time on the GPU",
                Saturated,
                cache="cold",
                floor_of="launches",
            ),
            Method(
                "graph",
                graph,
                "events inside a CUDA graph, less their floor: no launch by Python in between",
                Replayed,
                floor_of="graph",
            ),
            Method(
                "profiler",
                profiler,
                "the driver's records, pauses left out: the referee for one kernel",
                Referee,
                clock="records",
                cache="cold",
            ),
            Method(
                "profiler-span",
                profiler_span,
                "the driver's records, from the first start to the last end",
                partial(Referee, span=True),
                clock="records",
                cache="cold",
            ),
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
