"""``compare``: time two pieces of work in turns, or one against a measurement that was saved."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Never, Self

from gpulab import device, stats
from gpulab.core.errors import InvalidOptionError, NotComparableError, TooSlowError
from gpulab.core.foreign_text import one_line
from gpulab.core.markup import clean
from gpulab.core.requirements import POSITIVE, Requirement
from gpulab.core.serialization import Saved
from gpulab.core.tracebacks import UsersTraceback
from gpulab.core.units import counted
from gpulab.device import clocks
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work
from gpulab.timing._isolation import left_as_found
from gpulab.timing._measure import measure
from gpulab.timing._options import (
    DEFAULTS,
    MeasurementOptions,
    amount_of,
    refuse_uncallable,
    refuse_unknown,
)
from gpulab.timing._real_time import RealTime
from gpulab.timing._run import MeasurementRun
from gpulab.timing._stopping import StoppingRule, take_in_turns

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare", "measure_in_turns"]


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
    """Two measurements, and the ratio of their times.

    Attributes
    ----------
    first, second
        The two measurements.
    is_paired
        Whether the samples were taken in turns. Then both have equally many, and samples with the
        same index were taken close together in time. Otherwise they were taken at different
        times, and GPU, clock and way of timing are compared before the times are.

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
    is_paired: bool = True

    def __post_init__(self) -> None:
        if self.is_paired and self.first.n_samples != self.second.n_samples:
            raise InvalidOptionError(
                f"first has {counted(self.first.n_samples, 'sample')} and second has "
                f"{counted(self.second.n_samples, 'sample')}; "
                "they are compared in pairs, so both must have the same number"
            )

    @property
    def obstacle(self) -> str:
        """Why the two cannot be compared; empty if they can.

        Samples that were taken in turns can always be compared. Others need the same GPU, source,
        method, cache and number of calls in a sample, clocks within 3 %, and on a virtual GPU the
        same version of gpulab, because its model may change.
        """
        return "" if self.is_paired else "; ".join(_differences(self.first, self.second))

    @property
    def ratio(self) -> float:
        """Time of second / first; 2 means that second takes twice as long.

        For samples in turns it is the median over all pairs, without those in which the first
        time is zero; otherwise the ratio of the medians. It is nan without a pair, if the first
        reads zero, or if the two are not comparable.
        """
        if not self.is_paired:
            is_known = self.first.median_s and not self.obstacle
            return self.second.median_s / self.first.median_s if is_known else math.nan
        # The median of the ratios, not the ratio of the medians: drift between two pairs, which
        # are far apart in time, is then in no ratio.
        return median(self._ratios())

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """95 % interval of the ratio, valid for these inputs, clocks and this machine only."""
        if math.isnan(self.ratio):
            return math.nan, math.nan
        if not self.is_paired:
            return self._widest_interval()
        return stats.median_interval(self._ratios(), _CONFIDENCE)

    def _widest_interval(self) -> tuple[float, float]:
        """Return the interval of samples without pairs, whose two errors cannot cancel."""
        (first_low_s, first_high_s), (low_s, high_s) = (
            self.first.interval_s,
            self.second.interval_s,
        )
        return low_s / first_high_s, high_s / first_low_s if first_low_s else math.inf

    @property
    def highest_ratio(self) -> float:
        """The upper end of the ratio's interval; nan without a ratio.

        It is known, too, if nothing differs but the clock of second, which was lower: a lower
        clock can only make second slower.
        """
        before_mhz, now_mhz = (
            record.conditions.clock_after_mhz or 0 for record in (self.first, self.second)
        )
        is_lower = not self.is_paired and now_mhz < before_mhz and self.first.median_s
        if is_lower and is_only_the_clock(self.first, self.second):
            return self._widest_interval()[1]
        return self.ratio_interval[1]

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 1; False means that no difference was seen."""
        low, high = self.ratio_interval
        return low > 1 or high < 1  # both are False for nan, that is without a ratio

    def check(self, *, at_most: float) -> Self:
        """Return this comparison if second takes at most ``at_most`` times as long as first.

        The whole interval must be below the limit, so that a noisy measurement does not pass. If
        nothing but the clock differs and second had the lower one, it passes below the limit, too.

        Parameters
        ----------
        at_most
            The largest ratio that passes, such as 1.05 for 5 % longer.

        Raises
        ------
        TooSlowError
            If the interval of the ratio is above the limit, or reaches above it; the message
            says which. It is an AssertionError, so that a test fails.
        NotComparableError
            If the two cannot be compared, or the first reads zero.

        Examples
        --------
        >>> import torch, gpulab
        >>> with gpulab.virtual_gpu("H200"):
        ...     a = torch.ones(1024, 1024, device="cuda")
        ...     result = gpulab.compare(lambda: a + a, lambda: a + a)
        >>> print(result.check(at_most=1.05).verdict())
        no difference seen: second / first = 1.000 [1.000, 1.000]
        """
        __tracebackhide__ = True  # pytest then shows the line of the test
        POSITIVE.check(at_most=at_most)
        low, high = self.ratio_interval[0], self.highest_ratio
        if high <= at_most:
            return self
        if math.isnan(low):
            raise NotComparableError(self.verdict())
        if low > at_most:
            raise TooSlowError(f"at most {at_most:g} times is allowed, and {self.verdict()}")
        raise TooSlowError(
            f"at most {at_most:g} times is not shown, because the interval reaches above it: "
            f"{self.verdict()}; measure again with a smaller precision= or a larger max_time_s="
        )

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
        """Return one line: which of the two takes longer, or that no difference was seen.

        It says why if the two cannot be compared.
        """
        if self.obstacle:
            high = self.highest_ratio
            known = (
                "" if math.isnan(high) else f"; even so it took at most {high:.3f} times as long"
            )
            return f"not comparable, because {self.obstacle}{known}"
        low, high = self.ratio_interval
        second, first = (
            one_line(self.second.label) or "second",
            one_line(self.first.label) or "first",
        )
        if math.isnan(self.ratio):
            return f"{first} reads zero each time, so there is no ratio to it"
        text = f"{second} / {first} = {self.ratio:.3f} [{low:.3f}, {high:.3f}]"
        text += "" if self.is_paired else ", taken at different times"
        if not self.differs:
            return f"no difference seen: {text}"
        return f"{second} takes {'longer' if low > 1 else 'less'}: {text}"

    def _ratios(self) -> list[float]:
        return _ratios(self.first.samples_s, self.second.samples_s) or [math.nan]


def compare(  # noqa: PLR0913  # every option is keyword-only and has a default
    first: Callable[[], object] | Measurement,
    second: Callable[[], object] | Measurement,
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
    flops: Callable[[], float] | float | str | None = DEFAULTS.flops,
    size_bytes: Callable[[], float] | float | None = DEFAULTS.size_bytes,
    **unknown: Never,
) -> Comparison:
    """Return the ratio of the times of two pieces of work, measured in turns, with an interval.

    Clocks drift, and the work that is measured second meets a hotter GPU. Here the two take
    turns, five samples each, so the drift affects both equally, and each sample is divided by
    its neighbour. The ratio is valid for these inputs on this machine now.

    A measurement in place of a function was taken at another time, such as one that was saved
    before a change. Then nothing takes turns, the interval is wider, and the result says "not
    comparable, because ..." if the GPU, its clock or the way of timing was another.

    Parameters
    ----------
    first, second
        Functions without arguments that enqueue the work, or measurements.
    labels
        Their names; a measurement with a label keeps it.
    method, cache, flush, floor, setup, n_warmup, inner_loops, flops, size_bytes
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

    A measurement from before a change is compared with the work after it:

    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1 << 20, device="cuda")
    ...     before = gpulab.measure(lambda: a + a, label="before")
    ...     print(gpulab.compare(before, lambda: a + a, labels=("", "now")).verdict())
    no difference seen: now / before = 1.000 [1.000, 1.000], taken at different times
    """
    with UsersTraceback():
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
            flops=amount_of("flops", flops),
            size_bytes=amount_of("size_bytes", size_bytes),
        )
        for name, work in (("first", first), ("second", second)):
            if not isinstance(work, Measurement):
                refuse_uncallable(name, work)
        _LABELS.check(labels=labels)
        if isinstance(first, Measurement) or isinstance(second, Measurement):
            return Comparison(
                _labelled(first, labels[0], options),
                _labelled(second, labels[1], options),
                is_paired=False,
            )
        first_times, second_times = measure_in_turns((first, second), labels, options)
        return Comparison(first_times, second_times)


def measure_in_turns(
    works: Iterable[Work], labels: Iterable[str], options: MeasurementOptions
) -> tuple[Measurement, ...]:
    """Return the times of several works, measured in turns and with equally many samples.

    Sampling stops when the ratio of each to the first is precise enough. The options are the same
    for all.
    """
    works = list(works)
    with device.active():
        with left_as_found():
            real_time = RealTime(options.max_time_s, n_works=len(works))
            runs = [MeasurementRun.prepare(work, options, real_time=real_time) for work in works]
            _sample(runs, options, real_time)
        pairs = zip(runs, labels, strict=True)
        return tuple(run.measurement(label=label) for run, label in pairs)


def _labelled(
    work: Callable[[], object] | Measurement, label: str, options: MeasurementOptions
) -> Measurement:
    """Return a measurement of the work, or the measurement itself, with a label."""
    if not isinstance(work, Measurement):
        return measure(work, **options.arguments(), label=label, progress=False)
    return work if work.label.strip() else replace(work, label=label)


def _changes(first: Measurement, second: Measurement) -> Iterator[str]:
    """Yield what else than the clock differs between two measurements of different times."""
    before, after = first.conditions, second.conditions
    same: list[tuple[str, object, object]] = [
        ("GPU", before.device_name, after.device_name),
        ("source", first.source, second.source),
        ("method", first.method, second.method),
        ("cache", before.cache, after.cache),
        ("number of calls in a sample", first.inner_loops, second.inner_loops),
    ]
    if first.source == second.source == "virtual":
        same.append(("version of gpulab's model", before.gpulab_version, after.gpulab_version))
    for name, old, new in same:
        if old != new:
            yield one_line(f"the {name} was {old}, and then {new}")


def _differences(first: Measurement, second: Measurement) -> Iterator[str]:
    """Yield why two measurements that were taken at different times are not comparable."""
    if changes := [*_changes(first, second)]:
        # The clock of another GPU is another one, too, and to lock it would not help.
        yield from changes
        yield "measure both on one machine and in the same way"
    elif clocks_differ(first, second):
        old_mhz, new_mhz = (record.conditions.clock_after_mhz for record in (first, second))
        yield (
            f"the clock was {old_mhz} MHz, and then {new_mhz} MHz; time both functions in "
            "turns, or lock the clock: gpulab.clocks.lock()"
        )


def is_only_the_clock(first: Measurement, second: Measurement) -> bool:
    """Return whether two measurements could be compared but for the clock of the GPU."""
    return clocks_differ(first, second) and not any(_changes(first, second))


def clocks_differ(first: Measurement, second: Measurement) -> bool:
    """Return whether the clocks of two measurements are known, and too far apart to compare."""
    old_mhz = first.conditions.clock_after_mhz
    new_mhz = second.conditions.clock_after_mhz
    if not old_mhz or not new_mhz:
        return False
    return abs(new_mhz / old_mhz - 1) > clocks.TOLERANCE


def _sample(runs: list[MeasurementRun], options: MeasurementOptions, real_time: RealTime) -> None:
    """Take the samples of all runs in turns, then update their floors."""
    n_taken, reason = take_in_turns(
        [partial(_take_turn, run) for run in runs],
        StoppingRule(options=options, n_least=_N_LEAST, real_time=real_time),
        count=lambda: min(len(run.samples.values_s) for run in runs),
        judged=lambda: _least_precise(*(run.samples_s() for run in runs)),
        n_next=lambda n_taken, _: _n_next(options.n_samples, n_taken, runs, real_time),
    )
    for run in runs:
        # An interrupt during another run's turn leaves the first with samples without a pair.
        run.samples.keep(n_taken)
        run.stopped_by = reason
        # The runs share one stretch of time, so the first and last readings of the batches serve
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
    turn_s = None if None in known_s else sum(filter(None, known_s))
    return real_time.fitting(_N_TURN, turn_s)


def _take_turn(run: MeasurementRun, n_samples: int) -> None:
    with run.counting_allocations():
        run.take(n_samples)


def _least_precise(first_s: Sequence[float], *others_s: Sequence[float]) -> Sequence[float]:
    """Return the ratios to the first samples that have the widest interval."""
    # Work that enqueues nothing reads zero and has no ratio; a constant ends the sampling.
    ratios = [_ratios(first_s, other_s) or [1.0] for other_s in others_s]
    return ratios[0] if len(ratios) == 1 else max(ratios, key=_relative_width)


def _relative_width(ratios: Sequence[float]) -> float:
    low, high = stats.median_interval(ratios)
    return (high - low) / (median(ratios) or 1.0)


def _ratios(first_s: Sequence[float], second_s: Sequence[float]) -> list[float]:
    """Return second / first for each pair in which the first is not zero."""
    return [b / a for a, b in zip(first_s, second_s, strict=True) if a]
