"""Judge readings: whether the clock was at its burst value, settled or throttled."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import COUNT_OR_ZERO, SHARE, instance_of, items_of
from gpulab.core.units import counted
from gpulab.device.clocks._reading import (
    HARDWARE,
    HEAT_FORCED,
    HEAT_SEEN,
    IDLE,
    POWER_BRAKE,
    POWER_CAP,
    Reading,
    in_order,
)

# The clock moves in steps of 15 MHz, at about 2000 MHz, and a settled clock varies by two or three
# steps. Beyond that, times differ by more than the usual width of their intervals.
TOLERANCE = 0.03
_PROTECTION = frozenset({HARDWARE, POWER_BRAKE, HEAT_SEEN, HEAT_FORCED})


@dataclass(frozen=True, slots=True)
class Regime:
    """The regime of a GPU's clock: burst, settled, throttled or idle, according to readings.

    Between two readings the clock may have had any value.

    Attributes
    ----------
    kind
        ``"burst"``: at the highest clock, which may fall during long work. ``"settled"``: lower,
        at what the power limit or a lock allows. ``"throttled"``: slowed by heat or to protect the
        hardware. ``"idle"``: no work ran at any reading. ``"unknown"``: the readings do not show
        it.
    why
        The reason, as a clause.
    lowest_mhz, highest_mhz
        Lowest and highest clock of the readings at which the GPU was not idle.
    max_sm_mhz
        The highest clock that the GPU can have.
    reasons
        Why the clock was lower, from all readings.
    change
        How far the lowest clock is below the highest, as a share of the highest.
    changed
        Whether ``change`` is above the tolerance, so that one median describes two regimes.

    Examples
    --------
    >>> from gpulab.device.clocks import Reading, summarize
    >>> hot = Reading(0.0, sm_mhz=1410, reasons=("power cap",), max_sm_mhz=1980)
    >>> summarize([hot]).kind
    'settled'
    """

    kind: str
    why: str
    lowest_mhz: int | None = None
    highest_mhz: int | None = None
    max_sm_mhz: int | None = None
    reasons: tuple[str, ...] = ()
    change: float = 0.0
    changed: bool = False

    def __str__(self) -> str:
        return one_line(f"{self.kind}: {self.why}")


_READING = instance_of((Reading, type(None)), "a Reading or None")


def summarize(readings: Iterable[Reading | None], *, tolerance: float = TOLERANCE) -> Regime:
    """Return the clock regime of a run, from readings before, during and after its samples.

    Parameters
    ----------
    readings
        In any order; None, for a reading that failed, is ignored.
    tolerance
        Change of the clock, as a share, that still counts as one regime.

    Raises
    ------
    InvalidOptionError
        If ``tolerance`` is not between 0 and 1.

    Examples
    --------
    >>> fast = Reading(0.0, sm_mhz=1980, reasons=(), max_sm_mhz=1980)
    >>> print(summarize([fast, fast]))
    burst: the clock stayed at 1980 of 1980 MHz
    """
    SHARE.check(tolerance=tolerance)
    every = items_of("readings", readings, _READING)
    successful = [reading for reading in every if reading is not None]
    if not successful:
        return Regime("unknown", "there is no reading of the clock")
    # The readings before and after the work may have met an idle GPU at its lowest clock.
    awake = [reading for reading in successful if IDLE not in (reading.reasons or ())]
    if not awake:
        return Regime("idle", "the GPU was idle at every reading")
    tops = (reading.max_sm_mhz for reading in successful if reading.max_sm_mhz is not None)
    return _of_busy(awake, next(tops, None), tolerance)


def flag(
    readings: Sequence[Reading | None],
    batch_sizes: Sequence[int] | None = None,
    *,
    tolerance: float = TOLERANCE,
) -> tuple[bool, ...]:
    """Return for each sample whether it was taken in another clock regime than most.

    A sample is flagged if its clock differs from the median clock by more than ``tolerance``, or
    if it was slowed by heat or to protect the hardware and most samples were not. A sample without
    a reading is not flagged, although its regime is unknown. A reading is up to 0.1 s old, so it
    may describe the batch before if batches are shorter.

    Parameters
    ----------
    readings
        One reading for each batch of samples, in order.
    batch_sizes
        Number of samples in each batch; None: one each.
    tolerance
        Change of the clock, as a share, that still counts as one regime.

    Raises
    ------
    InvalidOptionError
        If readings and sizes differ in number, or ``tolerance`` is not between 0 and 1.

    Examples
    --------
    >>> flag([Reading(0.0, 1980), Reading(0.1, 1440)], [1, 3])
    (True, False, False, False)
    """
    SHARE.check(tolerance=tolerance)
    readings = items_of("readings", readings, _READING)
    requested = [1] * len(readings) if batch_sizes is None else batch_sizes
    sizes = items_of("batch_sizes", requested, COUNT_OR_ZERO)
    if len(sizes) != len(readings):
        raise InvalidOptionError(
            f"{len(sizes)} batch_sizes for {counted(len(readings), 'reading')}; give one size for "
            "each reading"
        )
    per_sample = [reading for reading, n in zip(readings, sizes, strict=True) for _ in range(n)]
    clocks = [each.sm_mhz for each in per_sample if each is not None and each.sm_mhz is not None]
    # median_low is always one of the clocks. The mean of the middle two may be a value that the
    # clock never had.
    usual_mhz = median_low(clocks) if clocks else None
    slowed = [_is_slowed(each) for each in per_sample if each is not None]
    usually_slowed = 2 * sum(slowed) > len(slowed)
    return tuple(
        each is not None
        and (
            _differs(each.sm_mhz, usual_mhz, tolerance)
            or (_is_slowed(each) and not usually_slowed)
        )
        for each in per_sample
    )


def _is_slowed(reading: Reading) -> bool:
    return not _PROTECTION.isdisjoint(reading.reasons or ())


def _differs(clock_mhz: int | None, usual_mhz: int | None, tolerance: float) -> bool:
    if clock_mhz is None or usual_mhz is None:
        return False
    return abs(clock_mhz - usual_mhz) > tolerance * usual_mhz


def _of_busy(awake: Sequence[Reading], top_mhz: int | None, tolerance: float) -> Regime:
    clocks = [reading.sm_mhz for reading in awake if reading.sm_mhz is not None]
    reasons = in_order(word for reading in awake for word in reading.reasons or ())
    if not clocks:
        return Regime("unknown", "the clock was not read", max_sm_mhz=top_mhz, reasons=reasons)
    lowest_mhz, highest_mhz = min(clocks), max(clocks)
    change = (highest_mhz - lowest_mhz) / highest_mhz if highest_mhz else 0.0
    # The median clock and not the lowest: a settled clock dips for some tenths of a second about
    # once a second (docs/clocks.md).
    is_top = top_mhz is not None and not _differs(median_low(clocks), top_mhz, tolerance)
    kind, cause = _judge(
        reasons, is_top=is_top, top_is_known=top_mhz is not None, changed=change > tolerance
    )
    where = _where(lowest_mhz, highest_mhz, top_mhz)
    return Regime(
        kind=kind,
        why=f"{where}{cause}",
        lowest_mhz=lowest_mhz,
        highest_mhz=highest_mhz,
        max_sm_mhz=top_mhz,
        reasons=reasons,
        change=change,
        changed=change > tolerance,
    )


def _where(lowest_mhz: int, highest_mhz: int, top_mhz: int | None) -> str:
    top = "" if top_mhz is None else f" of {top_mhz}"
    if lowest_mhz == highest_mhz:
        return f"the clock stayed at {lowest_mhz}{top} MHz"
    return f"the clock was between {lowest_mhz} and {highest_mhz}{top} MHz"


def _judge(
    reasons: tuple[str, ...], *, is_top: bool, top_is_known: bool, changed: bool
) -> tuple[str, str]:
    """Return the kind of regime, and the cause as text to follow the clocks."""
    slowed = [word for word in reasons if word in _PROTECTION]
    if slowed:
        return "throttled", f"; the driver reports: {', '.join(slowed)}"
    # The clock is checked before the power cap, because the driver reports the power cap too late,
    # and still reports it for a while after the work is done.
    if is_top:
        return "burst", ""
    if POWER_CAP in reasons:
        return "settled", ", limited by the power cap"
    if not top_is_known:
        return "unknown", "; the highest possible clock was not read"
    if reasons:
        return "settled", f"; the driver reports: {', '.join(reasons)}"
    silent = ", and the driver gives no reason"
    return ("unknown", silent) if changed else ("settled", f"{silent}: it may be locked")
