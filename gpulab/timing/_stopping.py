"""The stopping rule: when enough samples have been taken, whatever is judged by them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpulab import stats
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
