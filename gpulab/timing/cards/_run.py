"""Run a user's benchmark over the works of a card, and compare it with the driver's records."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from gpulab import device
from gpulab.core.errors import ProfilerBusyError, ProfilerUnavailableError
from gpulab.core.progress import Bar
from gpulab.core.requirements import COUNT_OR_ZERO, FLAG
from gpulab.core.units import format_time
from gpulab.device.measurement import Measurement
from gpulab.device.work import Work, check_callable
from gpulab.timing import measure
from gpulab.timing.cards._card import Card, CardCheck, CardEntry
from gpulab.timing.cards._problems import problem_of
from gpulab.timing.cards._works import (
    CardWork,
    on_another_stream,
    slow_at_first,
    spinning,
    waiting,
    works,
)
from gpulab.tracing.trials import Trial, WatchedWork, tried

Benchmark = Callable[[Work], object]

_REFEREE, _STAND_IN = "profiler-span", "calibrated"
_VIRTUAL_RECORDS = "the virtual GPU's own records"
_CACHES = ("hot", "cold")
_N_READINGS = 3  # calls of the benchmark per work, for the spread
_N_SAMPLES = 15
# Much longer than a launch, so that a benchmark that reads the launch alone fails every check.
_CHECK_US = 200.0
# A check passes within 15 % plus 15 µs, for the launch and the wake-up that a stopwatch adds.
_TOLERANCE, _FLOOR_S = 0.15, 1.5e-5
_CURE = "pass your benchmark, a function that is given a work: card(benchmark)"


def card(
    benchmark: Callable[[Callable[[], object]], object],
    *,
    seed: int | None = None,
    progress: bool = True,
) -> Card:
    """Run your benchmark over works that it has not seen, and return how well it times them.

    Each reading is compared with the driver's records and with :func:`measure`. The card is about
    these works on the GPU in use. On the virtual GPU the records are those of the simulator.

    Parameters
    ----------
    benchmark
        ``benchmark(fn)`` calls ``fn``, a function without arguments, and returns the seconds of
        one call, alone or as the first of a pair.
    seed
        Seed for the sizes of the hidden works; None: other sizes each time. The card has the seed.
    progress
        Whether to show a text progress bar after one second.

    Returns
    -------
    Card
        Readings, errors, spread, conditions and the situations that the benchmark does not handle.
        If the benchmark raises an error or returns something else, the card says so.

    Raises
    ------
    NotCallableError
        If the benchmark cannot be called.
    InvalidOptionError
        If the seed is not a whole number of at least 0.

    Examples
    --------
    >>> import gpulab
    >>> with gpulab.virtual_gpu("H200"):
    ...     result = gpulab.card(lambda fn: gpulab.measure(fn).median_s, seed=1, progress=False)
    >>> result.median_error < 0.05
    True
    """
    check_callable("benchmark", benchmark, _CURE)
    COUNT_OR_ZERO.or_none.check(seed=seed)
    FLAG.check(progress=progress)
    drawn = secrets.randbits(32) if seed is None else int(seed)
    with device.active() as in_use:
        planned = works(drawn)
        rows = [
            _tried(benchmark, work)
            for work in Bar(planned, desc="card", unit=" works", disable=not progress)
        ]
        # A benchmark may flush the cache or not; it is judged by the state that fits it better.
        cache = min(_CACHES, key=lambda state: _distance(rows, state))
        return Card(
            benchmark=getattr(benchmark, "__name__", type(benchmark).__name__),
            source=in_use.source,
            device_name=in_use.name,
            cache=cache,
            seed=drawn,
            entries=tuple(row.entry(cache) for row in rows),
            checks=tuple(CardCheck(name, check(benchmark)) for name, check in _CHECKS.items()),
            conditions=rows[-1].measured[cache].conditions,
            referee=rows[-1].referee if in_use.source == "measured" else _VIRTUAL_RECORDS,
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """One work with its readings, for both states of the cache."""

    work: CardWork
    records: dict[str, Measurement]
    measured: dict[str, Measurement]
    trials: tuple[Trial, ...]
    referee: str

    @property
    def readings_s(self) -> tuple[float, ...]:
        return tuple(trial.seconds or 0.0 for trial in self.trials if not problem_of(trial))

    def entry(self, cache: str) -> CardEntry:
        problem = next(filter(None, map(problem_of, self.trials)), "")
        return CardEntry(
            self.work.name,
            self.work.group,
            self.records[cache].median_s,
            self.measured[cache].median_s,
            self.readings_s,
            problem,
        )


def _tried(benchmark: Benchmark, planned: CardWork) -> _Row:
    """Time the same work by the driver's records, the benchmark, and gpulab.measure."""
    work = planned.make()
    referee = "the driver's records"
    try:
        records = {state: _read(work, _REFEREE, state) for state in _CACHES}
    except (ProfilerBusyError, ProfilerUnavailableError):
        referee = "gpulab.measure"
        records = {state: _read(work, _STAND_IN, state) for state in _CACHES}
    trials = tuple(tried(benchmark, WatchedWork(work), clocks=True) for _ in range(_N_READINGS))
    measured = {state: _read(work, _STAND_IN, state) for state in _CACHES}
    return _Row(planned, records, measured, trials, referee)


