"""Each finding appears for samples that give a reason for it, and for no others."""

from dataclasses import fields
from typing import Any

import pytest

from gpulab import clocks
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


US = 1e-6
PACE = {"samples_s": (12e-6,) * 10, "host_s": 10e-6}
NOTHING = {"samples_s": (0.0,) * 10}
SHORT = {"samples_s": (0.1 * US,) * 10}
WAITS = {"synchronizes": True}
DRIFTS_S = (1e-3,) * 6 + (1.075e-3,) * 6 + (1.15e-3,) * 6
POWER_CAP = {"throttle_reasons": ("power cap",)}
BYTES = "64.0 GB from and to memory"

# Observations, the finding's code, and texts with the numbers that its message must contain.
FINDINGS: list[tuple[dict[str, Any], str, tuple[str, ...]]] = [
    (WAITS | {"method": "synchronized"}, "synchronizes-inside", ()),
    (WAITS | {"method": "naive"}, "synchronizes-inside", ()),
    (WAITS | {"host_s": 1e-3}, "synchronizes-inside", ()),
    (WAITS | {"n_starved": 3}, "synchronizes-inside", ()),
    (WAITS | {"asked_method": "calibrated"}, "synchronizes-inside", ("events", "calibrated")),
    ({"method": "naive"}, "naive-launch-only", ()),
    (PACE, "launch-bound", ("10.0 µs",)),
    ({"samples_s": (1e-3,)}, "too-few-samples", ("1 sample cannot",)),
    ({"samples_s": (1e-3,) * 5}, "too-few-samples", ("5 samples cannot",)),
    (SHORT | {"inner_loops": 4}, "below-resolution", ("400 ns", "500 ns")),
    (
        {"samples_s": (2e-7,) * 10, "floor_s": 3e-6, "host_s": 1e-8, "method": "calibrated"},
        "below-resolution",
        ("200 ns",),
    ),
    ({"samples_s": DRIFTS_S}, "drifting", ("rose by 15 %",)),
    ({"samples_s": DRIFTS_S[::-1]}, "drifting", ("fell by 13 %",)),
    ({"samples_s": (20.0,) * 12 + (21.0,) * 6}, "drifting", ("rose by 5 %",)),
    ({"samples_s": (1.0e-3,) * 15 + (1.3e-3,) * 15}, "drifting", ()),
    (
        {"samples_s": (1.0e-3, 1.3e-3, 1.0e-3) * 10},
        "bimodal",
        ("2 clusters, around 1.00 ms, 1.30 ms",),
    ),
    ({"least_s": (1.06e-3, BYTES)}, "faster-than-roofline", ("1.00 ms", BYTES, "1.06 ms")),
    ({"side_s": 0.4e-3}, "side-stream", ("400 µs",)),
    ({"method": "synchronized", "is_empty": True, "side_s": 1e-3}, "side-stream", ("1.00 ms",)),
    ({"n_starved": 3}, "starved", ("3 of 30 samples",)),
    ({"cold_s": 1.2e-3}, "cache-hot", ("1.20 ms instead of 1.00 ms",)),
    ({"cache": "cold", "flush": "write"}, "write-flush", ()),
    ({"clocks_mhz": (1939, 2000)}, "clock-changed", ("between 1939 and 2000 MHz",)),
    (
        {"clocks_mhz": (1900, 1980), "n_flagged": 4},
        "clock-changed",
        ("1900 and 1980 MHz; in 4 of 30 samples",),
    ),
    (
        POWER_CAP | {"clocks_mhz": (1410, 1980)},
        "throttled",
        ("power cap held the clock at 1410 MHz, down from 1980 MHz",),
    ),
    (POWER_CAP | {"clocks_mhz": (1410, 1410)}, "throttled", ("at 1410 MHz",)),
    ({"n_allocations": 1}, "allocator-grew", ("memory once while",)),
    ({"n_allocations": 3}, "allocator-grew", ("memory 3 times",)),
    ({"method": "profiler", "n_dropped": 2}, "profiler-dropped-records", ("in 2 of 30 samples",)),
    ({"is_zero": True}, "zero-result", ()),
    (
        NOTHING | {"floor_s": 3e-6, "host_s": 1e-6, "method": "calibrated"},
        "nothing-launched",
        ("no more than their floor",),
    ),
    (NOTHING | {"method": "profiler"}, "nothing-launched", ("the driver recorded nothing",)),
    ({"method": "saturated", "is_empty": True}, "nothing-launched", ("not that of a kernel",)),
    (
        {"others": clocks.OtherProcesses(2, 3 * 2**30)},
        "shared-gpu",
        ("2 other processes with 3.00 GiB",),
    ),
    (
        {"simulation": SimulationCost(2.5, 40, 2.0, 1.0)},
        "slow-simulation",
        ("2.50 s", "ended after 1.00 s", "without values it takes about 2.00 ms"),
    ),
    (
        {"simulation": SimulationCost(2.5, 3_000, 0.15, None)},
        "slow-simulation",
        ("2.50 s", "3,000 operations, each in about 50.0 µs"),
    ),
]

