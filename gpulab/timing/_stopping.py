"""The stopping rule: when there are enough samples, and the loop that takes them until then.

``measure``, ``compare`` and the sampling of work on the CPU all use this rule.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpulab import stats
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._real_time import RealTime


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When to stop sampling: after a number of samples, at a precision, or after some time.

    The precision is that of the median of the judged values, the samples of one run or the ratios
    of two: half the width of its interval is at most this share of it. It is not checked before
    ``n_least`` samples. Sampling also stops when that half width is at most ``resolution``, in the
    unit of the values, or the interval is at most one tick of the clock wide. A tick longer than
    ``coarsest_tick`` is not believed, because two clusters of samples look like a very coarse
    clock; it is 0 if the values are not read from a clock. ``real_time`` ends it too, unless
    ``n_samples`` is given.
    """

    options: MeasurementOptions
    n_least: int
    resolution: float = 0.0
    coarsest_tick: float = 0.0
    real_time: RealTime | None = None

    def reason(self, n_taken: int, elapsed_s: float, judged: Callable[[], Sequence[float]]) -> str:
        """Return the name of the criterion that is met; empty if none is.

        ``elapsed_s`` counts from the start of the first sample by the clock of the program. This
        is wall time, not the sum of the samples: waiting for the device and reading the events
        take time as well. ``judged`` is called only if the precision is checked, because computing
        and sorting the values takes time.
        """
        if self.options.n_samples is not None:
            return "n_samples" if n_taken >= self.options.n_samples else ""
        if n_taken >= self.n_least and self._is_precise(judged()):
            return "precision"
        if n_taken and elapsed_s >= self.options.max_time_s:
            return "max_time"
        is_over = self.real_time is not None and n_taken and self.real_time.is_over()
        return "real_time" if is_over else ""

    def _is_precise(self, values: Sequence[float]) -> bool:
        """Return whether the median's interval is narrow enough, or need not be narrower."""
        low, high = stats.median_interval(values)
        enough = 2 * max(self.options.precision * median(values), self.resolution)
        # More samples never separate two neighbouring ticks of the clock.
        if self.coarsest_tick:
            enough = max(enough, min(stats.tick(values), self.coarsest_tick))
        return high - low <= enough


def take_in_turns(
    turns: Sequence[Callable[[int], None]],
    rule: StoppingRule,
    *,
    count: Callable[[], int],
    judged: Callable[[], Sequence[float]],
    n_next: Callable[[int, float], int],
) -> tuple[int, str]:
    """Take samples until the rule says stop; return their number per run and the criterion.

    A turn takes the given number of samples of a run. Two runs take turns in the order abba abba,
    so that a steady drift affects both equally. ``count`` returns how many samples each run has;
    within a turn, how many all runs have at least. ``n_next`` returns how many to take in the next
    turn, given the number so far and the seconds that they took.

    An interrupt before each run has a sample raises ``KeyboardInterrupt``. A later one ends the
    sampling; one of two runs may then have more samples than the number returned.
    """
    order, n_taken = list(turns), 0
    start_s, elapsed_s = time.perf_counter(), 0.0
    try:
        while not (reason := rule.reason(n_taken, elapsed_s, judged)):
            n_batch = n_next(n_taken, elapsed_s)
            for take in order:
                take(n_batch)
            n_taken = count()
            order.reverse()
            # A clock that is set back must not reduce the time that has passed.
            elapsed_s = max(elapsed_s, time.perf_counter() - start_s)
    except KeyboardInterrupt:
        n_taken = count()
        if n_taken == 0:
            raise
        reason = "interrupt"
    return n_taken, reason
