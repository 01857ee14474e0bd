"""Events behind a sleep of the GPU: the host is ahead when the device reaches a sample.

A pair of events reads the time between two moments on the device. If the device is faster than
Python it waits there for the launch, and the pair reads Python. So the device is put to sleep
first, for as long as the host needs to enqueue a few samples, and each sample is kept only if
the device had not yet reached its first event when the host had enqueued its last.

A short sleep stands before each first event, too. What a pair of events reads beyond the kernel
depends on what the device did just before it: less behind another event than behind a kernel, by
up to 0.4 µs on an H200. Behind a kernel of 5 µs it is the same from sample to sample. It depends
on what is queued behind the sample as well: the last nine of fifty read 0.65 µs less than the
others, so some short sleeps follow the last one. (Event records in their place do not help.)
"""

import time

import torch

from gpulab.timing._event_pairs import Pair, elapsed_s, new_pairs
from gpulab.timing._samplers import Sampler
from gpulab.torch_private import spin
from gpulab.work import Work, collector_paused

__all__ = ["SaturatedSampler"]


# About 1,000 launches may wait for the GPU before the next one blocks the host.
_N_QUEUED = 800
_N_PAIRS = 6  # few, as what a pair reads beyond the work differs from batch to batch by 0.2 µs
_N_TRIES = 3
_MARGIN = 1.3  # of sleep over the host's time, for a host that is slower this time
_SLEEP_LEAST_S = 50e-6
_SLEEP_MOST_S = 0.5
_FIRST_GUESS_S = 200e-6
_SPACER_S = 5e-6
_N_SPACERS_AFTER = 12
_CYCLES_PER_S = 2e9  # near every GPU's clock; a sleep that is too short is seen and repeated


class SaturatedSampler(Sampler):
    """Times between two events, with everything enqueued before the device gets there.

    A kernel that sleeps goes ahead, long enough for the host to enqueue a batch of samples; how
    long is measured, not guessed. A sample counts only if the device had not reached its first
    event when its last was enqueued. The number is more than the kernel's own time by the
    events' floor (about 3 µs; :func:`gpulab.timing.floor` finds it), and for several kernels it
    contains the gaps between them.

    If the work waits for the GPU inside, or launches more than the queue holds, no sleep can
    help; the samples are then those of ``"events"``, and are counted in ``n_starved``.

    Attributes
    ----------
    host_s
        Seconds that one sample keeps the host, as last measured.
    counted
        For each sample taken, in order, whether it is among those that were returned.
    pairs
        The events that the samples are read from, reused from batch to batch.
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        self._n_most = max(1, min(_N_PAIRS, (_N_QUEUED - _N_SPACERS_AFTER) // (inner_loops + 4)))
        self._n_failed = 0  # tries of a single sample in a row for which no sleep was long enough
        self.host_s: float | None = None
        self.counted: list[bool] = []
        self.pairs: list[Pair] = []

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        samples_s: list[float] = []
        with collector_paused():
            while len(samples_s) < n_samples:
                # The first sample tells how long the host takes; nothing else can.
                n_wanted = n_samples - len(samples_s) if self.host_s is not None else 1
                n_batch = min(n_wanted, self._n_most)
                if len(self.pairs) < n_batch:
                    self.pairs = new_pairs(min(n_samples, self._n_most))
                samples_s += self._take(self.pairs[:n_batch])
        return [sample_s / self._inner_loops for sample_s in samples_s]

    def _take(self, pairs: list[Pair]) -> list[float]:
        """Return the samples that count of one batch, in seconds."""
        gave_up = self._n_failed >= _N_TRIES
        if not gave_up:
            expected_s = _FIRST_GUESS_S if self.host_s is None else self.host_s * len(pairs)
            _sleep(min(_SLEEP_MOST_S, max(_SLEEP_LEAST_S, _MARGIN * expected_s)))
        start_s = time.perf_counter()
        was_ahead = self._enqueue(pairs)
        host_s = (time.perf_counter() - start_s) / len(pairs)
        torch.cuda.synchronize()
        read_s = [elapsed_s(pair) for pair in pairs]
        if gave_up:
            self.n_starved += was_ahead.count(False)
            self.counted += [True] * len(pairs)
            return read_s
        self.counted += was_ahead
        self._adapt(all(was_ahead), len(pairs), host_s)
        return [sample_s for sample_s, ahead in zip(read_s, was_ahead, strict=True) if ahead]

    def _enqueue(self, pairs: list[Pair]) -> list[bool]:
        """Enqueue a sample for each pair, and tell of which the host was ahead."""
        stream = torch.cuda.current_stream()  # looked up once, not between the markers
        was_ahead = []
        for start, end in pairs:
            if self._before is not None:
                self._before()
            _sleep(_SPACER_S)
            start.record(stream)
            for _ in range(self._inner_loops):
                self._work()
            end.record(stream)
            was_ahead.append(not start.query())  # type: ignore[no-untyped-call]  # torch's gap
        for _ in range(_N_SPACERS_AFTER):
            _sleep(_SPACER_S)
        return was_ahead

    def _adapt(self, was_ahead: bool, n_batch: int, host_s: float) -> None:  # noqa: FBT001 # what was seen
        """Learn from a batch how long the host takes and how many samples the queue holds."""
        if was_ahead:
            self.host_s, self._n_failed = host_s, 0
        elif n_batch > 1:
            # The host was slow for once, or the queue was full: a smaller batch with a longer
            # sleep mends both.
            self._n_most = n_batch // 2
            self.host_s = max(self.host_s or 0.0, host_s)
        else:
            self._n_failed += 1
            self.host_s = max(2 * (self.host_s or 0.0), host_s)


def _sleep(duration_s: float) -> None:
    spin(int(duration_s * _CYCLES_PER_S))
