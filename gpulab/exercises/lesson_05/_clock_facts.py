"""What lowers the clock, in a word, and a lock that only the virtual GPU gets."""

from dataclasses import dataclass

from gpulab.core.errors import ClockLockError
from gpulab.device import clocks
from gpulab.exercises.answers import fresh_gpu

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
