"""What a run has seen: its samples as they come in, and all of it in one record at the end."""

from dataclasses import dataclass, field
from statistics import median

from gpulab import clocks
from gpulab.timing._methods import Method
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._warmup import WarmUp
from gpulab.timing.calibration import Floor


@dataclass(slots=True)
class SampleBatches:
    """Samples as they come in, batch by batch, floor and all.

    Attributes
    ----------
    values_s
        Seconds per call, in the order taken.
    batch_sizes, readings
        How many samples each batch had, and the GPU's clock right after it.
    """

    values_s: list[float] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)
    readings: list[clocks.Reading | None] = field(default_factory=list)

    def add(self, values_s: list[float], reading: clocks.Reading | None) -> None:
        """Add a batch."""
        self.values_s += values_s
        self.batch_sizes.append(len(values_s))
        self.readings.append(reading)

    def keep(self, n_samples: int) -> None:
        """Drop the batches after the first ``n_samples`` samples."""
        while sum(self.batch_sizes) > n_samples:
            del self.values_s[-self.batch_sizes.pop() :]
            self.readings.pop()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservations:
    """All that is known of a run when its samples have been taken.

    Attributes
    ----------
    samples_s
        Seconds per call without the floor, in the order in which they were taken; never empty.
    options
        What was asked for.
    method
        The one that took the samples, which need not be the one that was asked for.
    warm_up
        What the warm-up showed.
    stopped_by
        The criterion that ended the run.
    regime
        What the readings of clock and power say about the whole run.
    flagged
        Indices of samples taken in another regime than most.
    before, after
        What the driver said of clocks and power; None where it says nothing.
    n_starved, n_dropped
        As of the :class:`~gpulab.timing.Sampler`.
    n_allocations
        Times that PyTorch asked the driver for memory while samples were taken.
    cold_s
        Seconds of a call on a cold cache, where a hot run was compared with some cold samples.
    floor
        What was subtracted from each timed interval; None if nothing was.
    least_s
        What no GPU of this name can beat with the FLOPs and bytes that were given, and why.
    """

    samples_s: tuple[float, ...]
    options: MeasurementOptions
    method: Method
    warm_up: WarmUp
    stopped_by: str
    regime: clocks.Regime
    flagged: tuple[int, ...] = ()
    before: clocks.Reading | None = None
    after: clocks.Reading | None = None
    n_starved: int = 0
    n_dropped: int = 0
    n_allocations: int = 0
    cold_s: float | None = None
    floor: Floor | None = None
    least_s: tuple[float, str] | None = None

    @property
    def median_s(self) -> float:
        """Median sample, in seconds per call."""
        return median(self.samples_s)

    @property
    def floor_s(self) -> float:
        """What was subtracted from each timed interval, in seconds."""
        return 0.0 if self.floor is None else self.floor.value_s

    @property
    def floor_error_s(self) -> float:
        """How far that may be off, in seconds."""
        return 0.0 if self.floor is None else (self.floor.high_s - self.floor.low_s) / 2
