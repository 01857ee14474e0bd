"""Checks of a finished run: each one returns a finding if there is a reason to doubt the run.

Some checks need only the samples; the others take
:class:`~gpulab.timing._observations.RunObservations`. Each returns a
:class:`~gpulab.device.measurement.Finding` or None, and uses neither a device nor a clock. To add
a finding, write one function, one line in ``CHECKS`` and one test that provokes it.
"""

from collections.abc import Callable, Sequence

from gpulab import stats
from gpulab.core.units import counted, format_percent, format_time
from gpulab.device import clocks
from gpulab.device.measurement import Finding
from gpulab.timing._event_pairs import EVENT_RESOLUTION_S
from gpulab.timing._observations import RunObservations

__all__ = ["CHECKS", "examine", "examine_samples"]


RunCheck = Callable[[RunObservations], Finding | None]
SampleCheck = Callable[[Sequence[float]], Finding | None]

# The interval of the median lies between two samples. From n samples it reaches a confidence of
# 1 - 2 * 0.5**n at most, and 6 is the smallest n for which that is at least 95 %.
_N_FOR_INTERVAL = 6
_N_FOR_DRIFT = 3 * _N_FOR_INTERVAL  # each third needs an interval of its own
_DRIFT = 0.05
_EMPTY = "the work put nothing into the current stream"


def too_few_samples(samples_s: Sequence[float]) -> Finding | None:
    """Return a finding if there are too few samples for a 95 % interval of the median."""
    n_samples = len(samples_s)
    if n_samples >= _N_FOR_INTERVAL:
        return None
    return Finding(
        "too-few-samples",
        f"{counted(n_samples, 'sample')} cannot give a 95 % interval of the median; the range of "
        "the samples is shown",
        f"take at least {_N_FOR_INTERVAL}: raise n_samples or max_time_s",
    )


def nothing_launched(run: RunObservations) -> Finding | None:
    """Return a finding if the work enqueued nothing, so that there was nothing to time."""
    reason = _why_empty(run)
    if not reason:
        return None
    return Finding(
        "nothing-launched",
        reason,
        "check that it runs on the GPU, in this thread and on the current stream",
    )


def below_resolution(run: RunObservations) -> Finding | None:
    """Return a finding if the work is too short for the clock of the method."""
    interval_s = run.median_s * run.options.inner_loops
    if run.method.clock != "events" or interval_s >= EVENT_RESOLUTION_S or _why_empty(run):
        return None
    return Finding(
        "below-resolution",
        f"the events are {format_time(interval_s)} apart, and their resolution is "
        f"{format_time(EVENT_RESOLUTION_S)}",
        "raise inner_loops until the interval is many times longer",
    )


def _why_empty(run: RunObservations) -> str:
    """Return what shows that the work enqueued nothing for the method to time; else ``""``."""
    if run.method.clock == "records":  # of all streams
        return "" if run.median_s else "the driver recorded nothing: the work used no GPU"
    # Without work on the stream the events read their floor, and subtracting it leaves about zero.
    if run.method.clock == "events" and run.floor_s and run.median_s <= 0:
        return f"the events read no more than their floor: {_EMPTY}"
    # Work on another stream has a finding of its own.
    if run.warm_up.is_empty and run.warm_up.side_s is None:
        return f"the reading is not that of a kernel: {_EMPTY}"
    return ""


def drifting(samples_s: Sequence[float]) -> Finding | None:
    """Return a finding if the last samples differ from the first by more than their scatter.

    Clocks that fall change the times by 10 % and more. Times of the host wander by about 3 %,
    which is below the limit.
    """
    n_third = len(samples_s) // 3
    if len(samples_s) < _N_FOR_DRIFT:
        return None
    change = stats.drift(samples_s)
    first_low_s, first_high_s = stats.median_interval(samples_s[:n_third])
    last_low_s, last_high_s = stats.median_interval(samples_s[-n_third:])
    apart = last_low_s > first_high_s or last_high_s < first_low_s
    # Both tests are needed: a small change can be significant and harmless, and a large one can be
    # noise.
    if abs(change) < _DRIFT or not apart:
        return None
    return Finding(
        "drifting",
        f"the samples {'rose' if change > 0 else 'fell'} by {format_percent(abs(change))} "
        "from the first third to the last",
        "warm up longer (n_warmup) and look at the clocks; the median mixes two regimes",
    )


