"""What an argument must be: checked at the top of public functions, in one wording.

A requirement is asked by the argument's name, ``COUNT.check(n_samples=n_samples)``, and refuses
with that name, the value and what it may be. Libraries that check types from annotations
(pydantic, beartype, typeguard) know no units, seconds or names of a catalogue, and raise errors
of their own, so that the sentences here would be needed all the same.
"""

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from numbers import Integral, Real
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar

from gpulab.errors import InvalidOptionError, UnknownNameError, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "COUNT",
    "COUNT_OR_ZERO",
    "DIGITS",
    "DURATION",
    "FLAG",
    "FUNCTION",
    "NAME",
    "NOT_NEGATIVE",
    "NUMBER",
    "PATH",
    "POSITIVE",
    "SECONDS",
    "SHARE",
    "TEXT",
    "WHOLE",
    "NameOf",
    "Requirement",
    "check_fields",
    "check_not_negative",
    "each",
    "instance_of",
    "items_of",
    "mapping_to",
    "numbers_of",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requirement:
    """What the value of an argument must be.

    Attributes
    ----------
    wanted
        Completes the sentence "it must be ...".
    accepts
        Whether a value is that.
    """

    wanted: str
    accepts: Callable[[Any], bool]

    def check(self, **arguments: object) -> None:
        """Refuse values that are not accepted.

        Raises
        ------
        InvalidOptionError
            If one is not; the message has its name, its value and what it must be.
        """
        for name, value in arguments.items():
            if not self.accepts(value):
                raise InvalidOptionError(f"{name}={shown(value)}; it must be {self.wanted}")

    @property
    def or_none(self) -> "Requirement":
        """The same, or None."""
        return Requirement(
            f"{self.wanted}, or None", lambda value: value is None or self.accepts(value)
        )


@dataclass(frozen=True, slots=True)
class NameOf:
    """The requirement that an argument is one of some names.

    Attributes
    ----------
    kind
        What the names are of.
    known
        All of them.
    """

    kind: str
    known: Collection[str]

    @property
    def wanted(self) -> str:
        """Completes the sentence "it must be ..."."""
        return f"the name of a {self.kind}"

    def accepts(self, value: object) -> bool:
        """Tell whether a value is one of the names."""
        return isinstance(value, str) and value in self.known

    def check(self, **arguments: object) -> None:
        """Refuse unknown names.

        Raises
        ------
        UnknownNameError
            If one is unknown; the message names the nearest.
        """
        for value in arguments.values():
            if not self.accepts(value):
                raise UnknownNameError(self.kind, value, self.known)


def _is_whole(value: object, least: int) -> bool:
    if type(value) is int:
        return value >= least
    # A bool counts nothing, although Python lets it stand for 0 and 1.
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _is_number(value: object) -> bool:
    # The exact type first: the question to an abstract class takes several times as long.
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def _is_finite(value: object) -> bool:
    """Tell whether a value is a number, and neither nan nor infinite."""
    if type(value) is float:
        return math.isfinite(value)
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    # A whole number may be too large for a float, and is finite all the same.
    return isinstance(value, Integral) or math.isfinite(value)


_MOST_DIGITS = 17

WHOLE = Requirement("a whole number", lambda value: _is_whole(value, value))
COUNT = Requirement("a whole number, at least 1", lambda value: _is_whole(value, 1))
COUNT_OR_ZERO = Requirement("a whole number, 0 or more", lambda value: _is_whole(value, 0))
NUMBER = Requirement("a finite number", _is_finite)
POSITIVE = Requirement("a finite number above 0", lambda value: _is_finite(value) and value > 0)
NOT_NEGATIVE = Requirement(
    "a finite number, 0 or more", lambda value: _is_finite(value) and value >= 0
)
SHARE = Requirement(
    "between 0 and 1, such as 0.01 for 1 %", lambda value: _is_number(value) and 0 < value < 1
)
# Without an end is a time too: "until it is precise".
SECONDS = Requirement("a number of seconds above 0", lambda value: _is_number(value) and value > 0)
DURATION = Requirement(
    "a finite number of seconds above 0", lambda value: _is_finite(value) and value > 0
)
DIGITS = Requirement(
    "a whole number from 1 to 17, as many digits as a float has",
    lambda value: _is_whole(value, 1) and value <= _MOST_DIGITS,
)
FUNCTION = Requirement("a function", callable)
FLAG = Requirement("True or False", lambda value: isinstance(value, bool))
TEXT = Requirement("a text", lambda value: isinstance(value, str))
NAME = Requirement(
    "a text that is not empty", lambda value: isinstance(value, str) and bool(value.strip())
)
PATH = Requirement(
    "the path of a file, as a text that is not empty or a Path",
    lambda value: isinstance(value, os.PathLike) or (isinstance(value, str) and value != ""),
)


