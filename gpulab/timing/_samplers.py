"""Samplers: take samples of one piece of work; the three simplest, by two clocks.

A timing method is one class. It takes samples and nothing else: warm-up, stopping and findings
belong to :func:`gpulab.measure`. The methods that learn while they sample, or prepare something
first, have modules of their own: :mod:`gpulab.timing._saturated`,
:mod:`gpulab.timing._cuda_graph` and :mod:`gpulab.timing._profiler`.
"""

import time
from abc import ABC, abstractmethod

import torch

from gpulab.timing._event_pairs import Pair, elapsed_s, new_pairs
from gpulab.work import Work, collector_paused

__all__ = ["EventSampler", "NaiveSampler", "Sampler", "SynchronizedSampler"]


# About 1,000 launches may wait for the GPU before the next one blocks the host.
_N_QUEUED = 800
_N_PAIRS = 50


class Sampler(ABC):
    """Takes samples of one piece of work, as often as it is called.

    Parameters
    ----------
    work
        Enqueues the work to be timed.
    inner_loops
        Calls of ``work`` inside each timed interval; at least 1.
    before
        Called ahead of each sample and not timed: a cache flush, a setup.

    Attributes
    ----------
    n_starved
        Samples in which the device was ahead of the host, because no sleep helped: the work
        waits for the GPU inside, or launches more than the queue holds.
    n_dropped
        Samples of which the driver's records are not complete.
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        self._work = work
        self._inner_loops = inner_loops
        self._before = before
        self.n_starved = 0
        self.n_dropped = 0

    @abstractmethod
    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""


class NaiveSampler(Sampler):
    """Times the call alone: a stopwatch round it that waits for nothing.

    The device is drained between the samples, outside of the interval, so that each
    sample is a launch into an empty queue. The number is what the host spends to
    enqueue the work. It says nothing of how long the GPU takes, unless the work itself
    waits or launches more than the queue holds.
    """

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        work, inner_loops = self._work, self._inner_loops
        samples_s = []
        with collector_paused():
            for _ in range(n_samples):
                if self._before is not None:
                    self._before()
                torch.cuda.synchronize()
                start_s = time.perf_counter()
                for _ in range(inner_loops):
                    work()
                samples_s.append((time.perf_counter() - start_s) / inner_loops)
            torch.cuda.synchronize()
        return samples_s


class SynchronizedSampler(Sampler):
    """Times from an idle device to an idle device, on the host's clock.

    The number is what a program waits that needs the result at once: the launch, the
    work and the wake-up of the host. It is not the time of the kernel; for a short one
    it is mostly launch and wake-up.
    """

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        work, inner_loops = self._work, self._inner_loops
        samples_s = []
        with collector_paused():
            for _ in range(n_samples):
                if self._before is not None:
                    self._before()
                torch.cuda.synchronize()
                start_s = time.perf_counter()
                for _ in range(inner_loops):
                    work()
                torch.cuda.synchronize()
                samples_s.append((time.perf_counter() - start_s) / inner_loops)
        return samples_s


class EventSampler(Sampler):
    """Times on the device's own clock, between two events in the current stream.

    Pairs are recorded back to back and read after one wait at the end of each batch, so
    the host may run ahead of the GPU. The number is the time between the events. It is
    more than the kernel's own time by a floor of a few microseconds; and where the GPU is
    faster than Python it is the pace of the host, because the GPU waits between the
    events. Work on other streams is outside of it, and work that waits for the GPU inside is
    timed with its wait.
    """

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        n_batch = max(1, min(n_samples, _N_PAIRS, _N_QUEUED // (self._inner_loops + 3)))
        pairs = new_pairs(n_batch)
        samples_s: list[float] = []
        with collector_paused():
            while len(samples_s) < n_samples:
                batch = pairs[: n_samples - len(samples_s)]
                self._record(batch)
                torch.cuda.synchronize()
                samples_s += [elapsed_s(pair) / self._inner_loops for pair in batch]
        return samples_s

    def _record(self, pairs: list[Pair]) -> None:
        work, inner_loops = self._work, self._inner_loops
        stream = torch.cuda.current_stream()  # looked up once, not between the events
        for start, end in pairs:
            if self._before is not None:
                self._before()
            start.record(stream)
            for _ in range(inner_loops):
                work()
            end.record(stream)
