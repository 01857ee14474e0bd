"""What the samples allow one to say: each doubt is one pure function over the facts of a run.

A check takes :class:`Facts` and returns a :class:`~gpulab.measurement.Finding` or ``None``.
It touches no device and no clock, so a new doubt is one function, one line in ``CHECKS``
and one test that provokes it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from gpulab import stats
from gpulab.measurement import Finding
from gpulab.units import format_time

__all__ = ["CHECKS", "EVENT_RESOLUTION_S", "Facts", "examine"]

# "a resolution of around 0.5 microseconds": CUDA Runtime API, cudaEventElapsedTime.
EVENT_RESOLUTION_S = 0.5e-6

# Below this an order-statistic interval of the median cannot reach 95 %: 1 - 2 * 0.5**n.
_N_FOR_INTERVAL = 6
_N_FOR_DRIFT = 3 * _N_FOR_INTERVAL
_DRIFT = 0.05
_HOST_PACE = 1.2


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run when its samples have been taken.

    Attributes
    ----------
    samples_s
        Seconds per call, in the order in which they were taken; never empty.
    method
        Name of the timing method.
    inner_loops
        Calls inside each timed interval.
    synchronizes
        Whether the work waits for the GPU inside its call; None if nobody looked.
    host_s
        Seconds that one call, with the event behind it, keeps the host; None if nobody looked.
    """

    samples_s: tuple[float, ...]
    method: str
    inner_loops: int = 1
    synchronizes: bool | None = None
    host_s: float | None = None


def synchronizes_inside(facts: Facts) -> Finding | None:
    """Say that the work waits for the GPU, so that no method can keep the queue full."""
    if not facts.synchronizes:
        return None
    return Finding(
        "synchronizes-inside",
        "the call returned only when all that was queued before it was done: the work waits for "
        "the GPU inside, or launches more than the queue holds",
        "take .item(), .cpu(), print and synchronize out of it, unless you time that wait",
    )


def naive_launch_only(facts: Facts) -> Finding | None:
    """Say that the naive method reads the launch."""
    if facts.method != "naive" or facts.synchronizes:
        return None
    return Finding(
        "naive-launch-only",
        "the naive method waits for nothing: it reads the launch, not the work of the GPU",
        'use method="events" for the time on the GPU, "synchronized" for launch, work and wait',
    )


def launch_bound(facts: Facts) -> Finding | None:
    """Say that an events reading is near the time that the launch takes on the host.

    It says *may*: a kernel that really lasts as long as its launch reads the same.
    """
    if facts.method != "events" or facts.synchronizes or facts.host_s is None:
        return None
    if median(facts.samples_s) > _HOST_PACE * facts.host_s:
        return None
    return Finding(
        "launch-bound",
        f"a call and its event keep the host for {format_time(facts.host_s)}, about as long as "
        "the reading: the GPU may have waited for Python",
        "read it as an upper bound; larger inputs, or a CUDA graph round many calls, say more",
    )


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
    interval_s = median(facts.samples_s) * facts.inner_loops
    if facts.method != "events" or interval_s >= EVENT_RESOLUTION_S:
        return None
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


CHECKS: tuple[Callable[[Facts], Finding | None], ...] = (
    synchronizes_inside,
    naive_launch_only,
    launch_bound,
    too_few_samples,
    below_resolution,
    drifting,
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what there is to doubt about a run, the gravest first; often nothing."""
    return tuple(finding for check in CHECKS if (finding := check(facts)) is not None)
