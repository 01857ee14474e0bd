"""A floor as it was found: how much events read too much, and how sure that is."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Floor:
    """How much a pair of events reads too much.

    Attributes
    ----------
    value_s
        Seconds to subtract from the reading of a pair round kernels.
    low_s, high_s
        Its 95 % interval. The floors of single kernels differ, and lie within it.
    method
        How it was found: ``"work"``, by records of the very work; ``"profiler"``, ``"timer"``
        or ``"assumed"``, by other kernels on the device; ``"records"``, on a virtual GPU.
    device_name
        As the driver reports it.
    n_samples
        Readings that it is the median of.
    """

    value_s: float
    low_s: float
    high_s: float
    method: str
    device_name: str
    n_samples: int

    def joined(self, later: "Floor") -> "Floor":
        """Return the mean of this floor and one that was read later, and the wider interval."""
        value_s = (self.value_s + later.value_s) / 2
        aside_s = max(self.high_s - self.low_s, later.high_s - later.low_s) / 2
        return replace(
            self,
            value_s=value_s,
            low_s=value_s - aside_s,
            high_s=value_s + aside_s,
            n_samples=self.n_samples + later.n_samples,
        )
