"""Records of a run: its samples and facts as they come in, and what follows once it is over."""

import itertools
from dataclasses import dataclass, field
from statistics import median

from gpulab.device import clocks
from gpulab.device.measurement import NO_COUNTS, Counts
from gpulab.timing._methods import Method
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._warmup import WarmUp
from gpulab.timing.calibration import Floor


@dataclass(slots=True)
class SampleBatches:
    """The samples so far, batch by batch; the floor is not yet subtracted.

    Attributes
    ----------
    values_s
        Seconds per call, in the order taken.
    batch_sizes, readings
        Number of samples in each batch, and the GPU's clock right after it.
    """

    values_s: list[float] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)
    readings: list[clocks.Reading | None] = field(default_factory=list)

    @property
    def n_open(self) -> int:
        """Number of samples that are in no batch yet."""
        return len(self.values_s) - sum(self.batch_sizes)

    def end_batch(self, reading: clocks.Reading | None) -> None:
        """Make a batch of the samples that are in none yet, with the clock after it."""
        self.batch_sizes.append(self.n_open)
        self.readings.append(reading)

    def keep(self, n_samples: int) -> None:
        """Drop all samples after the first ``n_samples``, and the batches that become empty."""
        del self.values_s[n_samples:]
        ends = itertools.accumulate(self.batch_sizes)
        sizes = zip(self.batch_sizes, ends, strict=True)
        kept = [size - max(0, end - n_samples) for size, end in sizes]
        self.batch_sizes = [size for size in kept if size > 0]
        del self.readings[len(self.batch_sizes) :]


@dataclass(frozen=True, slots=True)
class SimulationCost:
    """What the samples took in real time on a virtual GPU.

    Attributes
    ----------
    call_s
        Real seconds per call of the work, with what is done before each sample.
    n_launches
        Launches per call, counted in the same way.
    estimated_s
        The simulator's estimate of ``call_s``. It reads no clock, so it shows what the time is
        spent on.
    limit_s
        The limit of the real time that made them fewer; None if it did not.
    """

    call_s: float
    n_launches: float
    estimated_s: float
    limit_s: float | None


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """The facts about a run that are known while it goes on.

    The record is not frozen, because the run changes it until its end.

    Attributes
    ----------
    options
        The user's options.
    method
        The method that takes the samples: that of the options, or ``"events"`` in its place if
        the work waits for the GPU.
    warm_up
        What the warm-up showed.
    floor
        The floor as known so far; it is subtracted from each timed interval. None for methods
        without one.
    stopped_by
        The criterion that ended the run.
    before, after
        Clocks and power as the driver reported them; None without a report.
    n_allocations
        How often PyTorch asked the driver for memory while samples were taken.
    cold_s
        Seconds of a call on a cold cache, if some cold samples were taken after a hot run.
    counts
        The FLOPs and bytes of one call.
    """

    options: MeasurementOptions
    method: Method
    warm_up: WarmUp
    floor: Floor | None = None
    stopped_by: str = ""
    before: clocks.Reading | None = None
    after: clocks.Reading | None = None
    n_allocations: int = 0
    cold_s: float | None = None
    counts: Counts = NO_COUNTS


@dataclass(slots=True, kw_only=True)
class RunObservations(RunFacts):
    """The facts about a run, and what follows from its samples and readings.

    Attributes
    ----------
    samples_s
        Seconds per call after subtracting the floor, in the order taken; never empty.
    regime
        What the readings of clock and power show about the whole run.
    flagged
        Indices of samples taken in another clock regime than most.
    n_starved, n_dropped
        As in :class:`~gpulab.timing.Sampler`.
    simulation
        What a call takes in real time, if the real time ended the run or you did; else None.
    others
        The other processes on the GPU at the end of the run; None if the driver does not say.
    least_s
        The least seconds that a GPU of this name needs for the given FLOPs and bytes, and why.
    """

    samples_s: tuple[float, ...]
    regime: clocks.Regime
    flagged: tuple[int, ...] = ()
    n_starved: int = 0
    n_dropped: int = 0
    simulation: SimulationCost | None = None
    others: clocks.OtherProcesses | None = None
    least_s: tuple[float, str] | None = None

    @property
    def median_s(self) -> float:
        """Median sample, in seconds per call."""
        return median(self.samples_s)

    @property
    def floor_s(self) -> float:
        """Seconds that were subtracted from each timed interval."""
        return 0.0 if self.floor is None else self.floor.value_s

    @property
    def floor_error_s(self) -> float:
        """How far the floor may be off, in seconds."""
        return 0.0 if self.floor is None else (self.floor.high_s - self.floor.low_s) / 2
