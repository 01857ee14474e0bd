"""Two pieces of work, measured in turns, so that clocks that drift move both alike."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, ClassVar, Never

from gpulab import device, stats
from gpulab.errors import InvalidOptionError
from gpulab.foreign_text import one_line
from gpulab.markup import clean
from gpulab.measurement import Measurement
from gpulab.requirements import Requirement
from gpulab.serialization import Saved
from gpulab.timing._isolation import left_as_found
from gpulab.timing._options import DEFAULTS, MeasurementOptions, refuse_uncallable, refuse_unknown
from gpulab.timing._run import MeasurementRun
from gpulab.timing._stopping import StoppingRule, take_in_turns
from gpulab.work import Work

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparison", "compare"]


_N_TURN = 5  # samples of one before it is the other's turn
_N_LEAST = 20  # pairs before any precision is claimed
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
        As many samples each; the ones with the same index were taken next to each other.

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
        if math.isnan(self.ratio):
            return math.nan, math.nan
        return stats.median_interval(self._ratios(), _CONFIDENCE)

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out 1; if not, no difference was seen, which is not none."""
        low, high = self.ratio_interval
        return low > 1 or high < 1  # neither where there is no ratio

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row a sample of either; columns as of a measurement."""
        import pandas as pd

        return pd.concat([self.first.to_frame(), self.second.to_frame()], ignore_index=True)

    def __str__(self) -> str:
        return "\n".join([str(self.first), str(self.second), self.verdict()])

    def _repr_html_(self) -> str:
        tables = (record._repr_html_() for record in (self.first, self.second))
        return f"<p>{clean(self.verdict())}</p>{''.join(tables)}"

    def verdict(self) -> str:
        """Say in one line which of the two takes longer, if that was seen."""
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
            runs = [MeasurementRun.prepare(work, options) for work in (first, second)]
            _sample(runs, options)
        return Comparison(
            *(run.measurement(label=label) for run, label in zip(runs, labels, strict=True))
        )


def _sample(runs: list[MeasurementRun], options: MeasurementOptions) -> None:
    """Take the samples of both runs in turns, and what is learnt after them."""
    n_taken, reason = take_in_turns(
        [partial(_take_turn, run) for run in runs],
        StoppingRule.of_options(options, n_least=_N_LEAST),
        judged=lambda: _ratios(*(run.samples_s() for run in runs)) or [1.0],
        n_next=lambda n_taken, _: _n_next(options.n_samples, n_taken),
    )
    for run in runs:
        run.samples.keep(n_taken)  # the other may have been interrupted in its turn
        run.stopped_by = reason
        run.before, run.after = run.samples.readings[0], run.samples.readings[-1]
        run.update_floor()


def _n_next(n_samples: int | None, n_taken: int) -> int:
    return _N_TURN if n_samples is None else min(_N_TURN, n_samples - n_taken)


def _take_turn(run: MeasurementRun, n_samples: int) -> None:
    with run.counting_allocations():
        run.take(n_samples)


def _ratios(first_s: Sequence[float], second_s: Sequence[float]) -> list[float]:
    """Return second over first, pair by pair, without those in which the first is zero."""
    return [b / a for a, b in zip(first_s, second_s, strict=True) if a]


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
