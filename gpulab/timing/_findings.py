"""What is known of a run when its samples have been taken; every doubt is drawn from it.

Doubts that the samples themselves raise: too few, too short, drifting, in clusters.

Doubts about how the work ran: where it was launched, on which cache, clock and memory.

What the samples allow one to say: each doubt is one pure function over the facts of a run.

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
    clock
        Whose clock the method reads: ``"host"``, ``"events"`` or ``"records"``.
    asked_method
        The method that was asked for, where another one stood in for it.
    cache, flush
        ``"hot"`` or ``"cold"``, and by which flush.
    cold_s
        Seconds of a call on a cold cache, where a hot run was compared with some cold samples.
    side_s
        Seconds for which the device was still busy when the work's own stream was done.
    n_starved
        Samples that no sleep could put the host ahead of.
    n_dropped
        Samples of which the driver's records are not whole.
    n_allocations
        Times that PyTorch asked the driver for memory while samples were taken.
    is_zero
        Whether the work's result was zero in every element that was looked at.
    least_s
        What no GPU of this name can beat with the FLOPs and bytes that were given, and why.
    clocks_mhz
        Lowest and highest clock seen; None where clocks cannot be read.
    throttle_reasons
        What held the clock down, in the driver's terms.
    n_flagged
        Samples taken in another regime than most.
    floor_s
        What was subtracted from each interval.
    """

    samples_s: tuple[float, ...]
    method: str
    inner_loops: int = 1
    synchronizes: bool | None = None
    host_s: float | None = None
    clock: str = "events"
    asked_method: str = ""
    cache: str = "hot"
    flush: str = "read"
    cold_s: float | None = None
    side_s: float | None = None
    n_starved: int = 0
    n_dropped: int = 0
    n_allocations: int = 0
    is_zero: bool = False
    least_s: tuple[float, str] | None = None
    clocks_mhz: tuple[int, int] | None = None
    throttle_reasons: tuple[str, ...] = ()
    n_flagged: int = 0
    floor_s: float = 0.0

    @property
    def median_s(self) -> float:
        """Median sample, in seconds per call."""
        return median(self.samples_s)


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


_HOST_PACE = 1.2
_COLD_OVER_HOT = 1.05
_CLOCK_CHANGE = 0.03
_FASTER = 1.05  # than a data sheet's limit; sheets round, and clocks may boost a little higher


def faster_than_possible(facts: Facts) -> Finding | None:
    """Say that the reading is below what the GPU's data sheet allows."""
    if facts.least_s is None or facts.median_s * _FASTER >= facts.least_s[0]:
        return None
    least_s, reason = facts.least_s
    return Finding(
        "faster-than-roofline",
        f"the reading is {format_time(facts.median_s)}, and {reason} take at least "
        f"{format_time(least_s)}: not all of the work was timed, or the counts are wrong",
        "check that the result is right and that the work runs on the current stream; compare "
        'with method="profiler"',
    )


def side_stream(facts: Facts) -> Finding | None:
    """Say that the device worked on when the stream that was timed had finished."""
    if facts.side_s is None:
        return None
    return Finding(
        "side-stream",
        f"the device was busy for {format_time(facts.side_s)} more when the current stream was "
        "done: the work uses another stream, and the reading does not hold all of it",
        "join it: torch.cuda.current_stream().wait_stream(side) at the end of the work; or use "
        'method="profiler" or "synchronized"',
    )


def synchronizes_inside(facts: Facts) -> Finding | None:
    """Say that the work waits for the GPU, so that no method can keep the queue full."""
    if not facts.synchronizes:
        return None
    stood_in = f"; {facts.method} stood in for {facts.asked_method}" if facts.asked_method else ""
    return Finding(
        "synchronizes-inside",
        "the call returned only when all that was queued before it was done: the work waits for "
        f"the GPU inside, or launches more than the queue holds{stood_in}",
        "take .item(), .cpu(), print and synchronize out of it, unless you time that wait",
    )


def starved(facts: Facts) -> Finding | None:
    """Say that the host could not be put ahead of the device."""
    if not facts.n_starved or facts.synchronizes:
        return None
    return Finding(
        "starved",
        f"in {facts.n_starved} of {len(facts.samples_s)} samples the device was ahead of the "
        "host, however long it slept: the work launches more than the queue holds, or waits",
        'time a part of it, or capture it: method="graph"',
    )


def naive_launch_only(facts: Facts) -> Finding | None:
    """Say that the naive method reads the launch."""
    if facts.method != "naive" or facts.synchronizes:
        return None
    return Finding(
        "naive-launch-only",
        "the naive method waits for nothing: it reads the launch, not the work of the GPU",
        'use the default method for the time on the GPU, "synchronized" for launch, work and wait',
    )


