"""Each finding appears for samples that give a reason for it, and for no others."""

from dataclasses import fields
from typing import Any

import pytest

from gpulab import clocks
from gpulab.device.measurement import Finding
from gpulab.timing import METHODS, Floor, MeasurementOptions, examine_samples
from gpulab.timing._event_pairs import EVENT_RESOLUTION_S
from gpulab.timing._findings import CHECKS, examine, host_pace_s
from gpulab.timing._observations import RunObservations, SimulationCost
from gpulab.timing._warmup import WarmUp

STEADY_S = (1e-3,) * 30


def names_of(record: type) -> set[str]:
    """Return the names of a record's fields."""
    return {field.name for field in fields(record)}


def observed(  # noqa: PLR0913  # all but two are keyword-only
    samples_s: tuple[float, ...] = STEADY_S,
    method: str = "events",
    *,
    asked_method: str = "",
    clocks_mhz: tuple[int, int] | None = None,
    throttle_reasons: tuple[str, ...] = (),
    n_flagged: int = 0,
    floor_s: float | None = None,
    **seen: Any,  # noqa: ANN401  # fields of three records
) -> RunObservations:
    """Return the observations of a run, with each given value in the record it belongs to."""
    asked = {"cache": "hot"} | {k: v for k, v in seen.items() if k in names_of(MeasurementOptions)}
    shown = {k: v for k, v in seen.items() if k in names_of(WarmUp)}
    rest = {k: v for k, v in seen.items() if k not in asked | shown}
    low_mhz, high_mhz = clocks_mhz or (None, None)
    return RunObservations(
        samples_s=samples_s,
        options=MeasurementOptions(method=asked_method or method, **asked),
        method=METHODS[method],
        warm_up=WarmUp(**shown),
        stopped_by="precision",
        regime=clocks.Regime("burst", "", low_mhz, high_mhz, reasons=throttle_reasons),
        flagged=tuple(range(n_flagged)),
        floor=None if floor_s is None else Floor(floor_s, floor_s, floor_s, "timer", "H200", 1),
        **rest,
    )


def found(**seen: Any) -> Finding:  # noqa: ANN401  # the options of ``observed``
    """Return the only finding about a run with these observations."""
    (finding,) = examine(observed(**seen))
    return finding


def test_steady_samples_of_enough_work_leave_no_doubt() -> None:
    """Thirty equal samples of 1 ms, far above the host's pace, give no finding."""
    run = observed(STEADY_S, "events", synchronizes=False, host_s=20e-6)
    assert examine(run) == ()


def test_work_that_synchronizes() -> None:
    """The message gives both possible causes, and the advice names the usual calls."""
    assert found(synchronizes=True, method="synchronized") == Finding(
        "synchronizes-inside",
        "the call returned only after everything queued before it was done: the work waits for "
        "the GPU inside, or launches more than the queue can store",
        "take .item(), .cpu(), print and synchronize out of it, unless you time that wait",
    )


def test_naive_reads_the_launch() -> None:
    """Every naive reading gets this finding, even if it is unknown whether the work waits."""
    assert found(method="naive") == Finding(
        "naive-launch-only",
        "the naive method waits for nothing: it reads the launch, not the work of the GPU",
        'use the default method for the time on the GPU, "synchronized" for launch, work and wait',
    )


def test_naive_reading_of_work_that_synchronizes_is_more_than_the_launch() -> None:
    """If the work itself waits, the only finding is synchronizes-inside."""
    assert found(method="naive", synchronizes=True).code == "synchronizes-inside"


def test_reading_at_the_pace_of_the_host() -> None:
    """An events reading of up to 1.2 times the host's time is called launch-bound."""
    assert found(samples_s=(12e-6,) * 10, host_s=10e-6) == Finding(
        "launch-bound",
        "a call and its event take the host 10.0 µs, about as long as the reading: "
        "the GPU may have waited for Python",
        'use method="calibrated", with the host ahead; or a CUDA graph of many calls',
    )


