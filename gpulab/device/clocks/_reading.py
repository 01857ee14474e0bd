"""The record of one reading of a GPU's clock, power, temperature and throttle reasons."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from gpulab.core.foreign_text import visible
from gpulab.core.requirements import (
    check_fields,
    check_not_negative,
    instance_of,
    items_of,
)

if TYPE_CHECKING:
    import pandas as pd


IDLE, POWER_CAP = "idle", "power cap"
HARDWARE, POWER_BRAKE = "hardware slowdown", "power brake"
HEAT_SEEN, HEAT_FORCED = "thermal slowdown (software)", "thermal slowdown (hardware)"

# The bits of nvmlClocksEventReasons in NVML's header; NVML used to call them throttle reasons.
_REASONS = {
    0x001: IDLE,
    0x002: "applications clocks",
    0x004: POWER_CAP,
    0x008: HARDWARE,
    0x010: "sync boost",
    0x020: HEAT_SEEN,
    0x040: HEAT_FORCED,
    0x080: POWER_BRAKE,
    0x100: "display clocks",
}


_NOT_NEGATIVE = (
    *("sm_mhz", "memory_mhz", "max_sm_mhz"),
    *("power_w", "power_limit_w", "utilization"),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a GPU; a part that was not read, or that the driver refuses, is None.

    Attributes
    ----------
    at_s
        ``time.perf_counter()`` when the reading began. The values are older: the driver of an
        H200 updates all of them every 0.1 s, and reports the last ones until then.
    sm_mhz, memory_mhz
        Clock of the multiprocessors and of the device memory.
    power_w, power_limit_w
        Power as the driver averages it (over 1 s on an H200), and the limit in force. The
        average says little about this moment.
    temperature_c
        Temperature of the chip, in degrees Celsius.
    utilization
        Percent of the recent time in which any kernel ran; not how much of the GPU it used.
    reasons
        Why the clock is not higher; ``()`` if the driver gives no reason. On an H200 a reason
        appears 0.1 s after the clock has fallen, and stays for 0.5 s after the work is done.
    max_sm_mhz
        The highest clock that the multiprocessors can have.

    Examples
    --------
    >>> from gpulab.device.clocks import Reading
    >>> Reading(at_s=0.0, sm_mhz=1410, reasons=("power cap",)).reasons
    ('power cap',)
    """

    at_s: float
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    utilization: int | None = None
    reasons: tuple[str, ...] | None = None
    max_sm_mhz: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        check_not_negative(self, *_NOT_NEGATIVE)


def reasons_of(mask: int) -> tuple[str, ...]:
    """Return NVML's bit mask of reasons in words, lowest bit first; unknown bits by number."""
    bits = [1 << number for number in range(mask.bit_length()) if mask >> number & 1]
    return tuple(_REASONS.get(bit, f"reason {bit:#x}") for bit in bits)


def in_order(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return each reason once, in the order of NVML's bits, unknown ones last."""
    order = list(_REASONS.values())
    return tuple(
        sorted(set(reasons), key=lambda word: (order.index(word) if word in order else 99, word))
    )


def to_frame(readings: Iterable[Reading]) -> "pd.DataFrame":
    """Return a table with one row per reading: seconds since the first one, then its parts.

    The reasons of a reading are joined into one text, which is empty without reasons.

    Examples
    --------
    >>> from gpulab.device.clocks import Reading, to_frame
    >>> readings = [Reading(5.0, sm_mhz=1980), Reading(5.5, sm_mhz=1410)]
    >>> to_frame(readings)[["time_s", "sm_mhz"]].values.tolist()
    [[0.0, 1980.0], [0.5, 1410.0]]
    """
    import pandas as pd

    checked = items_of("readings", readings, instance_of(Reading, "a Reading"))
    rows = [asdict(reading) for reading in checked]
    for row in rows:
        row["time_s"] = row["at_s"] - checked[0].at_s
        row["reasons"] = None if row["reasons"] is None else visible(", ".join(row["reasons"]))
    parts = [field.name for field in fields(Reading) if field.name != "at_s"]
    return pd.DataFrame(rows, columns=["time_s", *parts])
