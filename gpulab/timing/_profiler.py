"""The driver's own records as a timing method: what the others are judged by."""

from itertools import compress

from gpulab import device
from gpulab.profiling import Records, open_source, split_by_window
from gpulab.timing._samplers import Sampler
from gpulab.timing._saturated import SaturatedSampler
from gpulab.work import Work

__all__ = ["ProfilerSampler", "per_call", "read_calls"]


def per_call(work: Work, *, n_samples: int, before: Work | None = None) -> list[Records]:
    """Return what the device did for each of a number of calls; see :func:`read_calls`."""
    return [call for call, _ in read_calls(work, n_samples=n_samples, before=before)]


def read_calls(
    work: Work, *, n_samples: int, before: Work | None = None
) -> list[tuple[Records, float]]:
    """Return the records of each of a number of calls in one session, and what events read.

    The calls are enqueued as :class:`~gpulab.timing.SaturatedSampler` enqueues its samples, so
    that the span of several kernels does not contain the time of their launches, and the two can
    be compared:
    behind a sleep of 0.3 ms instead of 5 µs a product took up to 5 % longer on an H200. Work on
    another stream that does not wait for the current one starts at once, and then the span
    holds that sleep.

    Parameters
    ----------
    work
        Enqueues the work. What it launches while it runs, on any thread, is counted.
    n_samples
        Number of calls.
    before
        Called ahead of each call; what it launches is not counted.

    Returns
    -------
    list[tuple[Records, float]]
        For each call, in their order, its records, and the seconds that a pair of events round
        it read; in a session they read 0.1 or 0.2 µs more than without. If the profiler loses
        records, as it does without a word, those calls have ``dropped`` set.

    Raises
    ------
    ProfilerBusyError
        If another session of ``torch.profiler`` is open, or another tool holds CUPTI.
    ProfilerUnavailableError
        If the driver gives no records.
    """
    windows: list[tuple[int, int]] = []
    with device.active() as in_use:
        with open_source(in_use) as source:

            def timed_window() -> None:
                start_ns = source.now_ns()
                work()
                windows.append((start_ns, source.now_ns()))

            sampler = SaturatedSampler(timed_window, before=before)
            readings_s = sampler(n_samples)
        calls = split_by_window(source, in_use.name, list(compress(windows, sampler.counted)))
        return list(zip(calls, readings_s, strict=True))


class ProfilerSampler(Sampler):
    """Reads how long the device was busy with each call, from its driver's records.

    Kernels, copies and fills count, on all streams; where several run at once the time counts
    once, and pauses do not count. Records are written by CUPTI through ``torch.profiler``; a
    virtual GPU keeps its own. For one kernel it is the nearest to the truth. It says nothing of
    what a program waits for: launches and pauses are left out.

    Parameters
    ----------
    work, inner_loops, before
        As of every :class:`~gpulab.timing.Sampler`.
    span
        Whether to read from the first start to the last end of what each call made the device
        do, pauses between the kernels included: what events round the work read, less their
        floor.

    Raises
    ------
    ProfilerBusyError, ProfilerUnavailableError
        When it takes samples, if another profiler runs, or the driver gives no records.
    """

    def __init__(
        self,
        work: Work,
        *,
        inner_loops: int = 1,
        before: Work | None = None,
        span: bool = False,
    ) -> None:
        super().__init__(work, inner_loops=inner_loops, before=before)
        self._span = span

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call of the work."""
        calls = per_call(self._all_loops, n_samples=n_samples, before=self._before)
        self.n_dropped += sum(call.dropped for call in calls)
        read_s = [call.span_s if self._span else call.busy_s for call in calls]
        return [sample_s / self._inner_loops for sample_s in read_s]

    def _all_loops(self) -> None:
        for _ in range(self._inner_loops):
            self._work()