@pytest.mark.parametrize(
    "seen",
    [
        {"samples_s": (12.1e-6,) * 10, "host_s": 10e-6},
        {"samples_s": (12e-6,) * 10, "host_s": None},
        {"samples_s": (12e-6,) * 10, "host_s": 10e-6, "method": "synchronized"},
        {"samples_s": (12e-6,) * 10, "host_s": 10e-6, "method": "profiler"},
        {"samples_s": (12e-6,) * 10, "host_s": 10e-6, "method": "graph"},
    ],
)
def test_no_launch_bound_without_reason(seen: dict[str, object]) -> None:
    """A longer reading, an unknown host time or another method gives no launch-bound finding."""
    assert examine(observed(**seen)) == ()


def test_host_pace_is_not_judged_where_the_work_waits() -> None:
    """If the work waits, its host time includes GPU time and is not judged."""
    assert found(host_s=1e-3, synchronizes=True).code == "synchronizes-inside"


@pytest.mark.parametrize(("n_samples", "given"), [(1, "1 sample"), (5, "5 samples")])
def test_too_few_samples_for_an_interval(n_samples: int, given: str) -> None:
    """Five samples contain the median with at most 93.75 %, so six (96.9 %) are the least."""
    assert found(samples_s=(1e-3,) * n_samples) == Finding(
        "too-few-samples",
        f"{given} cannot give a 95 % interval of the median; the range of the samples is shown",
        "take at least 6: raise n_samples or max_time_s",
    )
    assert examine(observed((1e-3,) * 6, "events")) == ()


def test_interval_below_the_resolution_of_events() -> None:
    """Events less than 0.5 µs apart give a finding with both numbers."""
    assert found(samples_s=(0.1e-6,) * 10, inner_loops=4) == Finding(
        "below-resolution",
        "the events are 400 ns apart, and their resolution is 500 ns",
        "raise inner_loops until the interval is many times longer",
    )


def test_inner_loops_lift_the_interval_above_the_resolution() -> None:
    """The whole interval is compared with the resolution, not its share per call."""
    assert examine(observed((EVENT_RESOLUTION_S / 8,) * 10, "events", inner_loops=8)) == ()


def test_resolution_of_events_does_not_limit_the_host_clock() -> None:
    """A short synchronized reading gets no finding about the resolution of events."""
    assert examine(observed((0.1e-6,) * 10, "synchronized")) == ()


@pytest.mark.parametrize(
    ("last_s", "told"),
    [
        (1.15e-3, "the samples rose by 15 % from the first third to the last"),
        (0.9e-3, "the samples fell by 10 % from the first third to the last"),
    ],
)
def test_samples_that_drift(last_s: float, told: str) -> None:
    """A change of 5 % or more between thirds with separate intervals is a drift, up or down."""
    assert found(samples_s=(1e-3,) * 6 + ((1e-3 + last_s) / 2,) * 6 + (last_s,) * 6) == Finding(
        "drifting",
        told,
        "warm up longer (n_warmup) and look at the clocks; the median mixes two regimes",
    )


@pytest.mark.parametrize(
    "seen",
    [
        {"samples_s": (1.0,) * 30, "least_s": (1.05, "these bytes")},
        {"clocks_mhz": (1940, 2000)},
        {"clocks_mhz": (None, 2000)},
        {"clocks_mhz": (1940, None)},
    ],
)
def test_the_tolerance_itself_is_no_doubt(seen: dict[str, Any]) -> None:
    """A result 5 % above what is possible, or a clock that moved by 3 %, gives no finding.

    Nor does a clock of which only one end could be read.
    """
    assert examine(observed(**seen)) == ()


def test_a_drift_of_exactly_five_percent_counts() -> None:
    """The limit itself is a drift."""
    assert found(samples_s=(20.0,) * 12 + (21.0,) * 6).code == "drifting"


