"""Time a piece of work with few samples, for one row in a section of a survey."""

from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.timing import measure
from gpulab.workloads.recordings import Row

PRECISION = 0.02
MAX_TIME_S = 0.1


def brief_measurement(work: Work, method: str, *, cache: str = "hot") -> Measurement:
    """Return a short measurement, with the precision that a survey needs.

    An interrupt raises ``KeyboardInterrupt``, because it ends the whole survey.
    """
    measurement = measure(
        work,
        method=method,
        cache=cache,
        precision=PRECISION,
        max_time_s=MAX_TIME_S,
        progress=False,
    )
    if measurement.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return measurement


def waiting_times(work: Work) -> Row:
    """Return how long the work takes from an idle GPU to an idle GPU, and how long its call takes.

    The keys are ``total_s`` with its 95 % interval ``low_s`` and ``high_s``, ``n_samples``, and
    ``returns_s`` for the call alone.
    """
    total = brief_measurement(work, "synchronized")
    low_s, high_s = total.interval_s
    return {
        "total_s": total.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "n_samples": total.n_samples,
        # A separate measurement, because "synchronized" reads the clock only after the wait.
        "returns_s": brief_measurement(work, "naive").median_s,
    }