def _read(work: Work, method: str, cache: str) -> Measurement:
    return measure(work, method=method, cache=cache, n_samples=_N_SAMPLES)


def _distance(rows: list[_Row], cache: str) -> float:
    """Return the median relative distance of the readings from the records of one cache state."""
    errors = [
        abs(median(row.readings_s) / row.records[cache].median_s - 1)
        for row in rows
        if row.readings_s
    ]
    return median(errors) if errors else 0.0


# Each check returns what the benchmark does wrong, as the end of a sentence; empty if it is right.


def _busy(benchmark: Benchmark) -> str:
    # A backlog of a hundred times the work: if it is timed, nothing else explains the reading.
    spinning(100 * _CHECK_US)()
    return _compared(benchmark, spinning(_CHECK_US), "a kernel while other work is queued")


def _slow_first(benchmark: Benchmark) -> str:
    return _compared(benchmark, slow_at_first(_CHECK_US), "work whose first calls are slow")


def _other_stream(benchmark: Benchmark) -> str:
    return _compared(benchmark, on_another_stream(_CHECK_US), "a kernel on a side stream")


def _waits(benchmark: Benchmark) -> str:
    return _compared(benchmark, waiting(_CHECK_US), "work that waits for its own kernel")


def _raises(benchmark: Benchmark) -> str:
    """Check that the benchmark lets the work's own error through."""

    def work() -> None:
        raise _WorkError

    trial = tried(benchmark, WatchedWork(work), clocks=True)
    if isinstance(trial.error, _WorkError):
        return ""
    if trial.error is not None:
        return f"{problem_of(trial)}; let the error of the work through"
    return "returned as if nothing had happened; let the error of the work through"


class _WorkError(Exception):
    """The error that the work of one check raises."""


def _compared(benchmark: Benchmark, work: Work, what: str) -> str:
    trial = tried(benchmark, WatchedWork(work), clocks=True)
    # Timed here and now: cycles of the spinning kernel depend on the clock of this GPU.
    true_s = _read(spinning(_CHECK_US), _STAND_IN, "hot").median_s
    problem, seconds = problem_of(trial), trial.seconds or 0.0
    if problem or true_s * (1 - _TOLERANCE) < seconds < true_s * (1 + _TOLERANCE) + _FLOOR_S:
        return problem
    return f"reads {format_time(seconds)} for {what}, which takes {format_time(true_s)}"


_CHECKS: dict[str, Callable[[Benchmark], str]] = {
    "a GPU that is still busy": _busy,
    "slow first calls": _slow_first,
    "work on another stream": _other_stream,
    "work that waits": _waits,
    "work that raises": _raises,
}
