"""Two pieces of work, measured in turns, so that clocks that drift move both alike."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Never

from gpulab import clocks, device, stats
from gpulab.errors import InvalidOptionError
from gpulab.measurement import Measurement
from gpulab.serialization import Saved
from gpulab.timing._assemble import RunObservations
from gpulab.timing._isolation import left_as_found, watched
from gpulab.timing._measure import count_allocations, floor_for, later_floor, method_for
from gpulab.timing._methods import Method, Sampler
from gpulab.timing._options import MeasurementOptions, make_options, refuse_unknown
from gpulab.timing._sampling import Run
from gpulab.timing._warmup import WarmUp, warm_up
from gpulab.timing.calibration import Floor
from gpulab.work import Work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


_N_TURN = 5  # samples of one before it is the other's turn
_N_FIRST = 20  # pairs before any precision is claimed
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Comparison(Saved):
    """Two measurements whose samples were taken in turns.

    Attributes
    ----------
    first, second
        As many samples each; the ones with the same index were taken next to each other.
    """

    schema: ClassVar[str] = "gpulab.comparison/1"

    first: Measurement
    second: Measurement

    def __post_init__(self) -> None:
        if self.first.n_samples != self.second.n_samples:
            raise InvalidOptionError(
                f"first has {self.first.n_samples} samples and second {self.second.n_samples}; "
                "they are compared in pairs and must have as many"
            )

    @property
    def ratio(self) -> float:
        """Median of second over first, pair by pair: 2 says that second takes twice as long.

        Pairs in which the first reads zero are left out; it is nan if there are no others.
        """
        return median(self._ratios())

    @property
    def ratio_interval(self) -> tuple[float, float]:
        """95 % interval of that median; it knows nothing of other inputs, clocks or machines."""
        return stats.median_interval(self._ratios(), _CONFIDENCE)

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1; if not, no difference was seen, which is not none."""
        low, high = self.ratio_interval
        return not low <= 1 <= high

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a sample of either; columns as of a measurement."""
        import pandas as pd

        return pd.concat([self.first.to_frame(), self.second.to_frame()], ignore_index=True)

    def __str__(self) -> str:
        return "\n".join([str(self.first), str(self.second), self.verdict()])

    def _repr_html_(self) -> str:
        tables = (record._repr_html_() for record in (self.first, self.second))
        return f"<p>{escape(self.verdict())}</p>{''.join(tables)}"

    def verdict(self) -> str:
        """Say in one line which of the two takes longer, if that was seen."""
        low, high = self.ratio_interval
        second, first = self.second.label or "second", self.first.label or "first"
        found = f"{self.ratio:.3f} [{low:.3f}, {high:.3f}]"
        if not self.differs:
            return f"no difference seen: {second} / {first} = {found}"
        return f"{second} takes {'longer' if low > 1 else 'less'}: {second} / {first} = {found}"

    def _ratios(self) -> list[float]:
        pairs = zip(self.first.samples_s, self.second.samples_s, strict=True)
        return [b / a for a, b in pairs if a] or [math.nan]


def compare(  # noqa: PLR0913  # every option is keyword-only and has a default
    first: Callable[[], object],
    second: Callable[[], object],
    *,
    labels: tuple[str, str] = ("first", "second"),
    method: str = "calibrated",
    cache: str | None = None,
    flush: str = "read",
    floor: str = "work",
    setup: Work | None = None,
    n_samples: int | None = None,
    n_warmup: int | None = None,
    inner_loops: int = 1,
    precision: float = 0.01,
    max_time_s: float = 2.0,
    **unknown: Never,
) -> Comparison:
    """Measure two pieces of work in turns, and give the ratio of their times with an interval.

    Clocks drift, and what is measured later is measured on a hotter GPU; in turns, five samples
    each, both drift alike, and each sample is divided by its neighbour. The ratio is that of
    these inputs on this machine now.

    Parameters
    ----------
    first, second
        Functions of no arguments that enqueue the work.
    labels
        Their names.
    method, cache, flush, floor, setup, n_warmup, inner_loops
        As in :func:`gpulab.measure`.
    n_samples
        How many pairs. None: until the interval of the ratio lies within ``precision`` (at
        least 20), or ``max_time_s`` has passed.
    precision
        Half the width of the ratio's interval that is good enough, as a share of the ratio.
    max_time_s
        When to stop sampling, in seconds, if ``n_samples`` is not given.

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
    plans = [
        make_options(
            work,
            method=method,
            cache=cache,
            flush=flush,
            floor=floor,
            setup=setup,
            inputs=None,
            n_samples=n_samples,
            n_warmup=n_warmup,
            inner_loops=inner_loops,
            precision=precision,
            max_time_s=max_time_s,
        )
        for work in (first, second)
    ]
    with device.active():
        with left_as_found():
            sides = [_Side.warm(plan) for plan in plans]
            _take_turns(sides)
            for side in sides:
                side.floor = later_floor(side.plan, side.floor, side.run, side.before)
        records = [
            side.outcome().measurement(label=label, least_s=None)
            for side, label in zip(sides, labels, strict=True)
        ]
        return Comparison(*records)


