"""The stopping rule: when enough samples have been taken, and the loop that takes them until then.

Every sampling has this one rule: that of one run, of two in turns, and of work on the CPU.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpulab import stats
from gpulab.progress import Bar
from gpulab.timing._options import MeasurementOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When to stop sampling: after so many samples, or at a precision, or after some time.

    The precision is that of the median of the values that are judged: the samples of one run, or
    the ratios of two runs.

    Attributes
    ----------
    n_samples
        How many samples to take; None leaves it to the precision and the time.
    precision
        Half the width of the median's interval that is good enough, as a share of the median.
    max_time_s
        When to stop in any case, in seconds.
    n_least
        Samples before any precision is claimed.
    resolution
        Half a width of the interval that need not get narrower, in the unit of the values.
    coarsest_tick
        An interval as wide as one tick of the clock is narrow enough. No clock is believed to
        be coarser than this, since two clusters of samples look like a very coarse clock; 0: the
        values are not read from a clock.
    """

    n_samples: int | None = None
    precision: float
    max_time_s: float
    n_least: int
    resolution: float = 0.0
    coarsest_tick: float = 0.0

    @classmethod
    def of_options(
        cls,
        options: MeasurementOptions,
        *,
        n_least: int,
        resolution: float = 0.0,
        coarsest_tick: float = 0.0,
    ) -> "StoppingRule":
        """Return the rule that the options of a measurement ask for."""
        return cls(
            n_samples=options.n_samples,
            precision=options.precision,
            max_time_s=options.max_time_s,
            n_least=n_least,
            resolution=resolution,
            coarsest_tick=coarsest_tick,
        )

    def reason(self, n_taken: int, elapsed_s: float, judged: Callable[[], Sequence[float]]) -> str:
        """Return the name of the criterion that is met; empty while none is.

        Parameters
        ----------
        n_taken
            Samples so far.
        elapsed_s
            Seconds since the first was begun. Wall time, not the readings: draining the device
            and reading back take time as well.
        judged
            Returns the values whose median is to be precise, at least one. It is called only
            where they count, as making and sorting them takes time.
        """
        if self.n_samples is not None:
            return "n_samples" if n_taken >= self.n_samples else ""
        if n_taken >= self.n_least and self._is_precise(judged()):
            return "precision"
        return "max_time" if n_taken and elapsed_s >= self.max_time_s else ""

    def _is_precise(self, values: Sequence[float]) -> bool:
        """Tell whether the median's interval is narrow enough, or as narrow as makes sense."""
        low, high = stats.median_interval(values)
        enough = 2 * max(self.precision * median(values), self.resolution)
        if self.coarsest_tick:
            enough = max(enough, min(stats.tick(values), self.coarsest_tick))
        return high - low <= enough


def take_in_turns(
    turns: Sequence[Callable[[int], None]],
    rule: StoppingRule,
    *,
    judged: Callable[[], Sequence[float]],
    n_next: Callable[[int, float], int],
    progress: bool = False,
) -> tuple[int, str]:
    """Return how many samples every run has taken, and the criterion that ended them.

    Parameters
    ----------
    turns
        For each run, what takes so many more samples of it. Two take turns in the order
        a b b a a b b a, so that a steady drift falls on both alike.
    rule
        When to stop.
    judged
        Returns the values whose precision counts.
    n_next
        Given the samples so far and the seconds that they took, how many to take in the next
        turn.
    progress
        Whether to show a bar after a second.

    Raises
    ------
    KeyboardInterrupt
        If it comes before the first turn of every run is over; a later one ends the sampling.
        One of two runs may then have more samples than were counted.
    """
    order, n_taken = list(turns), 0
    start_s, elapsed_s = time.perf_counter(), 0.0
    with Bar(total=rule.n_samples, desc="measuring", unit=" samples", disable=not progress) as bar:
        try:
            while not (reason := rule.reason(n_taken, elapsed_s, judged)):
                # Shown only where more is to come, so that the time limit makes no bar flash.
                bar.update(n_taken - bar.n)
                n_batch = n_next(n_taken, elapsed_s)
                for take in order:
                    take(n_batch)
                n_taken += n_batch
                order.reverse()
                # A clock that is set back does not make the time that has passed less.
                elapsed_s = max(elapsed_s, time.perf_counter() - start_s)
        except KeyboardInterrupt:
            if n_taken == 0:
                raise
            reason = "interrupt"
    return n_taken, reason
