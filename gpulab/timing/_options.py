"""What was asked of a measurement, checked before anything runs."""

import inspect
import itertools
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Never

from gpulab.errors import InvalidOptionError, NotCallableError, UnknownNameError
from gpulab.timing._cache_flush import flusher
from gpulab.timing._methods import Method, Sampler, find_method
from gpulab.work import Work, nothing

CACHES = ("hot", "cold")
FLOORS = ("work", "device")
_CURE = "pass a function: measure(lambda: a @ b)"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions:
    """The options of one measurement.

    Attributes
    ----------
    work
        Takes no arguments; the rotation of inputs is in it.
    cache
        ``"hot"`` or ``"cold"``.
    floor
        Which floor is taken off: that of the ``"work"`` itself or of the ``"device"``.
    """

    work: Work
    method: Method
    cache: str
    flush: str
    floor: str
    setup: Work
    n_samples: int | None
    n_warmup: int | None
    inner_loops: int
    precision: float
    max_time_s: float

    def __post_init__(self) -> None:
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
        if self.cache not in CACHES:
            raise UnknownNameError("cache state", self.cache, CACHES)
        if self.floor not in FLOORS:
            raise UnknownNameError("floor", self.floor, FLOORS)

    def before(self) -> Work:
        """Make ready what goes ahead of each sample: the setup, then the flush."""
        # In this order, because what the setup writes would be hot otherwise.
        if self.cache == "hot":
            return self.setup
        setup, flush = self.setup, flusher(self.flush)
        if setup is nothing:
            return flush

        def both() -> None:
            setup()
            flush()

        return both

    def sampler(self, method: Method, before: Work) -> Sampler:
        """Make ready what takes the samples, by this method or by one that stands in for it."""
        return method.sampler(self.work, inner_loops=self.inner_loops, before=before)


def make_options(  # noqa: PLR0913  # one for each option that has to be worked out
    work: Callable[..., object],
    *,
    method: str,
    cache: str | None,
    flush: str,
    floor: str,
    setup: Work | None,
    inputs: Sequence[Sequence[object]] | None,
    **numbers: Any,  # noqa: ANN401  # checked as fields of the plan
) -> MeasurementOptions:
    """Check the options of a measurement and fill in what was left open."""
    rung = find_method(method)
    _refuse_uncallable("work", work)
    if setup is not None:
        _refuse_uncallable("setup", setup)
    inner_loops = numbers["inner_loops"]
    if cache is None:
        # Only the first of several calls could be cold, so they are hot unless asked otherwise.
        cache = rung.cache if inner_loops == 1 else "hot"
    elif cache == "cold" and isinstance(inner_loops, int) and inner_loops > 1:
        raise InvalidOptionError(
            f"cache='cold' with inner_loops={inner_loops}; only the first of the calls in a "
            "sample would be cold; use inner_loops=1, or cache='hot'"
        )
    return MeasurementOptions(
        work=work if inputs is None else _rotating(work, inputs),
        method=rung,
        cache=cache,
        flush=flush,
        floor=floor,
        setup=nothing if setup is None else setup,
        **numbers,
    )


def refuse_unknown(function: Callable[..., object], unknown: Mapping[str, Never]) -> None:
    """Refuse an option that a function does not have, and name the nearest."""
    if unknown:
        options = [name for name in inspect.signature(function).parameters if name != "unknown"]
        raise UnknownNameError("option", next(iter(unknown)), options[1:])


def _rotating(work: Callable[..., object], inputs: Sequence[Sequence[object]]) -> Work:
    """Call the work with the next of the inputs each time."""
    if len(inputs) == 0:
        raise InvalidOptionError(
            "inputs is empty; give at least one tuple of arguments: inputs=[(a, b), (c, d)]"
        )
    turns = itertools.cycle([tuple(arguments) for arguments in inputs])
    return lambda: work(*next(turns))


def _refuse_uncallable(name: str, work: object) -> None:
    if isinstance(work, str):
        raise NotCallableError(
            f"{name} is the text {work!r}; {_CURE}. Statements as text are for the magic: "
            f"%cudatime {work}"
        )
    if not callable(work):
        raise NotCallableError(
            f"{name} is of type {type(work).__name__} and cannot be called; {_CURE}"
        )
    if inspect.iscoroutinefunction(work) or inspect.isgeneratorfunction(work):
        raise NotCallableError(
            f"{name} is a coroutine or a generator function, and calling it runs nothing; {_CURE}"
        )


def _refuse_below(name: str, value: int, least: int) -> None:
    try:
        whole = operator.index(value)
    except TypeError:
        raise InvalidOptionError(f"{name}={value!r}; it must be a whole number") from None
    if whole < least:
        raise InvalidOptionError(f"{name}={value}; it must be at least {least}")