NONE: list[dict[str, Any]] = [
    {"synchronizes": False, "host_s": 20 * US},
    # At the limits, or just beyond them.
    PACE | {"samples_s": (12.1e-6,) * 10},
    {"samples_s": (1e-3,) * 6},
    {"samples_s": (EVENT_RESOLUTION_S / 8,) * 10, "inner_loops": 8},
    {"samples_s": (1.0,) * 30, "least_s": (1.05, "these bytes")},
    {"clocks_mhz": (1940, 2000)},
    {"cold_s": 1.05e-3},
    # What is not known.
    PACE | {"host_s": None},
    {"clocks_mhz": (None, 2000)},
    {"clocks_mhz": (1940, None)},
    {"others": None},
    {"others": clocks.OtherProcesses(0, 0)},
    # A method to which it does not apply.
    *(PACE | {"method": method} for method in ("synchronized", "profiler", "graph")),
    SHORT | {"method": "synchronized"},
    {"cold_s": 1.2e-3, "cache": "cold"},
    {"cache": "hot", "flush": "write"},
    {"method": "profiler", "is_empty": True},
    {"method": "profiler", "side_s": 0.4e-3},
]

# Less than 5 %, fewer than 18 samples, or intervals that overlap.
NOISE_S = [
    (1e-3,) * 12 + (1.04e-3,) * 6,
    (1e-3,) * 12 + (1.15e-3,) * 5,
    (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.2e-3) + (1.1e-3,) * 12,
    (1e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1.2e-3) + (1.2e-3,) * 12,
    (1.2e-3, 1.2e-3, 1.2e-3, 1.2e-3, 1.2e-3, 1e-3) + (1e-3,) * 12,
]


@pytest.mark.parametrize(("seen", "code", "texts"), FINDINGS)
def test_a_reason_gives_its_finding_alone(
    seen: dict[str, Any], code: str, texts: tuple[str, ...]
) -> None:
    """The finding has the numbers of the run, and advice."""
    (finding,) = examine(observed(**seen))
    assert finding.code == code
    assert [text for text in texts if text not in f"{finding.message}; {finding.advice}"] == []
    assert finding.advice


def test_every_check_has_a_reason_here() -> None:
    """Each check returns a finding for a row of the table."""
    assert len({code for _, code, _ in FINDINGS}) == len(CHECKS) + 1  # clock_changed has two codes


@pytest.mark.parametrize("seen", NONE)
def test_without_a_reason_there_is_no_finding(seen: dict[str, Any]) -> None:
    """A limit itself, an unknown value or another method gives no finding."""
    assert examine(observed(**seen)) == ()


@pytest.mark.parametrize("samples_s", NOISE_S)
def test_noise_is_not_drift(samples_s: tuple[float, ...]) -> None:
    """A change that is small, or within the scatter, is no drift."""
    assert "drifting" not in [finding.code for finding in examine(observed(samples_s))]


def test_gravest_finding_comes_first() -> None:
    """Findings are in the order of the checks, most serious first."""
    codes = [finding.code for finding in examine(observed((0.1 * US,), **WAITS))]
    assert codes == ["synchronizes-inside", "too-few-samples", "below-resolution"]


def test_an_idle_gpu_is_not_throttled() -> None:
    """Work that puts nothing on the GPU says nothing of its clock."""
    findings = examine(observed(clocks_mhz=(345, 1980), is_empty=True, **POWER_CAP))
    assert {finding.code for finding in findings}.isdisjoint({"throttled", "clock-changed"})


@pytest.mark.parametrize(
    ("seen", "pace_s"),
    [
        (PACE | {"method": "calibrated"}, 10e-6),
        (PACE | {"method": "saturated"}, 10e-6),
        (PACE | {"method": "graph"}, 0.0),
        (PACE | {"samples_s": (12.1e-6,) * 10, "method": "calibrated"}, 0.0),
        (PACE | {"samples_s": (0.0,) * 10, "method": "calibrated"}, 0.0),
        ({"samples_s": (1.2,) * 10, "host_s": 1.0, "method": "calibrated"}, 1.0),
    ],
)
def test_the_pace_of_the_host(seen: dict[str, Any], pace_s: float) -> None:
    """With the host ahead, a short reading is right, and the pace is the program's."""
    assert host_pace_s(observed(**seen)) == pace_s


@pytest.mark.parametrize(
    ("samples_s", "codes"),
    [
        (STEADY_S, []),
        ((0.1 * US,) * 10, []),
        (DRIFTS_S, ["drifting"]),
        ((1e-3,), ["too-few-samples"]),
    ],
)
def test_samples_alone_are_examined_too(samples_s: tuple[float, ...], codes: list[str]) -> None:
    """Samples without a run, such as a CPU's, are checked for drift and number only."""
    assert [finding.code for finding in examine_samples(samples_s)] == codes
