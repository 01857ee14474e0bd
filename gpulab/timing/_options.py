"""The options of a measurement: their names, defaults and checks, all in one place.

``measure``, ``compare``, ``ladder`` and the magic all read :class:`MeasurementOptions`.
"""

import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Never

from gpulab.core.errors import InvalidOptionError, UnknownNameError, shown
from gpulab.core.requirements import (
    COUNT,
    COUNT_OR_ZERO,
    NOT_NEGATIVE,
    SECONDS,
    SHARE,
    NameOf,
    Requirement,
    each,
)
from gpulab.core.units import counted
from gpulab.device.work import Work, check_callable, refuse_endless
from gpulab.timing._cache_flush import FLUSHES, flusher
from gpulab.timing._methods import METHODS, Method

CACHES = ("hot", "cold")
FLOORS = ("work", "device")
AUTO = "auto"
_FLOPS = Requirement(
    'a finite number, 0 or more, or "auto"',
    lambda value: value == AUTO if isinstance(value, str) else NOT_NEGATIVE.accepts(value),
)
_CURE = "pass a function: measure(lambda: a @ b)"
_INPUTS = each(
    Requirement("a tuple", lambda value: isinstance(value, list | tuple)),
    "a list of tuples of arguments, such as [(a, b), (c, d)], or None",
)


def _option(default: Any, requirement: Requirement | NameOf) -> Any:  # noqa: ANN401  # as dataclasses.field
    return field(default=default, metadata={"requirement": requirement})


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementOptions:
    """The options of one measurement, as :func:`gpulab.measure` takes them, checked when made.

    ``n_samples=None`` means: until the median is precise enough, or until ``max_time_s``;
    ``n_warmup=None``: until the times are steady. ``precision`` is half the width of the interval
    as a share of the median. With ``cache=None`` the method decides. ``flops="auto"`` is PyTorch's
    count of one call.
    """

    method: str = _option("calibrated", NameOf("timing method", METHODS))
    cache: str | None = _option(None, NameOf("cache state", CACHES))
    flush: str = _option("read", NameOf("flush", FLUSHES))
    floor: str = _option("work", NameOf("floor", FLOORS))
    setup: Work | None = None
    n_samples: int | None = _option(None, COUNT)
    n_warmup: int | None = _option(None, COUNT_OR_ZERO)
    inner_loops: int = _option(1, COUNT)
    precision: float = _option(0.01, SHARE)
    max_time_s: float = _option(1.0, SECONDS)
    flops: float | str | None = _option(None, _FLOPS)
    size_bytes: float | None = _option(None, NOT_NEGATIVE)

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            # Defaults are not checked: COUNT would refuse None, which is a default.
            if value is not option.default and "requirement" in option.metadata:
                option.metadata["requirement"].check(**{option.name: value})
        if self.setup is not None:
            refuse_uncallable("setup", self.setup)
        n_calls = (self.n_warmup or 0) + (self.n_samples or 1) * self.inner_loops
        refuse_endless(
            n_calls,
            n_samples=self.n_samples,
            n_warmup=self.n_warmup,
            inner_loops=self.inner_loops,
        )
        if self.cache == "cold" and self.inner_loops > 1:
            raise InvalidOptionError(
                f"cache='cold' with inner_loops={self.inner_loops}; only the first of the calls "
                "in a sample would be cold; use inner_loops=1, or cache='hot'"
            )

    @property
    def timing_method(self) -> Method:
        """The timing method of this name."""
        return METHODS[self.method]

    @property
    def cache_state(self) -> str:
        """State of the cache before each sample, ``"hot"`` or ``"cold"``."""
        if self.cache is not None:
            return self.cache
        # Only the first of several calls could be cold, so they are hot unless asked otherwise.
        return self.timing_method.cache if self.inner_loops == 1 else "hot"

    def before_each(self) -> Work | None:
        """Return what to call before each sample: the setup, then the flush; None for neither.

        The memory for the flush is allocated here.
        """
        # The flush comes last, because what the setup writes would be hot otherwise.
        if self.cache_state == "hot":
            return self.setup
        setup, flush = self.setup, flusher(self.flush)
        if setup is None:
            return flush

        def both() -> None:
            setup()
            flush()

        return both

    @classmethod
    def names(cls) -> frozenset[str]:
        """Return the names of all options."""
        return frozenset(option.name for option in fields(cls))

    @classmethod
    def requirement(cls, name: str) -> Requirement | NameOf:
        """Return what an option must be."""
        (option,) = (option for option in fields(cls) if option.name == name)
        requirement: Requirement | NameOf = option.metadata["requirement"]
        return requirement

    def arguments(self) -> dict[str, Any]:
        """Return the options as keyword arguments of ``measure`` and ``compare``."""
        return {option.name: getattr(self, option.name) for option in fields(self)}