def bimodal(samples_s: Sequence[float]) -> Finding | None:
    """Return a finding if the samples form clusters, which a single median hides."""
    centres_s = stats.modes(samples_s)
    # A level that changed once also makes two clusters, but that is a drift.
    if len(centres_s) == 1 or drifting(samples_s) is not None:
        return None
    return Finding(
        "bimodal",
        f"the samples lie in {len(centres_s)} clusters, around "
        f"{', '.join(map(format_time, centres_s))}: the work ran in more than one way",
        "look at the samples (record.to_frame()); the cause may be two clocks, two kernels or a "
        "cache that hits only sometimes",
    )


_HOST_PACE = 1.2  # a time of up to this many times the host's may be the host's
_COLD_OVER_HOT = 1.05
# About how long a launch takes to simulate (python -m benchmarks.virtual_speed).
_LAUNCH_REAL_S = 50e-6
# How much faster than the data sheet's limit a result may be without a finding: data sheets
# round, and the clock may boost a little higher.
_FASTER = 1.05


def faster_than_possible(run: RunObservations) -> Finding | None:
    """Return a finding if the work was faster than the GPU's data sheet allows."""
    if run.least_s is None or run.median_s * _FASTER >= run.least_s[0]:
        return None
    least_s, reason = run.least_s
    return Finding(
        "faster-than-roofline",
        f"the reading is {format_time(run.median_s)}, and {reason} take at least "
        f"{format_time(least_s)}: not all of the work was timed, or the counts are wrong",
        "check that the result is right and that the work runs on the current stream; compare "
        'with method="profiler"',
    )


def side_stream(run: RunObservations) -> Finding | None:
    """Return a finding if the device was still busy when the timed stream was done."""
    side_s = run.warm_up.side_s
    # The driver's records are of all streams, so a reading from them includes it.
    if side_s is None or run.method.clock == "records":
        return None
    return Finding(
        "side-stream",
        f"the device was busy for another {format_time(side_s)} after the current stream was "
        "done: the work uses another stream, and the reading does not include all of it",
        "join it: torch.cuda.current_stream().wait_stream(side) at the end of the work; or use "
        'method="profiler" or "synchronized"',
    )


def synchronizes_inside(run: RunObservations) -> Finding | None:
    """Return a finding if the work waits for the GPU, so that the host cannot run ahead."""
    if not run.warm_up.synchronizes:
        return None
    asked, used = run.options.method, run.method.name
    replaced = "" if asked == used else f"; the method {used} was used instead of {asked}"
    return Finding(
        "synchronizes-inside",
        "the call returned only after everything queued before it was done: the work waits for "
        f"the GPU inside, or launches more than the queue can store{replaced}",
        "take .item(), .cpu(), print and synchronize out of it, unless you time that wait",
    )


def starved(run: RunObservations) -> Finding | None:
    """Return a finding if the host could not get ahead of the GPU."""
    # Work that waits always starves the GPU, and has a finding of its own.
    if not run.n_starved or run.warm_up.synchronizes:
        return None
    return Finding(
        "starved",
        f"in {run.n_starved} of {counted(len(run.samples_s), 'sample')} the GPU had to wait for "
        "the host, however long it slept first: the work launches more than the queue can store, "
        "or waits",
        'time a part of it, or capture it: method="graph"',
    )


def naive_launch_only(run: RunObservations) -> Finding | None:
    """Return a finding if the method was ``"naive"``, which times the launch alone."""
    # If the work itself waits for the GPU, even the naive method includes the GPU's time.
    if run.method.name != "naive" or run.warm_up.synchronizes:
        return None
    return Finding(
        "naive-launch-only",
        "the naive method waits for nothing: it reads the launch, not the work of the GPU",
        'use the default method for the time on the GPU, "synchronized" for launch, work and wait',
    )