def instance_of(kind: type | tuple[type, ...], wanted: str) -> Requirement:
    """Return the requirement to be an object of a class, or of one of several."""
    return Requirement(wanted, lambda value: isinstance(value, kind))


def each(part: Requirement | NameOf, wanted: str) -> Requirement:
    """Return the requirement to be a sequence whose items all are something; it may be empty."""
    return Requirement(
        wanted,
        lambda value: (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and all(map(part.accepts, value))
        ),
    )


def mapping_to(part: Requirement, wanted: str) -> Requirement:
    """Return the requirement to be a mapping from texts to something."""
    return Requirement(
        wanted,
        lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(key, str) and part.accepts(value[key]) for key in value)
        ),
    )


def items_of(name: str, values: Iterable[T], part: Requirement | NameOf) -> tuple[T, ...]:
    """Return the items of an argument that may be read only once, each checked.

    Raises
    ------
    InvalidOptionError
        If the argument has no items, being a text or a number, or one is not accepted.
    UnknownNameError
        If one is to be a name, and is unknown.
    """
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidOptionError(
            f"{name}={shown(values)}; it must be a list, each item {part.wanted}"
        )
    items = tuple(values)
    for index, item in enumerate(items):
        if not part.accepts(item):
            part.check(**{f"{name}[{index}]" if isinstance(part, Requirement) else name: item})
    return items


def numbers_of(name: str, values: object) -> "NDArray[np.float64]":
    """Return an argument as an array of numbers.

    Raises
    ------
    InvalidOptionError
        If it is no list of numbers, or one of them is nan.
    """
    import numpy as np

    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(math.nan)
    if found.ndim != 1 or np.isnan(found).any():
        raise InvalidOptionError(f"{name}={shown(values)}; it must be a list of numbers, none nan")
    return found


def check_fields(record: Any) -> None:  # noqa: ANN401  # any dataclass
    """Refuse a record if a field is not what its annotation says; numbers must be finite.

    Raises
    ------
    InvalidOptionError
        If one is not; the message has its name, its value and what it must be.
    """
    kind: Any = type(record)
    for name, requirement in _requirements(kind):
        value = getattr(record, name)
        if not requirement.accepts(value):
            requirement.check(**{name: value})


def check_not_negative(record: object, *names: str) -> None:
    """Refuse a record if one of its numbers is below 0; None is left alone.

    It is for fields that :func:`check_fields` has found to be numbers.

    Raises
    ------
    InvalidOptionError
        If one is below 0.
    """
    for name in names:
        value = getattr(record, name)
        if value is not None and value < 0:
            NOT_NEGATIVE.check(**{name: value})


@cache
def _requirements(kind: Any) -> tuple[tuple[str, Requirement], ...]:  # noqa: ANN401  # a dataclass
    found = ((field.name, _of_annotation(field.type)) for field in fields(kind))
    return tuple((name, requirement) for name, requirement in found if requirement is not None)


_SIMPLE = {int: WHOLE, float: NUMBER, bool: FLAG, str: TEXT}


def _of_annotation(annotation: Any) -> Requirement | None:  # noqa: ANN401  # as typing has it
    """Return what an annotation asks for; None where that cannot be told from it."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if isinstance(annotation, UnionType):
        parts = [part for part in annotation.__args__ if part is not NoneType]
        inner = _of_annotation(parts[0]) if len(parts) == 1 else None
        return None if inner is None else inner.or_none
    if isinstance(annotation, GenericAlias) and annotation.__origin__ is tuple:
        return _of_tuple(annotation.__args__)
    if isinstance(annotation, type) and not isinstance(annotation, GenericAlias):
        return instance_of(annotation, f"a {annotation.__name__}")
    return None


def _of_tuple(parts: tuple[Any, ...]) -> Requirement | None:
    inner = _of_annotation(parts[0])
    if inner is None or parts[1:] != (...,):
        return None
    return Requirement(
        f"a tuple, each item {inner.wanted}",
        lambda value: isinstance(value, tuple) and all(map(inner.accepts, value)),
    )