@pytest.mark.parametrize(
    "samples_s",
    [
        (1e-3,) * 12 + (1.04e-3,) * 6,
        (1e-3,) * 12 + (1.15e-3,) * 5,
        (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.2e-3) + (1.1e-3,) * 12,
        (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.2e-3) + (1.2e-3,) * 12,
        (1.2e-3, 1.2e-3, 1.2e-3, 1.2e-3, 1.2e-3, 1e-3) + (1e-3,) * 12,
    ],
)
def test_noise_is_not_drift(samples_s: tuple[float, ...]) -> None:
    """Less than 5 %, fewer than 18 samples or intervals that overlap are no drift."""
    assert "drifting" not in [finding.code for finding in examine(observed(samples_s, "events"))]


def test_gravest_finding_comes_first() -> None:
    """Findings are in the order of the checks, most serious first."""
    run = observed((0.1e-6,), "events", synchronizes=True)
    codes = [finding.code for finding in examine(run)]
    assert codes == ["synchronizes-inside", "too-few-samples", "below-resolution"]
    assert len(CHECKS) == 19


def test_reading_that_no_gpu_can_reach() -> None:
    """A reading 5 % below the data sheet's limit gives a finding with the limit and its source."""
    assert found(least_s=(1.06e-3, "64.0 GB from and to memory")) == Finding(
        "faster-than-roofline",
        "the reading is 1.00 ms, and 64.0 GB from and to memory take at least 1.06 ms: "
        "not all of the work was timed, or the counts are wrong",
        "check that the result is right and that the work runs on the current stream; compare "
        'with method="profiler"',
    )
    assert examine(observed(STEADY_S, "events", least_s=(1.04e-3, "1e+12 operations"))) == ()


def test_work_on_a_side_stream() -> None:
    """If the device stays busy after the current stream is done, a side stream was used."""
    assert found(side_s=0.4e-3) == Finding(
        "side-stream",
        "the device was busy for another 400 µs after the current stream was done: the work uses "
        "another stream, and the reading does not include all of it",
        "join it: torch.cuda.current_stream().wait_stream(side) at the end of the work; or use "
        'method="profiler" or "synchronized"',
    )


def test_replacement_method_is_named() -> None:
    """Work that waits is timed by plain events, and the finding says so."""
    message = found(synchronizes=True, asked_method="calibrated").message
    assert message.endswith("; the method events was used instead of calibrated")


def test_starved_samples() -> None:
    """Samples in which the GPU waited for the host are found, unless the work synchronizes."""
    assert found(n_starved=3) == Finding(
        "starved",
        "in 3 of 30 samples the GPU had to wait for the host, however long it slept first: the "
        "work launches more than the queue can store, or waits",
        'time a part of it, or capture it: method="graph"',
    )
    assert found(n_starved=3, synchronizes=True).code == "synchronizes-inside"


def test_gpu_that_is_done_before_the_host_has_launched() -> None:
    """With the host ahead, a short reading is right; `host_pace_s` is the program's pace."""
    seen = {"samples_s": (2e-6,) * 10, "host_s": 10e-6}
    for method, pace_s in (("calibrated", 10e-6), ("saturated", 10e-6), ("graph", 0.0)):
        run = observed(**seen, method=method)
        assert examine(run) == ()
        assert host_pace_s(run) == pace_s
    run = observed(samples_s=(1.2,) * 10, host_s=1.0, method="calibrated")
    assert host_pace_s(run) == 1.0
    for sample_s in (12.1e-6, 0.0):
        run = observed(samples_s=(sample_s,) * 10, host_s=10e-6, method="calibrated")
        assert host_pace_s(run) == 0


