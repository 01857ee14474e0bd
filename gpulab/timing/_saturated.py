"""Time with events after a sleep of the GPU, so that the host has enqueued everything in time.

A pair of events reads the time between two moments on the device. If the device is faster than
Python, it waits for the next launch between the events, and the pair times Python. So the device
sleeps first, for as long as the host needs to enqueue a few samples. A sample counts only if the
device had not reached its first event when the host had enqueued its last.

There is also a short sleep before the first event of each sample. A pair of events reads a little
more than the kernel, and how much more depends on what the device did just before: up to 0.4 µs
less after another event than after a kernel, on an H200. After a kernel of 5 µs it is the same
for all samples. It also depends on what is queued after the sample: the last nine of fifty read
0.65 µs less than the others, so some short sleeps follow the last one. (Event records in their
place do not help.)
"""

import time

import torch

from gpulab.core.torch_private import spin
from gpulab.device.work import Work, collector_paused
from gpulab.timing._event_pairs import Pair, elapsed_s, new_pairs
from gpulab.timing._samplers import N_QUEUED, Receiver, Sampler

__all__ = ["SaturatedSampler"]


# Few pairs per batch: what a pair reads beyond the work differs by 0.2 µs between batches, so
# many small batches average over that.
_N_PAIRS = 6
# After so many single samples that outlasted their sleep, the work waits or fills the queue, and
# no sleep will help. Work that waits must not pay for ever longer sleeps.
_N_TRIES = 3
_MARGIN = 1.3  # the sleep is longer than the host's time, in case the host is slower this time
_SLEEP_LEAST_S = 50e-6
_SLEEP_MOST_S = 0.5
_FIRST_GUESS_S = 200e-6
# For the short sleeps before and after samples, see the docstring of this module.
_SPACER_S = 5e-6
_N_SPACERS_AFTER = 12
# Sleeps count cycles. This is near the clock of every GPU; a sleep that was too short is noticed
# and repeated.
_CYCLES_PER_S = 2e9


class SaturatedSampler(Sampler):
    """Times between two events that are enqueued, with the work, before the GPU reaches them.

    A kernel that sleeps runs first, long enough for the host to enqueue a batch of samples; that
    time is measured, not guessed. A sample counts only if the device had not reached its first
    event when its last was enqueued. The result is longer than the kernel by the floor of the
    events (about 3 µs; :func:`gpulab.timing.floor` finds it). For several kernels it includes the
    gaps between them.

    If the work waits for the GPU inside, or launches more than the queue can store, no sleep
    helps. The samples are then the same as with ``"events"``, and ``n_starved`` counts them.

    ``host_s`` is what the host needed for one sample in the last batch, ``counted`` says for each
    sample taken whether it was returned, and ``pairs`` are the events, reused in every batch.
    """

    def __init__(self, work: Work, *, inner_loops: int = 1, before: Work | None = None) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        # Each sample enqueues its calls, two events, a short sleep and perhaps a flush.
        self._n_most = max(1, min(_N_PAIRS, (N_QUEUED - _N_SPACERS_AFTER) // (inner_loops + 4)))
        # How often in a row the sleep was too short for a batch of a single sample.
        self._n_failed = 0
        self.host_s: float | None = None
        self.counted: list[bool] = []
        self.pairs: list[Pair] = []

    def take(self, n_samples: int, receive: Receiver) -> None:
        """Take ``n_samples`` samples, and give them to ``receive``, in seconds per call."""
        n_taken = 0
        with collector_paused():
            while n_taken < n_samples:
                # The first batch has one sample, to measure how long the host takes.
                n_wanted = n_samples - n_taken if self.host_s is not None else 1
                n_batch = min(n_wanted, self._n_most)
                if len(self.pairs) < n_batch:
                    self.pairs = new_pairs(min(n_samples, self._n_most))
                samples_s = self._take_batch(self.pairs[:n_batch])
                receive([sample_s / self._inner_loops for sample_s in samples_s])
                n_taken += len(samples_s)

    def _take_batch(self, pairs: list[Pair]) -> list[float]:
        """Return those samples of one batch that count, in seconds."""
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
            # These readings contain pauses, but they are an answer; the finding says what they
            # are.
            self.n_starved += was_ahead.count(False)
            self.counted += [True] * len(pairs)
            return read_s
        self.counted += was_ahead
        self._adapt(all(was_ahead), len(pairs), host_s)
        return [sample_s for sample_s, ahead in zip(read_s, was_ahead, strict=True) if ahead]

    def _enqueue(self, pairs: list[Pair]) -> list[bool]:
        """Enqueue a sample for each pair, and return for which of them the host was ahead."""
        # Looked up once: between the events the look-up would make the host slower.
        stream = torch.cuda.current_stream()
        was_ahead = []
        for start, end in pairs:
            if self._before is not None:
                self._before()
            _sleep(_SPACER_S)
            start.record(stream)
            for _ in range(self._inner_loops):
                self._work()
            end.record(stream)
            # The pair's own first event decides, not the end of the sleep: between the two are the
            # flush and the spacer.
            was_ahead.append(not start.query())  # type: ignore[no-untyped-call]  # torch's gap
        for _ in range(_N_SPACERS_AFTER):
            _sleep(_SPACER_S)
        return was_ahead

    def _adapt(self, was_ahead: bool, n_batch: int, host_s: float) -> None:  # noqa: FBT001 # what was seen
        """After a batch, update how long the host takes and how many samples fit into a batch."""
        if was_ahead:
            self.host_s, self._n_failed = host_s, 0
        elif n_batch > 1:
            # The host was slow this time, or the queue was full. A smaller batch with a longer
            # sleep helps in both cases.
            self._n_most = n_batch // 2
            self.host_s = max(self.host_s or 0.0, host_s)
        else:
            self._n_failed += 1
            self.host_s = max(2 * (self.host_s or 0.0), host_s)


def _sleep(duration_s: float) -> None:
    spin(int(duration_s * _CYCLES_PER_S))