def launch_bound(run: RunObservations) -> Finding | None:
    """Return a finding if a time by events is about as long as the launch of the work.

    The message says *may*, because a kernel that really is as long as its launch gives the same
    time.
    """
    if run.method.name != "events" or run.warm_up.is_empty or not (host_s := host_pace_s(run)):
        return None
    return Finding(
        "launch-bound",
        f"a call and its event take the host {format_time(host_s)}, about as long as the reading: "
        "the GPU may have waited for Python",
        'use method="calibrated", with the host ahead; or a CUDA graph of many calls',
    )


def host_pace_s(run: RunObservations) -> float:
    """Return the host's seconds per call if the GPU is done before the next launch, else 0.

    With the host ahead, the measured time is still the GPU's own. But a program that calls the
    work in a loop runs at the pace of the host.
    """
    host_s = run.warm_up.host_s
    # In a graph the device launches the kernels, and work that waits includes the GPU's time.
    if run.method.clock != "events" or run.method.name == "graph" or run.warm_up.synchronizes:
        return 0.0
    return host_s if host_s and 0 < run.median_s <= _HOST_PACE * host_s else 0.0


def cache_hot(run: RunObservations) -> Finding | None:
    """Return a finding if calls were faster because the cache still contained their inputs."""
    if run.options.cache_state != "hot" or run.cold_s is None:
        return None
    if run.cold_s <= _COLD_OVER_HOT * run.median_s:
        return None
    return Finding(
        "cache-hot",
        "the inputs were in the cache from the call before: with a cold cache a call takes "
        f"{format_time(run.cold_s)} instead of {format_time(run.median_s)}",
        'use cache="cold" for work that finds its inputs in memory, as most programs do',
    )


def written_flush(run: RunObservations) -> Finding | None:
    """Return a finding if the flush wrote, so that the timed work had to write lines back."""
    if run.options.cache_state != "cold" or run.options.flush != "write":
        return None
    return Finding(
        "write-flush",
        "the flush left up to half of the cache full of zeros that the timed work had to write "
        "back: up to a third more time on an H200",
        'use flush="read", which leaves the cache cold and clean, unless you compare with a tool '
        "that flushes by writing",
    )


def clock_changed(run: RunObservations) -> Finding | None:
    """Return a finding if the clock changed or was throttled while samples were taken."""
    low_mhz, high_mhz = run.regime.lowest_mhz, run.regime.highest_mhz
    # Work that puts nothing on the GPU leaves it idle, at a clock that says nothing of the work.
    if low_mhz is None or high_mhz is None or run.warm_up.is_empty:
        return None
    # A clock that was held down all the time did not move, and is reported all the same below.
    moved = high_mhz - low_mhz > clocks.TOLERANCE * high_mhz
    if run.regime.reasons:
        return Finding(
            "throttled",
            f"{', '.join(run.regime.reasons)} held the clock at {low_mhz} MHz"
            + (f", down from {high_mhz} MHz" if moved else "")
            + _flagged(run),
            "decide which regime you want: settled (warm up for seconds) or burst (a shorter "
            "run, pauses in between), and name it with the number",
        )
    if not moved:
        return None
    return Finding(
        "clock-changed",
        f"the clock was between {low_mhz} and {high_mhz} MHz" + _flagged(run),
        "warm up longer (n_warmup) until it has settled, and compare only at equal clocks",
    )


def _flagged(run: RunObservations) -> str:
    if not len(run.flagged):
        return ""
    share = f"{len(run.flagged)} of {counted(len(run.samples_s), 'sample')}"
    return f"; in {share} the clock regime differs from that of most"