def test_reading_served_by_the_cache() -> None:
    """A finding appears if a call with a cold cache takes over 5 % longer than a hot one."""
    assert found(cold_s=1.2e-3) == Finding(
        "cache-hot",
        "the inputs were in the cache from the call before: with a cold cache a call takes "
        "1.20 ms instead of 1.00 ms",
        'use cache="cold" for work that finds its inputs in memory, as most programs do',
    )
    assert examine(observed(STEADY_S, "events", cold_s=1.05 * 1e-3)) == ()
    assert examine(observed(STEADY_S, "events", cold_s=1.2e-3, cache="cold")) == ()


def test_flush_by_writing() -> None:
    """A flush by writing gives a finding, but only where the cache is flushed."""
    assert found(cache="cold", flush="write").code == "write-flush"
    assert examine(observed(STEADY_S, "events", cache="hot", flush="write")) == ()


def test_clock_that_moved() -> None:
    """A clock that moved by more than 3 % gives a finding with the number of affected samples."""
    assert found(clocks_mhz=(1900, 1980), n_flagged=4) == Finding(
        "clock-changed",
        "the clock was between 1900 and 1980 MHz; in 4 of 30 samples the clock regime differs "
        "from that of most",
        "warm up longer (n_warmup) until it has settled, and compare only at equal clocks",
    )
    assert examine(observed(STEADY_S, "events", clocks_mhz=(1935, 1980))) == ()


def test_a_clock_that_moved_by_exactly_the_limit_is_steady() -> None:
    """A range of exactly 3 % of the higher clock gives no finding."""
    assert examine(observed(STEADY_S, "events", clocks_mhz=(1940, 2000))) == ()
    assert found(clocks_mhz=(1939, 2000)).code == "clock-changed"


def test_little_above_the_floor_is_below_the_resolution() -> None:
    """A reading just above the floor is too short for the resolution, but it is not empty."""
    finding = found(samples_s=(2e-7,) * 10, floor_s=3e-6, host_s=1e-8, method="calibrated")
    assert (finding.code, finding.message) == (
        "below-resolution",
        "the events are 200 ns apart, and their resolution is 500 ns",
    )


@pytest.mark.parametrize(
    ("clocks_mhz", "told"),
    [
        ((1410, 1980), "power cap held the clock at 1410 MHz, down from 1980 MHz"),
        ((1410, 1410), "power cap held the clock at 1410 MHz"),
    ],
)
def test_clock_that_was_held_down(clocks_mhz: tuple[int, int], told: str) -> None:
    """The finding quotes the driver's reason, also for a clock that was low all the time."""
    finding = found(clocks_mhz=clocks_mhz, throttle_reasons=("power cap",))
    assert (finding.code, finding.message) == ("throttled", told)


@pytest.mark.parametrize(("n_times", "told"), [(1, "memory once while"), (3, "memory 3 times")])
def test_memory_asked_for_while_timing(n_times: int, told: str) -> None:
    """A cudaMalloc during the samples gives a finding, because it stops host and device."""
    finding = found(n_allocations=n_times)
    assert finding.code == "allocator-grew"
    assert told in finding.message


def test_records_that_are_missing() -> None:
    """The finding counts the samples whose profiler records are incomplete."""
    finding = found(method="profiler", n_dropped=2)
    assert finding.code == "profiler-dropped-records"
    assert finding.message.startswith("records are missing in 2 of 30 samples")


def test_result_of_zeros() -> None:
    """A result of zeros gives a finding, because power depends on the data."""
    assert found(is_zero=True).code == "zero-result"


def test_work_that_enqueues_nothing() -> None:
    """A reading no longer than the floor means that the work put nothing into the stream."""
    finding = found(samples_s=(0.0,) * 10, floor_s=3e-6, host_s=1e-6, method="calibrated")
    assert finding == Finding(
        "nothing-launched",
        "the events read no more than their floor: the work put nothing into the current stream",
        "check that it runs on the GPU, in this thread and on the current stream",
    )


