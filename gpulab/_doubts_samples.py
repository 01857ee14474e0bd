"""Doubts that the samples themselves raise: too few, too short, drifting, in clusters."""

from gpulab import stats
from gpulab._facts import Facts
from gpulab.measurement import Finding
from gpulab.units import format_time

# "a resolution of around 0.5 microseconds": CUDA Runtime API, cudaEventElapsedTime.
EVENT_RESOLUTION_S = 0.5e-6

# Below this an order-statistic interval of the median cannot reach 95 %: 1 - 2 * 0.5**n.
_N_FOR_INTERVAL = 6
_N_FOR_DRIFT = 3 * _N_FOR_INTERVAL
_DRIFT = 0.05


def too_few_samples(facts: Facts) -> Finding | None:
    """Say that the printed interval cannot hold the median with 95 % confidence."""
    n_samples = len(facts.samples_s)
    if n_samples >= _N_FOR_INTERVAL:
        return None
    return Finding(
        "too-few-samples",
        f"{n_samples} sample{'s' if n_samples > 1 else ''} cannot give a 95 % interval of the "
        "median; the range of the samples is shown",
        f"take at least {_N_FOR_INTERVAL}: raise n_samples or max_time_s",
    )


def below_resolution(facts: Facts) -> Finding | None:
    """Say that the interval between the events is shorter than events resolve."""
    interval_s = facts.median_s * facts.inner_loops
    if facts.clock != "events" or interval_s >= EVENT_RESOLUTION_S:
        return None
    if facts.floor_s and interval_s <= 0:
        return Finding(
            "below-resolution",
            "the events read no more than their floor: the work put nothing into the current "
            "stream",
            "check that it runs on the GPU, in this thread and on the current stream",
        )
    return Finding(
        "below-resolution",
        f"the events are {format_time(interval_s)} apart, and they resolve "
        f"{format_time(EVENT_RESOLUTION_S)}",
        "raise inner_loops until the interval is many times longer",
    )


def drifting(facts: Facts) -> Finding | None:
    """Say that the last samples differ from the first by more than their scatter.

    Clocks that fall move a reading by 10 % and more; host times wander by 3 % or so, which
    is not told.
    """
    n_third = len(facts.samples_s) // 3
    if len(facts.samples_s) < _N_FOR_DRIFT:
        return None
    change = stats.drift(facts.samples_s)
    first_low_s, first_high_s = stats.median_interval(facts.samples_s[:n_third])
    last_low_s, last_high_s = stats.median_interval(facts.samples_s[-n_third:])
    apart = last_low_s > first_high_s or last_high_s < first_low_s
    if abs(change) < _DRIFT or not apart:
        return None
    return Finding(
        "drifting",
        f"the samples {'rose' if change > 0 else 'fell'} by {abs(change):.0%} "
        "from the first third to the last",
        "warm up longer (n_warmup) and look at the clocks; the median mixes two regimes",
    )


def bimodal(facts: Facts) -> Finding | None:
    """Say that the samples form clusters, which one median hides."""
    centres_s = stats.modes(facts.samples_s)
    # A level that moved once makes two clusters, and is told as what it is.
    if len(centres_s) == 1 or drifting(facts) is not None:
        return None
    return Finding(
        "bimodal",
        f"the samples lie in {len(centres_s)} clusters, round "
        f"{', '.join(map(format_time, centres_s))}: the work ran in more than one way",
        "look at the samples (record.to_frame()); two clocks, two kernels or a cache that "
        "sometimes hits do that",
    )
