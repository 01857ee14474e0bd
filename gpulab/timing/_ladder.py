"""``ladder``: time one piece of work by every method, each judged by the driver's records."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Never

from gpulab import device
from gpulab.core.errors import (
    InvalidOptionError,
    NotCapturableError,
    ProfilerBusyError,
    ProfilerUnavailableError,
)
from gpulab.core.foreign_text import one_line, visible, visible_row
from gpulab.core.markup import clean, table
from gpulab.core.progress import Bar
from gpulab.core.requirements import FLAG, TEXT
from gpulab.core.serialization import Saved
from gpulab.core.tracebacks import UsersTraceback
from gpulab.core.units import aligned, format_interval, format_percent, format_time
from gpulab.device.measurement import Finding, Measurement
from gpulab.device.work import Work
from gpulab.gpus.provenance import check_source, device_label
from gpulab.timing._measure import measure
from gpulab.timing._options import DEFAULTS, MeasurementOptions, refuse_uncallable, refuse_unknown

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["N_RUNGS", "Ladder", "Rung", "ladder", "run_ladder"]


# The span and not the busy time, because events around several kernels also include the pauses.
REFEREE = "profiler-span"
_CACHES = ("hot", "cold")
# Errors that stop one method only: the ladder shows them on its rung and goes on.
_OBSTACLES = (NotCapturableError, ProfilerBusyError, ProfilerUnavailableError)


@dataclass(frozen=True, slots=True)
class _PlannedRung:
    """The method and the options that a rung is measured with."""

    name: str
    repairs: str
    method: str
    cache: str
    is_warm: bool = True


_STEPS = (
    _PlannedRung("naive", "nothing: a stopwatch round the call", "naive", "hot", is_warm=False),
    _PlannedRung(
        "synchronized", "the host waits for the GPU", "synchronized", "hot", is_warm=False
    ),
    _PlannedRung("events", "the GPU's own clock", "events", "hot", is_warm=False),
    _PlannedRung("+ warm-up", "first calls are left out", "events", "hot"),
    _PlannedRung("+ cache flush", "inputs come from memory", "events", "cold"),
    _PlannedRung("+ sleep", "the host is ahead of the GPU", "saturated", "cold"),
    _PlannedRung("calibrated", "the events' floor is taken off", "calibrated", "cold"),
    _PlannedRung("calibrated, hot", "the same on a hot cache", "calibrated", "hot"),
    _PlannedRung("graph", "no launch by Python, hot cache", "graph", "hot"),
    _PlannedRung("graph, cold", "the flush is in the graph, not timed", "graph", "cold"),
    _PlannedRung("driver's records, hot", "the referee for hot rungs", REFEREE, "hot"),
    _PlannedRung("driver's records, cold", "the referee for cold rungs", REFEREE, "cold"),
)
N_RUNGS = len(_STEPS)
_MAX_TIME_S = 0.5  # for each rung
_MOSTLY = 0.95  # kernels that take this share of the work leave no pauses to speak of
_OF_ALL_RUNGS = frozenset(
    {"below-resolution", "nothing-launched", "shared-gpu", "slow-simulation"}
)


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of a ladder: the time by one method, and the driver's records to judge it by.

    Attributes
    ----------
    name, repairs
        Its name, and which error of the rung before it avoids.
    record
        The measurement; None if the method cannot time this work.
    referee_s
        Seconds per call by the driver's records with the same state of the cache, as the mean of
        before and after the other rungs; None without records.
    obstacle
        Why there is no measurement; empty if there is one.

    Raises
    ------
    InvalidOptionError
        If ``referee_s`` is negative or not finite.

    Examples
    --------
    >>> import torch, gpulab
    >>> from gpulab.timing import Rung
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     taken = gpulab.measure(lambda: a @ a, method="events", n_samples=5)
    >>> Rung("events", "the GPU's own clock", taken, referee_s=taken.median_s / 2).error
    1.0
    """

    name: str
    repairs: str
    record: Measurement | None = None
    referee_s: float | None = None
    obstacle: str = ""

    def __post_init__(self) -> None:
        if self.referee_s is not None and not 0 <= self.referee_s < math.inf:
            raise InvalidOptionError(
                f"referee_s={self.referee_s}; it must be a finite number of seconds, 0 or more"
            )

    @property
    def error(self) -> float | None:
        """Relative difference from the records; 0.1 means 10 % too long. None without records."""
        if self.record is None or not self.referee_s:
            return None
        return self.record.median_s / self.referee_s - 1


