"""Time a piece of work briefly, with few samples, for a row of a survey's section."""

from gpulab.measurement import Measurement
from gpulab.recordings import Row
from gpulab.timing import measure
from gpulab.work import Work

PRECISION = 0.02
MAX_TIME_S = 0.1


def brief_measurement(work: Work, method: str, *, cache: str = "hot") -> Measurement:
    """Return a measurement that is precise enough for a survey.

    Raises
    ------
    KeyboardInterrupt
        If the measurement was interrupted, because that ends the whole survey.
    """
    found = measure(
        work,
        method=method,
        cache=cache,
        precision=PRECISION,
        max_time_s=MAX_TIME_S,
        progress=False,
    )
    if found.stopped_by == "interrupt":
        raise KeyboardInterrupt
    return found


def waiting_times(work: Work) -> Row:
    """Return the time of the work from idle to idle, and for how long its call blocks the host.

    The keys are ``total_s`` with its 95 % interval ``low_s`` and ``high_s``, ``n_samples`` and
    ``returns_s``.
    """
    total = brief_measurement(work, "synchronized")
    low_s, high_s = total.interval_s
    return {
        "total_s": total.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "n_samples": total.n_samples,
        # Another measurement: the stopwatch of the first one is not read in between.
        "returns_s": brief_measurement(work, "naive").median_s,
    }