@dataclass(slots=True)
class _Side:
    """One of the two, as it is sampled."""

    plan: MeasurementOptions
    method: Method
    warm_up: WarmUp
    take: Sampler
    run: Run
    before: Work
    floor: Floor | None
    n_allocations: int = 0

    @classmethod
    def warm(cls, plan: MeasurementOptions) -> "_Side":
        before = plan.before()  # as in measuring: what needs memory comes first
        seen = warm_up(plan.work, n_calls=plan.n_warmup, max_time_s=plan.max_time_s)
        method = method_for(plan, seen)
        take = plan.sampler(method, before)
        found = floor_for(plan, method, before)
        return cls(plan, method, seen, take, Run(), before, found)

    def turn(self, n_samples: int) -> None:
        n_allocations = count_allocations()
        with watched(f"while samples from {len(self.run.samples_s) + 1} on were taken"):
            samples_s = self.take(n_samples)
        self.run.add(samples_s, clocks.try_read(parts=clocks.QUICK))
        self.n_allocations += count_allocations() - n_allocations

    def outcome(self) -> RunObservations:
        return RunObservations(
            plan=self.plan,
            method=self.method,
            warm=self.warm_up,
            run=self.run,
            before=self.run.readings[0],
            after=self.run.readings[-1],
            n_starved=getattr(self.take, "n_starved", 0),
            n_dropped=getattr(self.take, "n_dropped", 0),
            n_allocations=self.n_allocations,
            floor=self.floor,
        )


def _take_turns(sides: list[_Side]) -> None:
    """Sample in the order a b b a a b b a, so that a steady drift falls on both alike."""
    plan, order = sides[0].plan, list(sides)
    start_s, reason = time.perf_counter(), ""
    n_whole = 0
    try:
        while not reason:
            n_next = _N_TURN if plan.n_samples is None else min(_N_TURN, plan.n_samples - n_whole)
            for side in order:
                side.turn(n_next)
            n_whole += n_next
            order.reverse()
            reason = _reason_to_stop(sides, n_whole, time.perf_counter() - start_s)
    except KeyboardInterrupt:
        if n_whole == 0:
            raise
        reason = "interrupt"
    for side in sides:
        side.run.keep(n_whole)  # the other may have been interrupted in its turn
        side.run.stopped_by = reason


def _reason_to_stop(sides: list[_Side], n_taken: int, elapsed_s: float) -> str:
    plan = sides[0].plan
    if plan.n_samples is not None:
        return "n_samples" if n_taken >= plan.n_samples else ""
    if n_taken >= _N_FIRST:
        first, second = (side.outcome().samples_s() for side in sides)
        ratios = [b / a for a, b in zip(first, second, strict=True) if a]
        low, high = stats.median_interval(ratios) if ratios else (0.0, 0.0)
        if high - low <= 2 * plan.precision * median(ratios or [1.0]):
            return "precision"
    return "max_time" if elapsed_s >= plan.max_time_s else ""


def versus(before: Measurement, now: Measurement, name: str) -> str:
    """Say how a measurement stands to one that was taken at another time.

    The interval is the widest that the two allow, and clocks may have drifted in between; only
    :func:`compare`, in turns, is fair to both.
    """
    (low_before_s, high_before_s), (low_s, high_s) = before.interval_s, now.interval_s
    if not (before.median_s and low_before_s):
        return f"{name} reads zero, so there is no ratio to it"
    low, high = low_s / high_before_s, high_s / low_before_s
    found = f"{now.median_s / before.median_s:.3f} [{low:.3f}, {high:.3f}] times {name}"
    seen = "no difference seen" if low <= 1 <= high else "it differs"
    return f"{seen}: {found}, which was taken at another time"