@dataclass(frozen=True, slots=True)
class Ladder(Saved):
    """All rungs of one piece of work, the lowest first.

    Attributes
    ----------
    rungs
        Each avoids an error that the rung before it makes.
    source, device_name
        Where the times come from, as in a :class:`~gpulab.device.measurement.Measurement`.
    label
        Name of the work.
    kernels_s
        Seconds of its kernels alone on a cold cache, by the driver's records; None if they are as
        long as the work, which includes the pauses between them.

    Raises
    ------
    UnknownNameError
        If the source is not one of the three.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(64, 64, device="cuda")
    ...     ladder = gpulab.ladder(lambda: a @ a, progress=False)
    >>> ladder.rungs[0].name, len(ladder.rungs)
    ('naive', 12)
    """

    schema: ClassVar[str] = "gpulab.ladder/1"

    rungs: tuple[Rung, ...]
    source: str
    device_name: str
    label: str = ""
    kernels_s: float | None = None

    def __post_init__(self) -> None:
        check_source(self.source)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about the work itself, each once; those about a single rung are in its record.

        They say that the work enqueued nothing, that its simulation took too long, or that other
        processes use the GPU.
        """
        by_code = {
            finding.code: finding
            for rung in self.rungs
            for finding in (() if rung.record is None else rung.record.findings)
            if finding.code in _OF_ALL_RUNGS
        }
        return tuple(by_code.values())

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with one row per rung.

        Columns are ``rung``, ``method``, ``cache``, ``median_s``, ``low_s``, ``high_s`` (95 %
        interval), ``referee_s``, ``error`` (relative), ``repairs`` and ``obstacle``.
        """
        import pandas as pd

        return pd.DataFrame([visible_row(_row(rung)) for rung in self.rungs]).assign(
            source=self.source,
            device_name=visible(self.device_name),
            label=visible(self.label),
        )

    def __str__(self) -> str:
        rows = aligned([_HEAD, *map(_cells, self.rungs)])
        notes = [f"  {sentence}" for sentence in self._of_kernels()]
        notes += [f"  note: {finding.brief()}" for finding in self.findings]
        return "\n".join([*rows, f"({device_label(self.device_name, self.source)})", *notes])

    __repr__ = __str__

    def _of_kernels(self) -> list[str]:
        if self.kernels_s is None:
            return []
        sentence = (
            f"the kernels alone take {format_time(self.kernels_s)} (cold): this is how much the "
            "GPU has to do; a program waits for the pauses between them, too"
        )
        return [sentence]

    def _repr_html_(self) -> str:
        name = f"{self.label}: " if self.label else ""
        caption = f"{name}every method beside the driver's records; {self.device_name}"
        rungs = table(map(_cells, self.rungs), caption=f"{caption}, {self.source}", headings=_HEAD)
        texts = [*self._of_kernels(), *map(str, self.findings)]
        notes = "".join(f"<li>{clean(text)}</li>" for text in texts)
        return f"{rungs}<ul>{notes}</ul>" if notes else rungs


_HEAD = ("rung", "reads", "95 % interval", "off by", "what it repairs")


def ladder(  # noqa: PLR0913  # every option is keyword-only and has a default
    work: Callable[[], object],
    *,
    setup: Work | None = DEFAULTS.setup,
    precision: float = DEFAULTS.precision,
    max_time_s: float = _MAX_TIME_S,
    label: str = "",
    progress: bool = True,
    **unknown: Never,
) -> Ladder:
    """Return the time of one piece of work by every method, each judged by the driver's records.

    The records are read before and after the other rungs, because clocks drift. A method that
    differs from them is not always wrong: the first rungs time something else, such as how long
    a program waits. For work of several kernels the records include the pauses between the
    kernels, as events do.

    Parameters
    ----------
    work
        A function without arguments that enqueues the work.
    setup
        Called before each sample and not timed.
    precision, max_time_s
        For each rung, as in :func:`gpulab.measure`.
    label
        A name for the work.
    progress
        Whether to show a bar (in text) after one second.

    Returns
    -------
    Ladder
        One rung per method; the rung of a method that cannot time this work says why.

    Raises
    ------
    NotCallableError, InvalidOptionError
        As :func:`gpulab.measure`. An exception of the work itself reaches you unchanged.

    Examples
    --------
    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     a = torch.ones(1024, 1024, device="cuda")
    ...     climbed = gpulab.ladder(lambda: a + a)
    >>> [rung.name for rung in climbed.rungs][:3]
    ['naive', 'synchronized', 'events']
    """
    with UsersTraceback():
        refuse_unknown(ladder, unknown)
        FLAG.check(progress=progress)
        rungs = run_ladder(
            work, setup=setup, precision=precision, max_time_s=max_time_s, label=label
        )
        *_, whole = Bar(rungs, total=N_RUNGS, desc="timing", unit=" rungs", disable=not progress)
        return whole  # type: ignore[no-any-return]  # tqdm has no types