def launch_bound(facts: Facts) -> Finding | None:
    """Say that the host takes about as long to launch the work as the GPU to do it.

    Of an idle-queue reading it says *may*: a kernel that really lasts as long as its launch
    reads the same. A reading with the host ahead is the GPU's own time, and what is bound to
    the host's pace is a program that calls the work in a loop.
    """
    if facts.clock != "events" or facts.synchronizes or facts.host_s is None:
        return None
    if facts.method == "graph" or not 0 < facts.median_s <= _HOST_PACE * facts.host_s:
        return None
    host = format_time(facts.host_s)
    if facts.method == "events":
        return Finding(
            "launch-bound",
            f"a call and its event keep the host for {host}, about as long as "
            "the reading: the GPU may have waited for Python",
            'use method="calibrated", with the host ahead; or a CUDA graph round many calls',
        )
    return Finding(
        "launch-bound",
        f"the GPU is done sooner than Python has launched the next call ({host}): in a loop this "
        "work runs at the pace of the host",
        "larger inputs, fused kernels or a CUDA graph make that pace matter less",
    )


def cache_hot(facts: Facts) -> Finding | None:
    """Say that a hot reading is shorter than a cold one, so that the cache served it."""
    if facts.cache != "hot" or facts.cold_s is None:
        return None
    if facts.cold_s <= _COLD_OVER_HOT * facts.median_s:
        return None
    return Finding(
        "cache-hot",
        "the inputs were in the cache from the call before: with a cold cache a call takes "
        f"{format_time(facts.cold_s)} instead of {format_time(facts.median_s)}",
        'use cache="cold" for work that finds its inputs in memory, as most programs do',
    )


def written_flush(facts: Facts) -> Finding | None:
    """Say that a flush by writing leaves lines that the timed work must write back."""
    if facts.cache != "cold" or facts.flush != "write":
        return None
    return Finding(
        "write-flush",
        "the flush left up to half of the cache full of zeros that the timed work had to write "
        "back: up to a third more time on an H200",
        'use flush="read", which leaves the cache cold and clean, unless you compare with a tool '
        "that flushes by writing",
    )


def clock_changed(facts: Facts) -> Finding | None:
    """Say that the clock moved, or was held down, while samples were taken."""
    if facts.clocks_mhz is None:
        return None
    low_mhz, high_mhz = facts.clocks_mhz
    moved = high_mhz - low_mhz > _CLOCK_CHANGE * high_mhz
    if facts.throttle_reasons:
        return Finding(
            "throttled",
            f"{', '.join(facts.throttle_reasons)} held the clock at {low_mhz} MHz"
            + (f", down from {high_mhz} MHz" if moved else "")
            + _flagged(facts),
            "decide which regime you want: settled (warm up for seconds) or burst (a shorter "
            "run, pauses in between), and name it with the number",
        )
    if not moved:
        return None
    return Finding(
        "clock-changed",
        f"the clock was between {low_mhz} and {high_mhz} MHz" + _flagged(facts),
        "warm up longer (n_warmup) until it has settled, and compare only at equal clocks",
    )


def _flagged(facts: Facts) -> str:
    if not facts.n_flagged:
        return ""
    return f"; {facts.n_flagged} of {len(facts.samples_s)} samples lie in another regime than most"


def allocator_grew(facts: Facts) -> Finding | None:
    """Say that PyTorch had to ask the driver for memory, which waits for the device."""
    if not facts.n_allocations:
        return None
    times = "once" if facts.n_allocations == 1 else f"{facts.n_allocations} times"
    return Finding(
        "allocator-grew",
        f"PyTorch asked the driver for memory {times} while samples were taken, and that stops "
        "host and device",
        "warm up longer (n_warmup), or keep less memory alive from call to call",
    )


def records_dropped(facts: Facts) -> Finding | None:
    """Say that the driver's records are not whole."""
    if not facts.n_dropped:
        return None
    return Finding(
        "profiler-dropped-records",
        f"records are missing in {facts.n_dropped} of {len(facts.samples_s)} samples, which read "
        "too short",
        "measure again with fewer samples; profilers drop records when their buffers are full",
    )


def zero_result(facts: Facts) -> Finding | None:
    """Say that the result is all zeros, as power and so clocks depend on the data."""
    if not facts.is_zero:
        return None
    return Finding(
        "zero-result",
        "the result is zero everywhere: zeros take less power and so run at higher clocks than "
        "real data (1640 instead of 1440 MHz in large products on an H200)",
        "fill the inputs with random numbers of the size that you will use",
    )


CHECKS: tuple[Callable[[Facts], Finding | None], ...] = (
    faster_than_possible,
    side_stream,
    synchronizes_inside,
    starved,
    naive_launch_only,
    records_dropped,
    launch_bound,
    cache_hot,
    written_flush,
    clock_changed,
    allocator_grew,
    zero_result,
    too_few_samples,
    below_resolution,
    drifting,
    bimodal,
)


def examine(facts: Facts) -> tuple[Finding, ...]:
    """Return what there is to doubt about a run, the gravest first; often nothing."""
    return tuple(finding for check in CHECKS if (finding := check(facts)) is not None)
