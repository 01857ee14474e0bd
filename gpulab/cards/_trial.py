"""Call a user's benchmark once: the seconds that it returned, or why there is no reading."""

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
    """The result of one call of the benchmark.

    Attributes
    ----------
    seconds
        The time that it returned, alone or as the first of a tuple; None if it returned none.
    problem
        Why there is no time, as the end of a sentence about the benchmark; empty if there is one.
    error
        The error that it raised; None if it returned.
    """

    seconds: float | None
    problem: str = ""
    error: Exception | None = None


def trial(benchmark: Benchmark, work: Work, *, backlog: Work | None = None) -> CardTrial:
    """Call the benchmark with a work, on an idle GPU or after a backlog.

    An error of the benchmark becomes the problem of the trial; Ctrl-C is raised as usual.
    """
    n_calls = 0  # a benchmark that never calls the work returns a number of its own

    def fn() -> object:
        nonlocal n_calls
        n_calls += 1
        return work()

    torch.cuda.synchronize()
    if backlog is not None:
        backlog()
    try:
        value = benchmark(fn)
    except Exception as error:  # noqa: BLE001  # a user's function may raise anything
        return CardTrial(None, f"raised {type(error).__name__}: {one_line(str(error))}", error)
    finally:
        # After an error and Ctrl-C, too: the next trial begins on an idle GPU.
        torch.cuda.synchronize()
    return _judged(value, n_calls)


def _judged(value: object, n_calls: int) -> CardTrial:
    if n_calls == 0:
        return CardTrial(None, "never called fn, so it timed nothing")
    # The time may be the first item of a tuple, such as (median, spread).
    first = value[0] if isinstance(value, tuple) and value else value
    if isinstance(first, bool) or not isinstance(first, Real):
        kind = type(value).__name__
        return CardTrial(None, f"returned {shown(value)} of type {kind}, which is no seconds")
    seconds = float(first)
    if not 0 < seconds < math.inf:
        return CardTrial(None, f"returned {seconds:g}, and a time is above 0 and finite")
    return CardTrial(seconds)