def shared_gpu(run: RunObservations) -> Finding | None:
    """Return a finding if other processes have the GPU open, which may run work at any moment."""
    if run.others is None or not run.others.number:
        return None
    return Finding(
        "shared-gpu",
        f"the GPU is shared with {run.others}: their kernels may delay work and fill the cache",
        "nvidia-smi lists them; end yours, choose another GPU (CUDA_VISIBLE_DEVICES), or compare "
        "in turns: gpulab.compare",
    )


def allocator_grew(run: RunObservations) -> Finding | None:
    """Return a finding if PyTorch had to ask the driver for memory, which waits for the GPU."""
    if not run.n_allocations:
        return None
    times = "once" if run.n_allocations == 1 else f"{run.n_allocations} times"
    return Finding(
        "allocator-grew",
        f"PyTorch asked the driver for memory {times} while samples were taken, and that stops "
        "host and device",
        "warm up longer (n_warmup), or keep less memory alive from call to call",
    )


def records_dropped(run: RunObservations) -> Finding | None:
    """Return a finding if some of the driver's records are missing."""
    if not run.n_dropped:
        return None
    return Finding(
        "profiler-dropped-records",
        f"records are missing in {run.n_dropped} of {counted(len(run.samples_s), 'sample')}, "
        "which makes those times too short",
        "measure again with fewer samples; profilers drop records when their buffers are full",
    )


def slow_simulation(run: RunObservations) -> Finding | None:
    """Return a finding if the real time of a virtual GPU ended the run, or you did."""
    cost = run.simulation
    if cost is None:
        return None
    limited = ""
    if cost.limit_s is not None:
        limited = f", so warm-up and samples ended after {format_time(cost.limit_s)} of it"
    launches_s = cost.n_launches * _LAUNCH_REAL_S
    # By the clock and by the estimate: kept values are estimated, but not computed again.
    if min(cost.call_s, cost.estimated_s) > 2 * launches_s:
        advice = (
            f"without values it takes about {format_time(launches_s)} and reads the same: "
            "virtual_gpu(..., max_value_elements=0) or gpulab.use(..., max_value_bytes=0); or "
            "raise max_time_s"
        )
    else:
        advice = (
            f"it simulates {counted(round(cost.n_launches), 'operation')}, each in about "
            f"{format_time(_LAUNCH_REAL_S)}: time a smaller part of it, or raise max_time_s"
        )
    return Finding(
        "slow-simulation",
        f"a call takes {format_time(cost.call_s)} of real time on this virtual GPU{limited}",
        advice,
    )


def zero_result(run: RunObservations) -> Finding | None:
    """Return a finding if the result is all zeros, because power and clocks depend on the data."""
    if not run.warm_up.is_zero:
        return None
    return Finding(
        "zero-result",
        "the result is zero everywhere: zeros take less power and so run at higher clocks than "
        "real data (1640 instead of 1440 MHz in large matmuls on an H200)",
        "fill the inputs with random numbers of the size that you will use",
    )


def _of_samples(check: SampleCheck) -> RunCheck:
    """Return a check of the samples as a check of the run."""
    return lambda run: check(run.samples_s)


# In the order of printing: first what makes the number wrong, then what it does not include, then
# the conditions it was taken under, and last how its samples scatter.
CHECKS: tuple[RunCheck, ...] = (
    nothing_launched,
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
    shared_gpu,
    allocator_grew,
    slow_simulation,
    zero_result,
    _of_samples(too_few_samples),
    below_resolution,
    _of_samples(drifting),
    _of_samples(bimodal),
)
SAMPLE_CHECKS: tuple[SampleCheck, ...] = (too_few_samples, drifting, bimodal)


def examine(run: RunObservations) -> tuple[Finding, ...]:
    """Return the findings about a run, the most serious first; often none."""
    return tuple(finding for check in CHECKS if (finding := check(run)) is not None)


def examine_samples(samples_s: Sequence[float]) -> tuple[Finding, ...]:
    """Return the findings about samples alone, when nothing else is known about the run."""
    return tuple(finding for check in SAMPLE_CHECKS if (finding := check(samples_s)) is not None)
