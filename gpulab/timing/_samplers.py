"""Take samples of one piece of work: the base class of all methods, and the three simplest.

Each timing method is one class. It takes samples and does nothing else: warm-up, stopping and
findings belong to :func:`gpulab.measure`. The methods that adapt while they sample, or prepare
something first, have modules of their own: :mod:`gpulab.timing._saturated`,
:mod:`gpulab.timing._cuda_graph` and :mod:`gpulab.timing._profiler`.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch

from gpulab.device.work import Work, collector_paused
from gpulab.timing._event_pairs import Pair, elapsed_s, new_pairs

__all__ = ["EventSampler", "NaiveSampler", "Sampler", "SynchronizedSampler"]


# What a sampler gives each group of samples to, as soon as it has read them.
Receiver = Callable[[list[float]], object]

# About 1,000 launches may wait for the GPU before the next one blocks the host; stay below.
N_QUEUED = 800
_N_PAIRS = 50  # samples between two waits for the device


class Sampler(ABC):
    """The base class of samplers: each call takes more samples of one piece of work.

    A subclass has the method ``take(n_samples, receive)``. It calls ``receive`` with a list of
    samples as soon as it has read them, so that an interrupt loses only the samples after them.

    Parameters
    ----------
    work
        Enqueues the work to time.
    inner_loops
        Calls of ``work`` in each timed interval; at least 1.
    before
        Called before each sample and not timed: a cache flush, a setup.

    Attributes
    ----------
    n_starved
        Number of samples in which the GPU had to wait for the host although it slept first. The
        work waits for the GPU inside, or launches more kernels than the launch queue can store.
    n_dropped
        Number of samples for which the driver's records are incomplete.

    Examples
    --------
    >>> class AlwaysOneSecond(Sampler):
    ...     def take(self, n_samples, receive):
    ...         receive([1.0] * n_samples)
    >>> AlwaysOneSecond(lambda: None)(3)
    [1.0, 1.0, 1.0]
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        self._work = work
        self._inner_loops = inner_loops
        self._before = before
        self.n_starved = 0
        self.n_dropped = 0

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        samples_s: list[float] = []
        self.take(n_samples, samples_s.extend)
        return samples_s

    @abstractmethod
    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""


class NaiveSampler(Sampler):
    """Times the call alone with the host's clock, without waiting for the GPU.

    Between the samples it waits for the device, outside the timed interval, so each sample is a
    launch into an empty queue. The result is the time that the host needs to enqueue the work
    after a wait: on a real machine a host that has waited longer needs longer (on an H100 20 µs in
    a loop without waits, 300 µs after a wait of 21 ms). It does not say how long the GPU takes,
    unless the work itself waits or fills the launch queue.
    """

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""
        work, inner_loops = self._work, self._inner_loops
        with collector_paused():
            for _ in range(n_samples):
                if self._before is not None:
                    self._before()
                # Empty the queue: a full one would block the launches that are timed here.
                torch.cuda.synchronize()
                start_s = time.perf_counter()
                for _ in range(inner_loops):
                    work()
                receive([(time.perf_counter() - start_s) / inner_loops])
            torch.cuda.synchronize()


class SynchronizedSampler(Sampler):
    """Times from an idle device until the device is idle again, with the host's clock.

    The result is how long a program waits if it needs the result at once: launch, work on the GPU,
    and the wake-up of the host. It is not the time of the kernel: for a short kernel it is mostly
    launch and wake-up.
    """

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""
        work, inner_loops = self._work, self._inner_loops
        with collector_paused():
            for _ in range(n_samples):
                if self._before is not None:
                    self._before()
                # Also waits for the flush or setup, which would otherwise be in the timed
                # interval.
                torch.cuda.synchronize()
                start_s = time.perf_counter()
                for _ in range(inner_loops):
                    work()
                torch.cuda.synchronize()
                receive([(time.perf_counter() - start_s) / inner_loops])


class EventSampler(Sampler):
    """Times with the device's own clock, between two events in the current stream.

    Pairs of events are recorded one after another and read after one wait at the end of each
    batch, so the host may run ahead of the GPU. The result is the time between the events. It is
    longer than the kernel by a floor of a few microseconds. If the GPU is faster than Python, the
    GPU waits between the events, and the result is the time that the host needs. Work on other
    streams is not included; if the work waits for the GPU inside, that wait is.
    """

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""
        # Each sample enqueues its calls, two events and perhaps a flush.
        n_batch = max(1, min(n_samples, _N_PAIRS, N_QUEUED // (self._inner_loops + 3)))
        pairs = new_pairs(n_batch)
        n_taken = 0
        with collector_paused():
            while n_taken < n_samples:
                batch = pairs[: n_samples - n_taken]
                # All pairs are recorded before one is read: reading waits for the GPU, and then
                # the next sample would begin with an empty queue.
                recorded: list[Pair] = []
                try:
                    self._record(batch, recorded)
                    torch.cuda.synchronize()
                except KeyboardInterrupt:
                    # A virtual GPU may compute for minutes after the last pair was recorded.
                    done = [pair for pair in recorded if pair[1].query()]  # type: ignore[no-untyped-call]  # torch's gap
                    receive(self._read(done))
                    raise
                receive(self._read(batch))
                n_taken += len(batch)

    def _record(self, pairs: list[Pair], recorded: list[Pair]) -> None:
        work, inner_loops = self._work, self._inner_loops
        # Looked up once: between the events the look-up would be part of the timed interval.
        stream = torch.cuda.current_stream()
        for pair in pairs:
            start, end = pair
            if self._before is not None:
                self._before()
            start.record(stream)
            for _ in range(inner_loops):
                work()
            end.record(stream)
            recorded.append(pair)

    def _read(self, pairs: list[Pair]) -> list[float]:
        return [elapsed_s(pair) / self._inner_loops for pair in pairs]
