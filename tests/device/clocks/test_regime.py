"""The verdicts of `summarize` and `flag`, exact for made-up readings."""

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.device.clocks import Reading, Regime, flag, summarize

TOP = 1980


def at(sm_mhz: int | None, *reasons: str, top: int | None = TOP) -> Reading:
    """Return a reading with this clock and these reasons."""
    return Reading(0.0, sm_mhz=sm_mhz, reasons=reasons, max_sm_mhz=top)


def of_clock(*clocks_mhz: int) -> list[Reading]:
    """Return readings with nothing but a clock, as taken between batches."""
    return [Reading(0.0, sm_mhz=clock_mhz) for clock_mhz in clocks_mhz]


def test_highest_clock_is_a_burst() -> None:
    """A clock near its maximum, as during short work, is a burst."""
    assert summarize([at(1980), at(1965), None]) == Regime(
        kind="burst",
        why="the clock was between 1965 and 1980 of 1980 MHz",
        lowest_mhz=1965,
        highest_mhz=1980,
        max_sm_mhz=1980,
        change=15 / 1980,
    )


def test_regime_of_the_recorded_h200() -> None:
    """The recorded H200 is settled, though its reason comes one reading after the fall."""
    clocks_mhz = [1980, 1980, 1485, 1455, 1440, 1185, 1380, 1425, 1440]
    reasons = [(), (), *[("power cap",)] * 7]
    readings = [at(mhz, *why) for mhz, why in zip(clocks_mhz, reasons, strict=True)]
    regime = summarize(readings)
    assert str(regime) == (
        "settled: the clock was between 1185 and 1980 of 1980 MHz, limited by the power cap"
    )
    assert flag(readings) == (True, True, True, *[False] * 2, True, True, False, False)


@pytest.mark.parametrize(
    "reason",
    [
        "hardware slowdown",
        "thermal slowdown (software)",
        "thermal slowdown (hardware)",
        "power brake",
    ],
)
def test_protection_is_throttling(reason: str) -> None:
    """One reading with a protective reason means throttled, before any other verdict."""
    regime = summarize([at(1980, "power cap"), at(1980, reason), at(1980)])
    assert regime.kind == "throttled"
    assert regime.why == f"the clock stayed at 1980 of 1980 MHz; the driver reports: {reason}"
    assert set(regime.reasons) == {"power cap", reason}


def test_locked_clock_is_settled() -> None:
    """A steady clock below the maximum, without a limiting reason, is settled."""
    assert str(summarize([at(1410)] * 3)) == (
        "settled: the clock stayed at 1410 of 1980 MHz, and the driver gives no reason: "
        "it may be locked"
    )
    assert str(summarize([at(1410, "applications clocks")])) == (
        "settled: the clock stayed at 1410 of 1980 MHz; the driver reports: applications clocks"
    )


def test_moving_clock_without_a_reason_is_unknown() -> None:
    """A clock that moves below its maximum, without a reason, has no known regime."""
    regime = summarize([at(1980), at(1605), at(1605)])
    assert (regime.kind, regime.changed) == ("unknown", True)
    assert regime.why == (
        "the clock was between 1605 and 1980 of 1980 MHz, and the driver gives no reason"
    )


def test_nothing_read_is_unknown() -> None:
    """Without a reading, a clock or a maximum, the regime is unknown."""
    assert (
        summarize([]) == summarize([None]) == Regime("unknown", "there is no reading of the clock")
    )
    assert summarize([Reading(0.0)]) == Regime("unknown", "the clock was not read")
    assert summarize(of_clock(1410)) == Regime(
        kind="unknown",
        why="the clock stayed at 1410 MHz; the highest possible clock was not read",
        lowest_mhz=1410,
        highest_mhz=1410,
    )


def test_samples_at_another_clock_are_flagged() -> None:
    """Each sample has its batch's clock, and those far from the median sample's are flagged."""
    readings = of_clock(1980, 1440, 1455, 1305)
    assert flag(readings) == (True, False, False, True)
    assert flag(readings, [1, 2, 0, 1]) == (True, False, False, True)
    assert flag(readings, [5, 1, 1, 1]) == (*[False] * 5, True, True, True)


def test_slowed_samples_are_flagged() -> None:
    """Samples slowed by heat are flagged at the same clock, unless most were."""
    hot, cool = at(1980, "thermal slowdown (software)"), at(1980, "power cap")
    assert flag([cool, hot, cool]) == (False, True, False)
    assert flag([hot, hot, cool]) == (False, False, False)


def test_sizes_must_fit_the_readings() -> None:
    """Batch sizes and readings of different number are refused."""
    with pytest.raises(InvalidOptionError) as error:
        flag(of_clock(1980, 1980), [3])
    assert str(error.value) == "1 batch_sizes for 2 readings; give one size for each reading"
