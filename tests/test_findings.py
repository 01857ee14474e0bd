"""Each doubt is provoked by samples, and stays away where there is no reason for it."""

import pytest

from gpulab.findings import CHECKS, EVENT_RESOLUTION_S, Facts, examine
from gpulab.measurement import Finding

STEADY_S = (1e-3,) * 30


def found(**facts: object) -> Finding:
    """Return the only finding about these facts."""
    (finding,) = examine(Facts(**{"samples_s": STEADY_S, "method": "events"} | facts))
    return finding


def test_steady_samples_of_enough_work_leave_no_doubt() -> None:
    """Thirty equal samples of a millisecond, well above the host's pace, are left alone."""
    facts = Facts(STEADY_S, "events", synchronizes=False, host_s=20e-6)
    assert examine(facts) == ()


def test_work_that_synchronizes() -> None:
    """The message says what was seen, with both of its causes; the advice names the culprits."""
    assert found(synchronizes=True, method="synchronized") == Finding(
        "synchronizes-inside",
        "the call returned only when all that was queued before it was done: the work waits for "
        "the GPU inside, or launches more than the queue holds",
        "take .item(), .cpu(), print and synchronize out of it, unless you time that wait",
    )


def test_naive_reads_the_launch() -> None:
    """A naive reading is called what it is, also where nobody looked whether the work waits."""
    assert found(method="naive") == Finding(
        "naive-launch-only",
        "the naive method waits for nothing: it reads the launch, not the work of the GPU",
        'use method="events" for the time on the GPU, "synchronized" for launch, work and wait',
    )


def test_naive_reading_of_work_that_synchronizes_is_more_than_the_launch() -> None:
    """Where the work waits itself, only that is said."""
    assert found(method="naive", synchronizes=True).code == "synchronizes-inside"


def test_reading_at_the_pace_of_the_host() -> None:
    """An events reading up to 1.2 times the host's time may be the host's pace."""
    assert found(samples_s=(12e-6,) * 10, host_s=10e-6) == Finding(
        "launch-bound",
        "a call and its event keep the host for 10.0 µs, about as long as the reading: "
        "the GPU may have waited for Python",
        "read it as an upper bound; larger inputs, or a CUDA graph round many calls, say more",
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"samples_s": (12.1e-6,) * 10, "host_s": 10e-6},
        {"samples_s": (12e-6,) * 10, "host_s": None},
        {"samples_s": (12e-6,) * 10, "host_s": 10e-6, "method": "synchronized"},
    ],
)
def test_launch_bound_is_said_of_nothing_else(facts: dict[str, object]) -> None:
    """A longer reading, an unknown host time or a host clock is no reason to say it."""
    assert examine(Facts(**{"method": "events"} | facts)) == ()


def test_host_pace_is_not_judged_where_the_work_waits() -> None:
    """The host time of work that waits holds the GPU's time, so it says nothing."""
    assert found(host_s=1e-3, synchronizes=True).code == "synchronizes-inside"


@pytest.mark.parametrize(("n_samples", "given"), [(1, "1 sample"), (5, "5 samples")])
def test_too_few_samples_for_an_interval(n_samples: int, given: str) -> None:
    """Five samples hold the median with 93.75 % at most; six with 96.9 %."""
    assert found(samples_s=(1e-3,) * n_samples) == Finding(
        "too-few-samples",
        f"{given} cannot give a 95 % interval of the median; the range of the samples is shown",
        "take at least 6: raise n_samples or max_time_s",
    )
    assert examine(Facts((1e-3,) * 6, "events")) == ()


def test_interval_below_the_resolution_of_events() -> None:
    """Events less than 0.5 µs apart are told, with both numbers."""
    assert found(samples_s=(0.1e-6,) * 10, inner_loops=4) == Finding(
        "below-resolution",
        "the events are 400 ns apart, and they resolve 500 ns",
        "raise inner_loops until the interval is many times longer",
    )


def test_inner_loops_lift_the_interval_above_the_resolution() -> None:
    """What counts is the interval, not its share per call; the limit itself is enough."""
    assert examine(Facts((EVENT_RESOLUTION_S / 8,) * 10, "events", inner_loops=8)) == ()


def test_resolution_of_events_is_no_matter_of_the_host_clock() -> None:
    """A short synchronized reading is not below the resolution of events."""
    assert examine(Facts((0.1e-6,) * 10, "synchronized")) == ()


@pytest.mark.parametrize(
    ("last_s", "told"),
    [
        (1.15e-3, "the samples rose by 15% from the first third to the last"),
        (0.9e-3, "the samples fell by 10% from the first third to the last"),
    ],
)
def test_samples_that_drift(last_s: float, told: str) -> None:
    """Thirds whose medians' intervals lie apart by 5 % or more are a drift, either way."""
    assert found(samples_s=(1e-3,) * 6 + ((1e-3 + last_s) / 2,) * 6 + (last_s,) * 6) == Finding(
        "drifting",
        told,
        "warm up longer (n_warmup) and look at the clocks; the median mixes two regimes",
    )


@pytest.mark.parametrize(
    "samples_s",
    [
        (1e-3,) * 12 + (1.04e-3,) * 6,
        (1e-3,) * 12 + (1.15e-3,) * 5,
        (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.2e-3) + (1.1e-3,) * 12,
    ],
)
def test_noise_is_not_drift(samples_s: tuple[float, ...]) -> None:
    """Less than 5 %, fewer than 18 samples or intervals that overlap are no drift."""
    assert examine(Facts(samples_s, "events")) == ()


def test_gravest_finding_comes_first() -> None:
    """Findings keep the order of the checks, whichever of them speak."""
    facts = Facts((0.1e-6,), "events", synchronizes=True)
    codes = [finding.code for finding in examine(facts)]
    assert codes == ["synchronizes-inside", "too-few-samples", "below-resolution"]
    assert len(CHECKS) == 6
