"""Records of a run: its samples and facts as they come in, and what follows once it is over."""

import itertools
from dataclasses import dataclass, field
from statistics import median

from gpulab.device import clocks
from gpulab.device.measurement import NO_COUNTS, Counts
from gpulab.timing._methods import Method
from gpulab.timing._options import MeasurementOptions
from gpulab.timing._warmup import WarmUp
from gpulab.timing._work_floor import Floor


@dataclass(slots=True)
class SampleBatches:
    """The samples so far, in seconds per call, before the floor is subtracted.

    For each batch, they have its size and the GPU's clock right after it.
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
        sizes_left = [size - max(0, end - n_samples) for size, end in sizes]
        self.batch_sizes = [size for size in sizes_left if size > 0]
        del self.readings[len(self.batch_sizes) :]


@dataclass(frozen=True, slots=True)
class SimulationCost:
    """What the samples took in real time on a virtual GPU, per call and what is done before it.

    ``estimated_s`` is the simulator's estimate of ``call_s``. It reads no clock, so it shows what
    the time is spent on. ``limit_s`` is the limit that made the samples fewer; None if it did not.
    """

    call_s: float
    n_launches: float
    estimated_s: float
    limit_s: float | None


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """The facts about a run that are known while it goes on; the run changes them until its end.

    ``method`` is that of the options, or ``"events"`` in its place if the work waits for the GPU.
    The floor is subtracted from each timed interval; None for methods without one. ``stopped_by``
    is the criterion that ended the run. Without a report of the driver, there is no reading
    ``before`` and ``after``. ``n_allocations`` is how often PyTorch asked the driver for memory
    while samples were taken, and ``cold_s`` the time of a call on a cold cache, if some cold
    samples were taken after a hot run. ``counts`` are those of one call.
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

    The samples are those after subtracting the floor, never empty. ``regime`` is the clock's in
    the whole run, and ``flagged`` are the indices of samples taken in another. ``n_starved`` and
    ``n_dropped`` are those of :class:`~gpulab.timing.Sampler`. ``simulation`` is None unless the
    real time, or you, ended the run; ``others`` if the driver does not name other processes on the
    GPU. ``least_s`` is the least that a GPU of this name needs for the given FLOPs and bytes, and
    why.
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
