"""Doubts about how the work ran: where it was launched, on which cache, clock and memory."""

from gpulab._facts import Facts
from gpulab.measurement import Finding
from gpulab.units import format_time

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
