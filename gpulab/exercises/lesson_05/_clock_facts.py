"""Readings of the clock in words, recorded clocks, and a lock that only the virtual GPU gets."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab.core.errors import ClockLockError
from gpulab.device import clocks
from gpulab.exercises.answers import fresh_gpu

if TYPE_CHECKING:
    import pandas as pd


# Lowest and highest settled clock of one NVIDIA H200, read by NVML during the same half-precision
# matmuls of 8192 x 8192.
_SETTLED_MHZ = (("random numbers", 1440, 1455), ("zeros", 1635, 1650))
_SAME = 0.03  # a settled clock moves by 1 or 2 %
_CAUSES = (("power", "power"), ("thermal", "heat"), ("clocks", "a setting"))


def cause_of(regime: clocks.Regime) -> str:
    """Return what lowers the clock: "power", "heat", "a setting", or "nothing does".

    >>> from gpulab import clocks
    >>> cause_of(clocks.Regime("settled", "at its limit", reasons=("power cap",)))
    'power'
    """
    named = " ".join(regime.reasons)
    return next((cause for word, cause in _CAUSES if word in named), "nothing does")


@dataclass(frozen=True, slots=True)
class VirtualLock:
    """How a virtual GPU answers ``clocks.lock``, "locked" or "refused", with its message."""

    outcome: str
    message: str


def lock_virtual_gpu(sm_mhz: int) -> VirtualLock:
    """Ask a virtual GPU to lock its clock, and return how it answers.

    Like most real GPUs it refuses, because the user is no administrator. This never touches a real
    GPU.
    """
    try:
        with fresh_gpu(), clocks.lock(sm_mhz) as held:
            return VirtualLock("locked", str(held))
    except ClockLockError as error:
        return VirtualLock("refused", str(error))


def kept_clocks(held: "pd.DataFrame") -> str:
    """Return in words which of the clocks of :func:`asked_for` the GPU still had at the end."""
    last_mhz = held.groupby("asked_mhz")["sm_mhz"].last()
    held_mhz = [
        str(asked) for asked, mhz in last_mhz.sort_index(ascending=False).items() if asked == mhz
    ]
    if len(held_mhz) in (0, len(last_mhz)):
        return "all three" if held_mhz else "none"
    return f"only {held_mhz[0]}" if len(held_mhz) == 1 else " and ".join(held_mhz)


def recorded_settled_clocks() -> "pd.DataFrame":
    """Return the recorded settled clocks of an H200 during matmuls of random numbers and zeros."""
    import pandas as pd

    frame = pd.DataFrame(_SETTLED_MHZ, columns=["data", "lowest_mhz", "highest_mhz"])
    return frame.assign(source="recorded", device_name="NVIDIA H200").set_index("data")


def compared_clocks(recorded: "pd.DataFrame") -> str:
    """Return in words how the recorded clock with zeros compares with that with random numbers."""
    # The lowest clock of one against the highest of the other: only ranges that are apart differ.
    zeros_mhz, random_mhz = (
        recorded["lowest_mhz"]["zeros"],
        recorded["highest_mhz"]["random numbers"],
    )
    ratio = float(zeros_mhz) / float(random_mhz)
    if abs(ratio - 1) <= _SAME:
        return "the same clock"
    return "a higher clock" if ratio > 1 else "a lower clock"
