"""Check arguments at the top of public functions, with the same wording everywhere.

``COUNT.check(n_samples=n_samples)`` raises an error that says the argument's name, its value and
what it must be. Libraries that check types from annotations (pydantic, beartype, typeguard) do
not know units, seconds or the names of a catalogue, and they raise errors of their own. The
checks and sentences of this module would be needed beside them.
"""

import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from itertools import islice
from numbers import Integral, Real
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar

from gpulab.core.errors import InvalidOptionError, UnknownNameError, shown

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
    "QUANTITY",
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
    "iterator_of",
    "mapping_to",
    "numbers_of",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition that the value of an argument must meet; ``wanted`` ends "it must be ..."."""

    wanted: str
    accepts: Callable[[Any], bool]

    def check(self, **arguments: object) -> None:
        """Raise an error unless every value is accepted; pass each by the argument's name.

        The `InvalidOptionError` has the name and the value of the first that is not, and
        ``wanted``.
        """
        for name, value in arguments.items():
            if not self.accepts(value):
                raise InvalidOptionError(f"{name}={shown(value)}; it must be {self.wanted}")

    @property
    def or_none(self) -> "Requirement":
        """The same requirement, which accepts None, too."""
        return Requirement(
            f"{self.wanted}, or None", lambda value: value is None or self.accepts(value)
        )


@dataclass(frozen=True, slots=True)
class NameOf:
    """The requirement that an argument is one of some names; ``kind`` says what they name."""

    kind: str
    names: Collection[str]

    @property
    def wanted(self) -> str:
        """Completes the sentence "it must be ..."."""
        return f"the name of a {self.kind}"

    def accepts(self, value: object) -> bool:
        """Return whether a value is one of the names."""
        return isinstance(value, str) and value in self.names

    def check(self, **arguments: object) -> None:
        """Raise `UnknownNameError`, which names the nearest, unless all values are names."""
        for value in arguments.values():
            if not self.accepts(value):
                raise UnknownNameError(self.kind, value, self.names)


def _is_whole(value: object, least: int) -> bool:
    if type(value) is not int:
        # Python accepts True as 1, but n_samples=True is a mistake.
        if not isinstance(value, Integral) or isinstance(value, bool):
            return False
        value = int(value)
    # A number too large for a float, such as 10**400, is no amount of anything.
    return least <= value <= sys.float_info.max


def _is_number(value: object) -> bool:
    # The exact type first: isinstance with an abstract class takes several times as long.
    return type(value) is float or (
        isinstance(value, Real) and not isinstance(value, bool) and not _is_too_large(value)
    )


def _is_too_large(value: Any) -> bool:  # noqa: ANN401  # a number
    """Return whether no float can be so large, as 10**400 is."""
    return isinstance(value, Integral) and abs(int(value)) > sys.float_info.max


def _is_finite(value: object) -> bool:
    """Return whether a value is a number, and neither nan nor infinite."""
    if type(value) is float:
        return math.isfinite(value)
    return _is_number(value) and math.isfinite(value)  # type: ignore[arg-type]  # it is a number


def _path_text(value: Any) -> str:  # noqa: ANN401  # any argument
    """Return the text of a path; an empty text for anything else."""
    try:
        text = os.fspath(value)
    except Exception:  # noqa: BLE001  # an object of the user's own may raise anything
        return ""
    return text if isinstance(text, str) else ""


_MOST_DIGITS = 17  # of a float64: more digits would be invented

WHOLE = Requirement("a whole number", lambda value: _is_whole(value, value))
COUNT = Requirement("a whole number, at least 1", lambda value: _is_whole(value, 1))
COUNT_OR_ZERO = Requirement("a whole number, 0 or more", lambda value: _is_whole(value, 0))
# nan and infinity are accepted: tables write nan for a missing time and inf for a missing limit.
QUANTITY = Requirement("a number", _is_number)
NUMBER = Requirement("a finite number", _is_finite)
POSITIVE = Requirement("a finite number above 0", lambda value: _is_finite(value) and value > 0)
NOT_NEGATIVE = Requirement(
    "a finite number, 0 or more", lambda value: _is_finite(value) and value >= 0
)
SHARE = Requirement(
    "between 0 and 1, such as 0.01 for 1 %", lambda value: _is_number(value) and 0 < value < 1
)
# Infinity is accepted: max_time_s=inf means "until the result is precise".
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
    lambda value: _path_text(value) != "",
)


def instance_of(kind: type | tuple[type, ...], wanted: str) -> Requirement:
    """Return the requirement to be an object of a class, or of one of several."""
    return Requirement(wanted, lambda value: isinstance(value, kind))


def each(part: Requirement | NameOf, wanted: str) -> Requirement:
    """Return the requirement that every item of a sequence meets ``part``; it may be empty."""
    return Requirement(
        wanted,
        lambda value: (
            isinstance(value, Sequence)
            and not isinstance(value, str | bytes)
            and all(map(part.accepts, value))
        ),
    )


def mapping_to(part: Requirement, wanted: str) -> Requirement:
    """Return the requirement to be a mapping from texts to values that meet ``part``."""
    return Requirement(
        wanted,
        lambda value: (
            isinstance(value, Mapping)
            and all(isinstance(key, str) and part.accepts(value[key]) for key in value)
        ),
    )


_MOST_ITEMS = 1_000_000


def iterator_of(values: Any) -> Iterator[Any] | None:  # noqa: ANN401  # any argument
    """Return an iterator over a list of items; None for a text, a mapping, or anything else."""
    if not isinstance(values, str | bytes | Mapping):
        # A tensor without dimensions says that it is iterable, and raises.
        with suppress(Exception):
            iterator: Iterator[Any] = iter(values)
            return iterator
    return None


def items_of(name: str, values: Iterable[T], part: Requirement | NameOf) -> tuple[T, ...]:
    """Return the items of an argument as a tuple, each checked.

    The argument may be a generator, which can be read only once. A text is refused.
    """
    iterator = iterator_of(values)
    if iterator is None:
        raise InvalidOptionError(
            f"{name}={shown(values)}; it must be a list, each item {part.wanted}"
        )
    # Read once and returned: a generator would be empty for the caller after the check.
    items = tuple(islice(iterator, _MOST_ITEMS + 1))
    if len(items) > _MOST_ITEMS:
        raise InvalidOptionError(
            f"{name}={shown(values)} has more than {_MOST_ITEMS:,} items, or no end; give fewer"
        )
    for index, item in enumerate(items):
        if not part.accepts(item):
            part.check(**{f"{name}[{index}]" if isinstance(part, Requirement) else name: item})
    return items


def numbers_of(name: str, values: object) -> "NDArray[np.float64]":
    """Return an argument as an array of numbers; `InvalidOptionError` for nan or anything else."""
    import numpy as np

    try:
        numbers = np.asarray(values, dtype=np.float64)
    except Exception:  # noqa: BLE001  # an object of the user's own may raise anything
        # A value that the test below refuses, so that both mistakes have one message.
        numbers = np.array(math.nan)
    if numbers.ndim != 1 or np.isnan(numbers).any():
        raise InvalidOptionError(f"{name}={shown(values)}; it must be a list of numbers, none nan")
    return numbers


def check_fields(record: Any) -> None:  # noqa: ANN401  # any dataclass
    """Raise an error unless each field of a dataclass fits its annotation; numbers must be finite.

    The `InvalidOptionError` has the name of the field, its value and what it must be.
    """
    kind: Any = type(record)
    for name, requirement in _requirements(kind):
        value = getattr(record, name)
        if not requirement.accepts(value):
            requirement.check(**{name: value})


def check_not_negative(record: object, *names: str) -> None:
    """Raise `InvalidOptionError` if one of the named fields is below 0; None is accepted.

    Call :func:`check_fields` first: it makes sure that the fields are numbers.
    """
    for name in names:
        value = getattr(record, name)
        if value is not None and value < 0:
            NOT_NEGATIVE.check(**{name: value})


@cache
def _requirements(kind: Any) -> tuple[tuple[str, Requirement], ...]:  # noqa: ANN401  # a dataclass
    requirements = ((field.name, _of_annotation(field.type)) for field in fields(kind))
    return tuple(
        (name, requirement) for name, requirement in requirements if requirement is not None
    )


_SIMPLE = {int: WHOLE, float: NUMBER, bool: FLAG, str: TEXT}


def _of_annotation(annotation: Any) -> Requirement | None:  # noqa: ANN401  # as typing has it
    """Return the requirement that an annotation states; None for kinds that are not checked."""
    if annotation in _SIMPLE:
        return _SIMPLE[annotation]
    if isinstance(annotation, UnionType):
        parts = [part for part in annotation.__args__ if part is not NoneType]
        # A union of several types has no single sentence, so it is not checked here.
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
