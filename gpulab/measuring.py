"""Warm up, take samples until the answer is precise enough, and say what to doubt.

The rungs in :mod:`gpulab.timing` take the samples. This module decides how many, keeps
what was taken when it is interrupted, and hands the process back as it found it.
"""

import inspect
import operator
import time
from dataclasses import dataclass
from numbers import Real
from statistics import median
from typing import Never

from tqdm import tqdm  # type: ignore[import-untyped]  # tqdm ships no types

from gpulab import device, stats
from gpulab.errors import InvalidOptionError, NotCallableError, UnknownNameError
from gpulab.findings import Facts, examine
from gpulab.guard import left_as_found, watched
from gpulab.measurement import Measurement
from gpulab.timing import Rung, Work, find_method
from gpulab.warmup import warm_up

__all__ = ["measure"]

_N_FIRST = 10  # no precision is claimed before so many samples
_CHUNK_S = 0.1  # what an interrupt may lose


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What was asked for, checked."""

    work: Work
    rung: Rung
    n_samples: int | None
    n_warmup: int | None
    inner_loops: int
    precision: float
    max_time_s: float

    def __post_init__(self) -> None:
        _refuse_uncallable(self.work)
        if self.n_samples is not None:
            _refuse_below("n_samples", self.n_samples, 1)
        if self.n_warmup is not None:
            _refuse_below("n_warmup", self.n_warmup, 0)
        _refuse_below("inner_loops", self.inner_loops, 1)
        if not (isinstance(self.precision, Real) and 0 < self.precision < 1):
            raise InvalidOptionError(
                f"precision={self.precision!r}; it must lie between 0 and 1, e.g. 0.01 for 1 %"
            )
        if not (isinstance(self.max_time_s, Real) and self.max_time_s > 0):
            raise InvalidOptionError(
                f"max_time_s={self.max_time_s!r}; it must be more than 0 seconds"
            )

    def take(self, n_samples: int) -> list[float]:
        """Take samples, in seconds per call."""
        return self.rung(self.work, n_samples=n_samples, inner_loops=self.inner_loops)


def measure(  # noqa: PLR0913  # every option is keyword-only and has a default
    work: Work,
    *,
    method: str = "events",
    n_samples: int | None = None,
    n_warmup: int | None = None,
    inner_loops: int = 1,
    precision: float = 0.01,
    max_time_s: float = 1.0,
    label: str = "",
    progress: bool = True,
    **unknown: Never,
) -> Measurement:
    """Time GPU work by a named method, until the answer is precise enough.

    The number is what the method reads, which is not always the time on the GPU: see
    :data:`gpulab.timing.METHODS`, and read the findings. Its interval tells how far
    repeating the run here and now would move it, not how far it is from the truth.

    Parameters
    ----------
    work
        A function of no arguments that enqueues the work. It is called
        ``n_warmup + n_samples * inner_loops`` times.
    method
        ``"naive"``, ``"synchronized"`` or ``"events"``.
    n_samples
        How many samples to take. None: until the 95 % interval of the median lies within
        ``precision`` (at least 10 samples) or ``max_time_s`` has passed.
    n_warmup
        Calls before the first sample. None: until they are steady, at most 100 calls or
        ``max_time_s``, and one more. With 2 or more, the last one is made behind a sleep
        of the GPU, which shows whether the work waits inside its call.
    inner_loops
        Calls inside each timed interval.
    precision
        Half the width of the interval that is good enough, as a share of the median.
    max_time_s
        When to stop sampling, in seconds, if ``n_samples`` is not given.
    label
        A name for the result.
    progress
        Whether to show a bar (in text) after one second.

    Returns
    -------
    Measurement
        At least one sample, in seconds per call, with conditions and findings.

    Raises
    ------
    NotCallableError
        If ``work`` is not a plain function.
    UnknownNameError
        If the method or an option does not exist.
    InvalidOptionError
        If an option has a value that cannot be used.
    StreamLeftOpenError
        If ``work`` returns with another current stream than it was given.
    """
    if unknown:
        options = [name for name in inspect.signature(measure).parameters if name != "unknown"]
        raise UnknownNameError("option", next(iter(unknown)), options[1:])
    plan = _Plan(
        work=work,
        rung=find_method(method).function,
        n_samples=n_samples,
        n_warmup=n_warmup,
        inner_loops=inner_loops,
        precision=precision,
        max_time_s=max_time_s,
    )
    with device.active():
        with left_as_found():
            warm = warm_up(work, n_calls=n_warmup, max_time_s=max_time_s)
            samples_s, stopped_by = _sample(plan, warm.call_s, progress=progress)
        # Conditions come last: reading the driver takes time, and clocks sink while it does.
        facts = Facts(samples_s, method, inner_loops, warm.synchronizes, warm.host_s)
        return Measurement(
            samples_s=samples_s,
            method=method,
            source=device.current().source,
            conditions=device.conditions(),
            findings=examine(facts),
            inner_loops=inner_loops,
            n_warmup=warm.n_calls,
            label=label,
            stopped_by=stopped_by,
        )


def _refuse_uncallable(work: object) -> None:
    cure = "pass a function: measure(lambda: a @ b)"
    if isinstance(work, str):
        raise NotCallableError(
            f"work is the text {work!r}; {cure}. Statements as text are for the magic: "
            f"%cudatime {work}"
        )
    if not callable(work):
        raise NotCallableError(
            f"work is of type {type(work).__name__} and cannot be called; {cure}"
        )
    if inspect.iscoroutinefunction(work) or inspect.isgeneratorfunction(work):
        raise NotCallableError(
            f"work is a coroutine or a generator function, and calling it runs nothing; {cure}"
        )


def _refuse_below(name: str, value: int, least: int) -> None:
    try:
        whole = operator.index(value)
    except TypeError:
        raise InvalidOptionError(f"{name}={value!r}; it must be a whole number") from None
    if whole < least:
        raise InvalidOptionError(f"{name}={value}; it must be at least {least}")


def _sample(plan: _Plan, call_s: float | None, *, progress: bool) -> tuple[tuple[float, ...], str]:
    """Return the samples and why there are no more."""
    samples_s: list[float] = []
    sample_s = None if call_s is None else call_s * plan.inner_loops
    start_s, elapsed_s = time.perf_counter(), 0.0
    with _Bar(total=plan.n_samples, disable=not progress) as bar:
        try:
            while not (stopped_by := _reason_to_stop(plan, samples_s, elapsed_s)):
                # Shown only where more is to come, so that the time limit makes no bar flash.
                bar.update(len(samples_s) - bar.n)
                n_next = _n_next(plan, len(samples_s), sample_s)
                with watched(_while_sampling(len(samples_s), n_next)):
                    samples_s += plan.take(n_next)
                # Wall time, not the readings: draining and reading back take time as well.
                elapsed_s = time.perf_counter() - start_s
                sample_s = elapsed_s / len(samples_s)
        except KeyboardInterrupt:
            if not samples_s:
                raise
            stopped_by = "interrupt"
    return tuple(samples_s), stopped_by


def _reason_to_stop(plan: _Plan, samples_s: list[float], elapsed_s: float) -> str:
    """Return the name of the criterion that is met, or nothing."""
    if plan.n_samples is not None:
        return "n_samples" if len(samples_s) >= plan.n_samples else ""
    if len(samples_s) >= _N_FIRST and _half_width(samples_s) <= plan.precision:
        return "precision"
    return "max_time" if samples_s and elapsed_s >= plan.max_time_s else ""


def _half_width(samples_s: list[float]) -> float:
    """Return half the width of the median's interval, as a share of the median."""
    low_s, high_s = stats.median_interval(samples_s)
    return (high_s - low_s) / 2 / median(samples_s) if high_s > low_s else 0.0


def _n_next(plan: _Plan, n_taken: int, sample_s: float | None) -> int:
    """Return how many samples to take before looking again."""
    # Chunks grow with the samples, so that sorting them all again stays cheap beside them.
    if plan.n_samples is None:
        n_wanted = max(_N_FIRST, n_taken // 4) if n_taken >= _N_FIRST else _N_FIRST - n_taken
    else:
        n_wanted = plan.n_samples - n_taken
    n_in_time = int(_CHUNK_S / sample_s) if sample_s else 1
    return max(1, min(n_wanted, n_in_time))


def _while_sampling(n_taken: int, n_next: int) -> str:
    if n_next == 1:
        return f"while sample {n_taken + 1} was taken"
    return f"while samples {n_taken + 1} to {n_taken + n_next} were taken"


class _Bar(tqdm):  # type: ignore[misc]  # tqdm ships no types
    """A bar in text that appears after a second and leaves no trace."""

    monitor_interval = 0  # its watching thread would wake up inside timed intervals

    def __init__(self, *, total: int | None, disable: bool) -> None:
        super().__init__(
            total=total, disable=disable, desc="measuring", unit=" samples", delay=1, leave=False
        )
