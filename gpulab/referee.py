"""The driver's own records as a timing method: what the others are judged by."""

from gpulab._events import Work, nothing
from gpulab.records import per_call

__all__ = ["Referee", "profiler", "profiler_span"]


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