DEFAULTS = MeasurementOptions()


def as_work(work: Callable[..., object], inputs: Sequence[Sequence[object]] | None = None) -> Work:
    """Return a function without arguments that calls ``work``, with the next inputs if any.

    If it is not a plain function, this raises `NotCallableError`; if there are inputs, but none to
    call the work with, `InvalidOptionError`.
    """
    refuse_uncallable("work", work)
    if inputs is None:
        return work
    _INPUTS.check(inputs=inputs)
    if len(inputs) == 0:
        raise InvalidOptionError(
            "inputs is empty; give at least one tuple of arguments: inputs=[(a, b), (c, d)]"
        )
    # The tuples are made now: making them would otherwise be part of every timed call.
    turns = itertools.cycle([tuple(arguments) for arguments in inputs])
    return lambda: work(*next(turns))


def amount_of(name: str, amount: object, /, *values: object, **named: object) -> Any:  # noqa: ANN401  # or what the options refuse
    """Return an amount of one call; a function is called with the inputs or the parameters.

    `InvalidOptionError` if the function raises, or returns something else than a number.
    """
    if not callable(amount):
        return amount
    arguments = [*map(shown, values), *(f"{each}={shown(value)}" for each, value in named.items())]
    call = f"{name}({', '.join(arguments)})"
    try:
        value = amount(*values, **named)
    except Exception as error:  # a function of the user's own may raise anything
        raise InvalidOptionError(
            f"{call} raised {type(error).__name__}: {error}; it must return a number for the "
            "arguments of each call"
        ) from error
    if not NOT_NEGATIVE.accepts(value):
        raise InvalidOptionError(
            f"{call} returned {shown(value)}; it must be {NOT_NEGATIVE.wanted}"
        )
    return float(value)


def amount_for(name: str, amount: object, inputs: Sequence[Sequence[object]] | None) -> Any:  # noqa: ANN401  # as above
    """Return an amount of one call, which must be the same for all inputs."""
    if not callable(amount):
        return amount
    amounts = {amount_of(name, amount, *values) for values in inputs or [()]}
    if len(amounts) > 1:
        raise InvalidOptionError(
            f"{name} is {min(amounts):g} for one of the inputs and {max(amounts):g} for another; "
            "a measurement has one number: measure them one by one, or use gpulab.sweep"
        )
    return amounts.pop()


def refuse_unknown(function: Callable[..., object], unknown: Mapping[str, Never]) -> None:
    """Refuse an option that a function does not have, and suggest the nearest name."""
    if unknown:
        options = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        raise UnknownNameError("option", next(iter(unknown)), options)


def refuse_arguments(work: object, arguments: Sequence[object]) -> None:
    """Refuse arguments beside the work, as in ``measure(f, x)``; say where to put them."""
    if not arguments:
        return
    name = getattr(work, "__name__", "f")
    if not name.isidentifier():
        name = "f"
    kinds = ", ".join(type(argument).__name__ for argument in arguments)
    raise InvalidOptionError(
        f"measure got {counted(len(arguments), 'argument')} after the work (of type {kinds}); "
        f"give the arguments of the work as inputs: measure({name}, inputs=[(x,)]), or call it in "
        f"a function: measure(lambda: {name}(x))"
    )


def refuse_uncallable(name: str, work: object) -> None:
    """Refuse work that is not a plain function, with what to pass instead."""
    cure = _CURE
    if isinstance(work, str) and work.endswith(".json"):
        cure = f"load the file first: gpulab.Measurement.load({shown(work)})"
    elif isinstance(work, str):
        cure += f". Statements as text are for the magic: %cudatime {work}"
    check_callable(name, work, cure)