def run_ladder(
    work: Callable[[], object],
    *,
    setup: Work | None = DEFAULTS.setup,
    precision: float = DEFAULTS.precision,
    max_time_s: float = _MAX_TIME_S,
    label: str = "",
) -> Iterator[Ladder]:
    """Yield the ladder after each new rung; the last one is what :func:`ladder` returns.

    The earlier ones judge their rungs by the records before the first rung alone, as there are no
    later ones yet. Parameters and errors are those of :func:`ladder`.
    """
    refuse_uncallable("work", work)
    TEXT.check(label=label)
    options = MeasurementOptions(setup=setup, precision=precision, max_time_s=max_time_s)
    with device.active() as in_use:
        # Clocks drift while a ladder is climbed, so the referee is read before the other rungs,
        # too.
        first = {cache: _rung(work, options, _records(cache)).record for cache in _CACHES}
        alone = _rung(work, options, _PlannedRung("", "", "profiler", "cold")).record
        kernels_s = _without_pauses(alone, first["cold"])
        rungs: list[Rung] = []
        for step in _STEPS:
            rungs.append(_rung(work, options, step))
            records = [rung.record for rung in rungs if rung.record is not None]
            last = {
                record.conditions.cache: record for record in records if record.method == REFEREE
            }
            judged = tuple(_judged(rung, first, last) for rung in rungs)
            yield Ladder(judged, in_use.source, in_use.name, label, kernels_s)


def _without_pauses(alone: Measurement | None, whole: Measurement | None) -> float | None:
    if alone is None or whole is None or alone.median_s >= _MOSTLY * whole.median_s:
        return None
    return alone.median_s


def _records(cache: str) -> _PlannedRung:
    return _PlannedRung("", "", REFEREE, cache)


def _rung(work: Work, shared: MeasurementOptions, step: _PlannedRung) -> Rung:
    """Return one rung, measured with its method and with the options that all rungs share."""
    # The first rungs show what a stopwatch or events read if nobody warms up.
    n_warmup = None if step.is_warm else 0
    options = replace(shared, method=step.method, cache=step.cache, n_warmup=n_warmup)
    try:
        record = measure(work, **options.arguments(), label=step.name, progress=False)
    except _OBSTACLES as error:
        return Rung(step.name, step.repairs, obstacle=str(error))
    return Rung(step.name, step.repairs, record)


def _judged(
    rung: Rung, first: dict[str, Measurement | None], last: dict[str, Measurement]
) -> Rung:
    if rung.record is None:
        return rung
    cache = rung.record.conditions.cache
    records = [record for record in (first[cache], last.get(cache)) if record is not None]
    if not records:
        return rung
    referee_s = sum(record.median_s for record in records) / len(records)
    return Rung(rung.name, rung.repairs, rung.record, referee_s)


def _row(rung: Rung) -> dict[str, object]:
    record = rung.record
    low_s, high_s = (None, None) if record is None else record.interval_s
    return {
        "rung": rung.name,
        "method": None if record is None else record.method,
        "cache": None if record is None else record.conditions.cache,
        "median_s": None if record is None else record.median_s,
        "low_s": low_s,
        "high_s": high_s,
        "referee_s": rung.referee_s,
        "error": rung.error,
        "repairs": rung.repairs,
        "obstacle": rung.obstacle,
    }


def _cells(rung: Rung) -> tuple[str, ...]:
    if rung.record is None:
        return one_line(rung.name), "not timed", "", "", one_line(rung.obstacle)
    error = "" if rung.error is None else format_percent(rung.error, 1, sign="+")
    return (
        one_line(rung.name),
        format_time(rung.record.median_s),
        format_interval(*rung.record.interval_s),
        error,
        one_line(rung.repairs),
    )
