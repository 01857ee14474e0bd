"""What readings of the clock say in words, and a lock that only the virtual GPU is asked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulab import clocks, device, virtual
from gpulab.errors import ClockLockError

if TYPE_CHECKING:
    import pandas as pd


# One NVIDIA H200, the same half-precision matmuls of 8192 x 8192, by NVML: lowest and highest
# clock of the settled part.
_SETTLED_MHZ = (("random numbers", 1440, 1455), ("zeros", 1635, 1650))
_SAME = 0.03  # a settled clock moves by 1 or 2 %
_CAUSES = (("power", "power"), ("thermal", "heat"), ("clocks", "a setting"))


def cause_of(regime: clocks.Regime) -> str:
    """Return what lowered the clock: power, heat, a setting, or that nothing does.

    Parameters
    ----------
    regime
        With the reasons that the driver named.
    """
    named = " ".join(regime.reasons)
    return next((cause for word, cause in _CAUSES if word in named), "nothing does")


@dataclass(frozen=True, slots=True)
class VirtualLock:
    """How the virtual GPU answered when it was asked for a clock.

    Attributes
    ----------
    outcome
        ``"locked"`` or ``"refused"``.
    message
        What ``clocks.lock`` said.
    """

    outcome: str
    message: str


def lock_virtual_gpu(sm_mhz: int) -> VirtualLock:
    """Ask a virtual GPU, and never a real one, to lock its clock; the lock ends at once.

    Parameters
    ----------
    sm_mhz
        Clock in MHz.
    """
    try:
        with (
            device.outside(),
            virtual.virtual_gpu("H200", first_use=False),
            clocks.lock(sm_mhz) as held,
        ):
            return VirtualLock("locked", str(held))
    except ClockLockError as error:
        return VirtualLock("refused", str(error))


def kept_clocks(held: "pd.DataFrame") -> str:
    """Return which of the clocks asked for were kept to the end, in words.

    Parameters
    ----------
    held
        As :func:`asked_for` returns it.
    """
    last_mhz = held.groupby("asked_mhz")["sm_mhz"].last()
    kept = [
        str(asked) for asked, mhz in last_mhz.sort_index(ascending=False).items() if asked == mhz
    ]
    if len(kept) in (0, len(last_mhz)):
        return "all three" if kept else "none"
    return f"only {kept[0]}" if len(kept) == 1 else " and ".join(kept)


def recorded_settled_clocks() -> "pd.DataFrame":
    """Return the settled clocks of an H200 that multiplied random numbers and zeros."""
    import pandas as pd

    frame = pd.DataFrame(_SETTLED_MHZ, columns=["data", "lowest_mhz", "highest_mhz"])
    return frame.assign(source="recorded", device_name="NVIDIA H200").set_index("data")


def compared_clocks(recorded: "pd.DataFrame") -> str:
    """Return how the clock of zeros compares with that of random numbers, in words.

    Parameters
    ----------
    recorded
        As :func:`recorded_settled_clocks` returns it.
    """
    zeros_mhz, random_mhz = (
        recorded["lowest_mhz"]["zeros"],
        recorded["highest_mhz"]["random numbers"],
    )
    ratio = float(zeros_mhz) / float(random_mhz)
    if abs(ratio - 1) <= _SAME:
        return "the same clock"
    return "a higher clock" if ratio > 1 else "a lower clock"
