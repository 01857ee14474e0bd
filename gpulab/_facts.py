"""What is known of a run when its samples have been taken; every doubt is drawn from it."""

from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a run when its samples have been taken.

    Attributes
    ----------
    samples_s
        Seconds per call, in the order in which they were taken; never empty.
    method
        Name of the timing method.
    inner_loops
        Calls inside each timed interval.
    synchronizes
        Whether the work waits for the GPU inside its call; None if nobody looked.
    host_s
        Seconds that one call, with the event behind it, keeps the host; None if nobody looked.
    clock
        Whose clock the method reads: ``"host"``, ``"events"`` or ``"records"``.
    asked_method
        The method that was asked for, where another one stood in for it.
    cache, flush
        ``"hot"`` or ``"cold"``, and by which flush.
    cold_s
        Seconds of a call on a cold cache, where a hot run was compared with some cold samples.
    side_s
        Seconds for which the device was still busy when the work's own stream was done.
    n_starved
        Samples that no sleep could put the host ahead of.
    n_dropped
        Samples of which the driver's records are not whole.
    n_allocations
        Times that PyTorch asked the driver for memory while samples were taken.
    is_zero
        Whether the work's result was zero in every element that was looked at.
    least_s
        What no GPU of this name can beat with the FLOPs and bytes that were given, and why.
    clocks_mhz
        Lowest and highest clock seen; None where clocks cannot be read.
    throttle_reasons
        What held the clock down, in the driver's terms.
    n_flagged
        Samples taken in another regime than most.
    floor_s
        What was subtracted from each interval.
    """

    samples_s: tuple[float, ...]
    method: str
    inner_loops: int = 1
    synchronizes: bool | None = None
    host_s: float | None = None
    clock: str = "events"
    asked_method: str = ""
    cache: str = "hot"
    flush: str = "read"
    cold_s: float | None = None
    side_s: float | None = None
    n_starved: int = 0
    n_dropped: int = 0
    n_allocations: int = 0
    is_zero: bool = False
    least_s: tuple[float, str] | None = None
    clocks_mhz: tuple[int, int] | None = None
    throttle_reasons: tuple[str, ...] = ()
    n_flagged: int = 0
    floor_s: float = 0.0

    @property
    def median_s(self) -> float:
        """Median sample, in seconds per call."""
        return median(self.samples_s)
