"""The driver's own records as a timing method: what the others are judged by."""

from itertools import compress

from gpulab import device
from gpulab.profiling import Records, open_source, split_by_window
from gpulab.timing._saturated import Saturated
from gpulab.work import Work, nothing

__all__ = ["Referee", "per_call", "profiler", "profiler_span", "read_calls"]


def per_call(work: Work, *, n_samples: int, before: Work = nothing) -> list[Records]:
    """Return what the device did for each of a number of calls; see :func:`read_calls`."""
    return [call for call, _ in read_calls(work, n_samples=n_samples, before=before)]


def read_calls(
    work: Work, *, n_samples: int, before: Work = nothing
) -> list[tuple[Records, float]]:
    """Call ``work`` a number of times in one session: what each did, and what events read of it.

    The calls are enqueued as :func:`gpulab.timing.saturated` enqueues its own, so that the
    span of several kernels does not hold the time of their launches, and the two can be compared:
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

            def noted() -> None:
                start_ns = source.now_ns()
                work()
                windows.append((start_ns, source.now_ns()))

            enqueue = Saturated(noted, before=before)
            readings_s = enqueue(n_samples)
        calls = split_by_window(source, in_use.name, list(compress(windows, enqueue.counted)))
        return list(zip(calls, readings_s, strict=True))


class Referee:
    """Takes samples from the records that the driver keeps of what the device did.

    Attributes
    ----------
    n_dropped
        Samples of which records are missing, as their number differs from the usual one.
    """

    def __init__(
        self, work: Work, *, inner_loops: int = 1, before: Work = nothing, span: bool = False
    ) -> None:
        self._work = work
        self._before = before
        self._inner_loops = inner_loops
        self._span = span
        self.n_dropped = 0

    def __call__(self, n_samples: int) -> list[float]:
        """Return ``n_samples`` samples, in seconds per call."""
        calls = per_call(self._all_loops, n_samples=n_samples, before=self._before)
        self.n_dropped += sum(call.dropped for call in calls)
        read_s = [call.span_s if self._span else call.busy_s for call in calls]
        return [sample_s / self._inner_loops for sample_s in read_s]

    def _all_loops(self) -> None:
        for _ in range(self._inner_loops):
            self._work()


def profiler(
    work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
) -> list[float]:
    """Read how long the device was busy with each call, from its driver's records.

    Kernels, copies and fills count, on all streams; where several run at once the time counts
    once, and pauses do not count. Records are written by CUPTI through ``torch.profiler``; a
    virtual GPU keeps its own. It is the nearest to the truth of one kernel. It says nothing of
    what a program waits for: launches and pauses are left out.

    Parameters
    ----------
    work
        Enqueues the work to be timed.
    n_samples, inner_loops
        Samples, and calls of ``work`` in each; both at least 1.
    before
        Called ahead of each sample and not counted: a cache flush, a setup.

    Returns
    -------
    list[float]
        ``n_samples`` samples, in seconds per call of ``work``.

    Raises
    ------
    ProfilerBusyError, ProfilerUnavailableError
        If another profiler runs, or the driver gives no records.
    """
    return Referee(work, inner_loops=inner_loops, before=before)(n_samples)


def profiler_span(
    work: Work, *, n_samples: int, inner_loops: int = 1, before: Work = nothing
) -> list[float]:
    """Read from the first start to the last end of what each call made the device do.

    As :func:`profiler`, with the pauses between the kernels: what events round the work read,
    less their floor.
    """
    referee = Referee(work, inner_loops=inner_loops, before=before, span=True)
    return referee(n_samples)