@pytest.mark.parametrize(
    ("cost", "told", "advice"),
    [
        (
            SimulationCost(2.5, 40, 2.0, 1.0),
            ", so warm-up and samples ended after 1.00 s of it",
            "without values it takes about 2.00 ms and reads the same: ",
        ),
        (
            SimulationCost(2.5, 3_000, 0.15, None),
            "",
            "it simulates 3,000 operations, each in about 50.0 µs: time a smaller part of it",
        ),
    ],
)
def test_real_time_of_a_simulation(cost: SimulationCost, told: str, advice: str) -> None:
    """The finding says what a call takes, and which option makes that shorter."""
    seen = found(simulation=cost)
    assert (seen.code, seen.message) == (
        "slow-simulation",
        f"a call takes 2.50 s of real time on this virtual GPU{told}",
    )
    assert seen.advice.startswith(advice)
    assert seen.advice.endswith("or raise max_time_s")
    assert ("max_value_elements=0" in seen.advice) == ("values" in advice)


@pytest.mark.parametrize(
    ("method", "seen", "told"),
    [
        (
            "profiler",
            {"samples_s": (0.0,) * 10},
            "the driver recorded nothing: the work used no GPU",
        ),
        (
            "saturated",
            {"is_empty": True},
            "the reading is not that of a kernel: the work put nothing into the current stream",
        ),
    ],
)
def test_nothing_to_time(method: str, seen: dict[str, Any], told: str) -> None:
    """The driver's records or the warm-up show that the work enqueued nothing."""
    finding = found(method=method, **seen)
    assert (finding.code, finding.message) == ("nothing-launched", told)


def test_nothing_in_the_current_stream_alone_is_no_doubt() -> None:
    """A profiler reads all streams, and work on another stream has a finding of its own."""
    assert examine(observed(method="profiler", is_empty=True)) == ()
    assert found(method="synchronized", is_empty=True, side_s=1e-3).code == "side-stream"


def test_samples_in_two_clusters() -> None:
    """Two mixed clusters are a finding of their own; a level that moved once is a drift."""
    mixed_s = (1.0e-3, 1.3e-3, 1.0e-3) * 10
    assert found(samples_s=mixed_s).message == (
        "the samples lie in 2 clusters, around 1.00 ms, 1.30 ms: the work ran in more than one way"
    )
    assert found(samples_s=(1.0e-3,) * 15 + (1.3e-3,) * 15).code == "drifting"


def test_samples_alone_are_examined_too() -> None:
    """Samples without a run, such as a CPU's, are checked for drift and number only."""
    assert examine_samples(STEADY_S) == ()
    assert examine_samples((0.1e-6,) * 10) == ()
    drifting_s = (1e-3,) * 15 + (1.3e-3,) * 15
    told = [finding.code for finding in examine_samples(drifting_s)]
    assert told == [finding.code for finding in examine(observed(drifting_s))] == ["drifting"]
    assert [finding.code for finding in examine_samples((1e-3,))] == ["too-few-samples"]


def test_a_shared_gpu() -> None:
    """Other processes are named with their memory; none, or an unknown number, is no finding."""
    others = clocks.OtherProcesses(2, 3 * 2**30)
    assert found(others=others).message == (
        "the GPU is shared with 2 other processes with 3.00 GiB of its memory: their kernels may "
        "delay work and fill the cache"
    )
    assert examine(observed(others=clocks.OtherProcesses(0, 0))) == ()
    assert examine(observed(others=None)) == ()


def test_an_idle_gpu_is_not_throttled() -> None:
    """Work that puts nothing on the GPU says nothing of its clock."""
    findings = examine(
        observed(clocks_mhz=(345, 1980), throttle_reasons=("power cap",), is_empty=True)
    )
    assert {finding.code for finding in findings}.isdisjoint({"throttled", "clock-changed"})


def test_records_of_all_streams_need_no_finding_of_a_side_stream() -> None:
    """A reading from the driver's records includes the work of other streams."""
    assert examine(observed(side_s=0.4e-3, method="profiler")) == ()
