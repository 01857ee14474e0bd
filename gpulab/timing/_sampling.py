"""Take samples in batches until the answer is precise enough, and keep them on an interrupt."""

import time
from dataclasses import dataclass, field
from statistics import median

from gpulab import clocks, stats
from gpulab.progress import Bar
from gpulab.timing._findings import EVENT_RESOLUTION_S
from gpulab.timing._isolation import watched
from gpulab.timing._methods import Sampler
from gpulab.timing._options import MeasurementOptions

_N_FIRST = 10  # no precision is claimed before so many samples
_CHUNK_S = 0.1  # what an interrupt may lose


@dataclass(slots=True)
class Run:
    """Samples as they come in.

    Attributes
    ----------
    samples_s
        Seconds per call, in the order taken.
    batch_sizes, readings
        How many samples each batch had, and the GPU's clock right behind it.
    stopped_by
        The criterion that ended the run.
    """

    samples_s: list[float] = field(default_factory=list)
    batch_sizes: list[int] = field(default_factory=list)
    readings: list[clocks.Reading | None] = field(default_factory=list)
    stopped_by: str = ""

    def add(self, samples_s: list[float], reading: clocks.Reading | None) -> None:
        """Keep a batch."""
        self.samples_s += samples_s
        self.batch_sizes.append(len(samples_s))
        self.readings.append(reading)

    def keep(self, n_samples: int) -> None:
        """Drop the batches behind the first ``n_samples`` samples."""
        while sum(self.batch_sizes) > n_samples:
            del self.samples_s[-self.batch_sizes.pop() :]
            self.readings.pop()


def sample(  # noqa: PLR0913  # all but three are keyword-only
    run: Run,
    plan: MeasurementOptions,
    take: Sampler,
    *,
    call_s: float | None,
    resolution_s: float,
    progress: bool,
    reads_clocks: bool,
) -> None:
    """Take the samples of a plan.

    Parameters
    ----------
    run
        Where they are put, batch by batch, so that an error of the work loses no earlier one.
    plan
        What was asked for.
    take
        Takes so many samples.
    call_s
        Seconds that one call takes, roughly; None if nobody knows.
    resolution_s
        Half a width of the median's interval that need not get narrower, whatever was asked.
    progress
        Whether to show a bar after a second.
    reads_clocks
        Whether to ask the driver for the clock after each batch.

    Raises
    ------
    KeyboardInterrupt
        If it comes before the first batch is there; later ones end the run.
    """
    sample_s = None if call_s is None else call_s * plan.inner_loops
    start_s, elapsed_s = time.perf_counter(), 0.0
    with Bar(total=plan.n_samples, desc="measuring", unit=" samples", disable=not progress) as bar:
        try:
            while not (reason := _reason_to_stop(plan, run.samples_s, resolution_s, elapsed_s)):
                # Shown only where more is to come, so that the time limit makes no bar flash.
                bar.update(len(run.samples_s) - bar.n)
                n_next = _n_next(plan, len(run.samples_s), sample_s)
                with watched(*_told(len(run.samples_s), n_next)):
                    batch_s = take(n_next)
                run.add(batch_s, clocks.try_read(parts=clocks.QUICK) if reads_clocks else None)
                # Wall time, not the readings: draining and reading back take time as well.
                elapsed_s = time.perf_counter() - start_s
                sample_s = elapsed_s / len(run.samples_s)
        except KeyboardInterrupt:
            if not run.samples_s:
                raise
            reason = "interrupt"
    run.stopped_by = reason


def _reason_to_stop(
    plan: MeasurementOptions, samples_s: list[float], resolution_s: float, elapsed_s: float
) -> str:
    """Return the name of the criterion that is met, or nothing."""
    if plan.n_samples is not None:
        return "n_samples" if len(samples_s) >= plan.n_samples else ""
    if len(samples_s) >= _N_FIRST and _is_precise(samples_s, plan.precision, resolution_s):
        return "precision"
    return "max_time" if samples_s and elapsed_s >= plan.max_time_s else ""


def _is_precise(samples_s: list[float], precision: float, resolution_s: float) -> bool:
    """Tell whether the median's interval is narrow enough, or as narrow as makes sense."""
    low_s, high_s = stats.median_interval(samples_s)
    enough_s = 2 * max(precision * median(samples_s), resolution_s)
    # Two clusters of samples look like a very coarse clock, which no GPU has.
    tick_s = min(stats.tick(samples_s), EVENT_RESOLUTION_S)
    return high_s - low_s <= max(enough_s, tick_s)


def _n_next(plan: MeasurementOptions, n_taken: int, sample_s: float | None) -> int:
    """Return how many samples to take before looking again."""
    # Batches grow with the samples, so that sorting them all again stays cheap beside them.
    if plan.n_samples is None:
        n_wanted = max(_N_FIRST, n_taken // 4) if n_taken >= _N_FIRST else _N_FIRST - n_taken
    else:
        n_wanted = plan.n_samples - n_taken
    n_in_time = int(_CHUNK_S / sample_s) if sample_s else 1
    return max(1, min(n_wanted, n_in_time))


def _told(n_taken: int, n_next: int) -> tuple[str, str]:
    """Say, for an error of the work, when it came and what was kept."""
    when = f"while samples {n_taken + 1} to {n_taken + n_next} were taken"
    if n_next == 1:
        when = f"while sample {n_taken + 1} was taken"
    if n_taken == 0:
        return when, "nothing was measured"
    return when, kept(n_taken)


def kept(n_taken: int) -> str:
    """Say, for an error of the work, where the samples before it are."""
    are = f"the {n_taken} samples before are" if n_taken > 1 else "the sample before is"
    return f"{are} kept in its attribute `partial`"
