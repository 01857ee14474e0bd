"""``compare``: time two pieces of work in turns, so that a drifting clock affects both equally."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Never

from gpulab import device, stats
from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.markup import clean
from gpulab.core.requirements import Requirement
from gpulab.core.serialization import Saved
from gpulab.core.units import counted
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.timing._isolation import left_as_found
from gpulab.timing._options import DEFAULTS, MeasurementOptions, refuse_uncallable, refuse_unknown
from gpulab.timing._real_time import RealTime
from gpulab.timing._run import MeasurementRun
from gpulab.timing._stopping import StoppingRule, take_in_turns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


_N_TURN = 5  # samples of one piece of work in a row
_N_LEAST = 20  # the precision is not checked before this many pairs
_CONFIDENCE = 0.95
_LABELS = Requirement(
    "two texts, such as ('first', 'second')",
    lambda value: (
        isinstance(value, list | tuple)
        and len(value) == 2  # noqa: PLR2004  # pieces of work
        and all(isinstance(label, str) for label in value)
    ),
)


@dataclass(frozen=True, slots=True)
class Comparison(Saved):
    """Two measurements whose samples were taken in turns.

    Attributes
    ----------
    first, second
        The two measurements, with equally many samples. Samples with the same index were taken
        close together in time.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     result = gpulab.compare(lambda: a @ a, lambda: a + a, labels=("matmul", "sum"))
    >>> result.differs, result.ratio < 1
    (True, True)
    >>> result.verdict().partition(":")[0]
    'sum takes less'
    """

    schema: ClassVar[str] = "gpulab.comparison/1"

    first: Measurement
    second: Measurement

    def __post_init__(self) -> None:
        if self.first.n_samples != self.second.n_samples:
            raise InvalidOptionError(
                f"first has {counted(self.first.n_samples, 'sample')} and second has "
                f"{counted(self.second.n_samples, 'sample')}; "
                "they are compared in pairs, so both must have the same number"
            )

    @property
    def ratio(self) -> float:
        """Median of second / first over all pairs; 2 means that second takes twice as long.

        Pairs in which the first time is zero are left out. If no pair remains, it is nan.
        """
        # The median of the ratios, not the ratio of the medians: drift between two pairs, which
        # are far apart in time, is then in no ratio.
        return median(self._ratios())

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """95 % interval of the ratio, valid for these inputs, clocks and this machine only."""
        if math.isnan(self.ratio):
            return math.nan, math.nan
        return stats.median_interval(self._ratios(), _CONFIDENCE)

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1; False means that no difference was seen."""
        low, high = self.ratio_interval
        return low > 1 or high < 1  # both are False for nan, that is without a ratio

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per sample of both; columns as in a measurement's table."""
        import pandas as pd

        return pd.concat([self.first.to_frame(), self.second.to_frame()], ignore_index=True)

    def __str__(self) -> str:
        return "\n".join([str(self.first), str(self.second), self.verdict()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        tables = (record._repr_html_() for record in (self.first, self.second))
        return f"<p>{clean(self.verdict())}</p>{''.join(tables)}"

    def verdict(self) -> str:
        """Return one line: which of the two takes longer, or that no difference was seen."""
        low, high = self.ratio_interval
        second, first = (
            one_line(self.second.label) or "second",
            one_line(self.first.label) or "first",
        )
        if math.isnan(self.ratio):
            return f"{first} reads zero each time, so there is no ratio to it"
        found = f"{self.ratio:.3f} [{low:.3f}, {high:.3f}]"
        if not self.differs:
            return f"no difference seen: {second} / {first} = {found}"
        return f"{second} takes {'longer' if low > 1 else 'less'}: {second} / {first} = {found}"

    def _ratios(self) -> list[float]:
        return _ratios(self.first.samples_s, self.second.samples_s) or [math.nan]


def compare(  # noqa: PLR0913  # every option is keyword-only and has a default
    first: Callable[[], object],
    second: Callable[[], object],
    *,
    labels: tuple[str, str] = ("first", "second"),
    method: str = DEFAULTS.method,
    cache: str | None = DEFAULTS.cache,
    flush: str = DEFAULTS.flush,
    floor: str = DEFAULTS.floor,
    setup: Work | None = DEFAULTS.setup,
    n_samples: int | None = DEFAULTS.n_samples,
    n_warmup: int | None = DEFAULTS.n_warmup,
    inner_loops: int = DEFAULTS.inner_loops,
    precision: float = DEFAULTS.precision,
    max_time_s: float = 2.0,
    **unknown: Never,
) -> Comparison:
    """Return the ratio of the times of two pieces of work, measured in turns, with an interval.

    Clocks drift, and the work that is measured second meets a hotter GPU. Here the two take
    turns, five samples each, so the drift affects both equally, and each sample is divided by
    its neighbour. The ratio is valid for these inputs on this machine now.

    Parameters
    ----------
    first, second
        Functions without arguments that enqueue the work.
    labels
        Their names.
    method, cache, flush, floor, setup, n_warmup, inner_loops
        As in :func:`gpulab.measure`.
    n_samples
        How many pairs. None: at least 20, and more until the interval of the ratio is within
        ``precision``, or until ``max_time_s`` has passed. Ctrl-C ends the sampling, and you get
        the pairs before it.
    precision
        Stop when half the width of the ratio's interval is at most this share of the ratio.
    max_time_s
        When to stop sampling, in seconds, if ``n_samples`` is not given; on a virtual GPU also in
        real time, as in :func:`gpulab.measure`.

    Returns
    -------
    Comparison
        Prints which takes longer, or that no difference was seen.

    Raises
    ------
    NotCallableError, UnknownNameError, InvalidOptionError
        As :func:`gpulab.measure`.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1 << 20, device="cuda")
    ...     print(gpulab.compare(lambda: a + a, lambda: a + a).verdict())
    no difference seen: second / first = 1.000 [1.000, 1.000]
    """
    refuse_unknown(compare, unknown)
    options = MeasurementOptions(
        method=method,
        cache=cache,
        flush=flush,
        floor=floor,
        setup=setup,
        n_samples=n_samples,
        n_warmup=n_warmup,
        inner_loops=inner_loops,
        precision=precision,
        max_time_s=max_time_s,
    )
    refuse_uncallable("first", first)
    refuse_uncallable("second", second)
    _LABELS.check(labels=labels)
    with device.active():
        with left_as_found():
            real_time = RealTime(options.max_time_s, n_works=2)
            runs = [
                MeasurementRun.prepare(work, options, real_time=real_time)
                for work in (first, second)
            ]
            _sample(runs, options, real_time)
        return Comparison(
            *(run.measurement(label=label) for run, label in zip(runs, labels, strict=True))
        )


def _sample(runs: list[MeasurementRun], options: MeasurementOptions, real_time: RealTime) -> None:
    """Take the samples of both runs in turns, then update their floors."""
    n_taken, reason = take_in_turns(
        [partial(_take_turn, run) for run in runs],
        StoppingRule.of_options(options, n_least=_N_LEAST, real_time=real_time),
        count=lambda: min(len(run.samples.values_s) for run in runs),
        # Work that enqueues nothing reads zero and has no ratio; a constant ends the sampling.
        judged=lambda: _ratios(*(run.samples_s() for run in runs)) or [1.0],
        n_next=lambda n_taken, _: _n_next(options.n_samples, n_taken, runs, real_time),
    )
    for run in runs:
        # An interrupt during the second run's turn leaves the first with samples without a pair.
        run.samples.keep(n_taken)
        run.stopped_by = reason
        # Both runs share one stretch of time, so the first and last readings of the batches serve
        # as the clocks before and after.
        run.before, run.after = run.samples.readings[0], run.samples.readings[-1]
        # No samples are added after the records, as `measure` does: they would have no partner.
        run.update_floor()


def _n_next(
    n_samples: int | None, n_taken: int, runs: list[MeasurementRun], real_time: RealTime
) -> int:
    if n_samples is not None:
        return min(_N_TURN, n_samples - n_taken)
    known_s = [run.sample_real_s for run in runs]
    pair_s = None if None in known_s else sum(filter(None, known_s))
    return real_time.fitting(_N_TURN, pair_s)


def _take_turn(run: MeasurementRun, n_samples: int) -> None:
    with run.counting_allocations():
        run.take(n_samples)


def _ratios(first_s: Sequence[float], second_s: Sequence[float]) -> list[float]:
    """Return second / first for each pair in which the first is not zero."""
    return [b / a for a, b in zip(first_s, second_s, strict=True) if a]


def versus(before: Measurement, now: Measurement, name: str) -> str:
    """Return one line that compares a measurement with one that was taken at another time.

    The interval of the ratio divides the ends of the two intervals, so it is wide. The clock may
    have drifted in between: only :func:`compare`, which takes turns, is fair to both.

    Parameters
    ----------
    before, now
        The earlier measurement and the new one.
    name
        What to call the earlier one.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab.timing import versus
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     old = gpulab.measure(lambda: a @ a, n_samples=9)
    ...     new = gpulab.measure(lambda: a + a, n_samples=9)
    >>> versus(old, new, "old").partition(":")[0]
    'it differs'
    """
    (low_before_s, high_before_s), (low_s, high_s) = before.interval_s, now.interval_s
    if not (before.median_s and low_before_s):
        return f"{name} reads zero, so there is no ratio to it"
    # Without pairs the two errors cannot cancel, so the widest interval is the only honest one.
    low, high = low_s / high_before_s, high_s / low_before_s
    found = f"{now.median_s / before.median_s:.3f} [{low:.3f}, {high:.3f}] times {name}"
    seen = "no difference seen" if low <= 1 <= high else "it differs"
    return f"{seen}: {found}, which was taken at another time"
