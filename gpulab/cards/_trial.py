"""One trial of somebody's benchmark: what it returned for a work, or why there is no reading."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import torch

from gpulab.errors import shown
from gpulab.foreign_text import one_line
from gpulab.work import Work

Benchmark = Callable[[Work], object]


@dataclass(frozen=True, slots=True)
class CardTrial:
    """What came of one call of the benchmark.

    Attributes
    ----------
    seconds
        The time that it returned, alone or first of a pair; None if there is none.
    problem
        Why there is none, as the end of a sentence about the benchmark; empty if there is one.
    error
        What it raised; None if it returned.
    """

    seconds: float | None
    problem: str = ""
    error: Exception | None = None


def trial(benchmark: Benchmark, work: Work, *, backlog: Work | None = None) -> CardTrial:
    """Call the benchmark with a work, on an idle GPU or after a backlog.

    Whatever the benchmark raises becomes the problem of the trial; an interrupt comes through.
    """
    n_calls = 0

    def fn() -> object:
        nonlocal n_calls
        n_calls += 1
        return work()

    torch.cuda.synchronize()
    if backlog is not None:
        backlog()
    try:
        value = benchmark(fn)
    except Exception as error:  # noqa: BLE001  # somebody else's function may raise anything
        return CardTrial(None, f"raised {type(error).__name__}: {one_line(str(error))}", error)
    finally:
        torch.cuda.synchronize()
    return _judged(value, n_calls)


def _judged(value: object, n_calls: int) -> CardTrial:
    if n_calls == 0:
        return CardTrial(None, "never called fn, so it timed nothing")
    first = value[0] if isinstance(value, tuple) and value else value
    if isinstance(first, bool) or not isinstance(first, Real):
        kind = type(value).__name__
        return CardTrial(None, f"returned {shown(value)} of type {kind}, which is no seconds")
    seconds = float(first)
    if not 0 < seconds < math.inf:
        return CardTrial(None, f"returned {seconds:g}, and a time is above 0 and finite")
    return CardTrial(seconds)
