"""How a survey reads work that is no point: few samples, in little time, as a row."""

from typing import Any

from gpulab.measurement import Measurement
from gpulab.timing import measure
from gpulab.work import Work

Row = dict[str, Any]

PRECISION = 0.02
MAX_TIME_S = 0.1


def reading(work: Work, method: str, *, cache: str = "hot") -> Measurement:
    """Measure work well enough for a survey.

    Raises
    ------
    KeyboardInterrupt
        Also where the measurement would keep the samples that it has: it is the survey that
        was interrupted.
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


def waited(work: Work) -> Row:
    """Return what one waits for the work, from idle to idle, and how long its call keeps the host.

    The keys are ``total_s`` with its 95 % interval ``low_s`` and ``high_s``, ``n_samples`` and
    ``returns_s``.
    """
    total = reading(work, "synchronized")
    low_s, high_s = total.interval_s
    return {
        "total_s": total.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "n_samples": total.n_samples,
        # Another measurement: the stopwatch of the first one is not read in between.
        "returns_s": reading(work, "naive").median_s,
    }
