"""Parse JSON strictly: refuse duplicate keys, numbers that are not finite, and deep nesting."""

import json
import math
from typing import Any, Never

from gpulab.core.errors import DamagedDataError
from gpulab.core.serialization._text import as_text

_MAX_DEPTH = 32  # the records of gpulab need less than a third of this
_MAX_WHOLE = 2**63  # a column of a table (pandas' Int64) has 64 bits
_MAX_DIGITS = 20  # 2**63 has 19 digits, and there may be a sign


def parse_json(text: str | bytes) -> object:
    """Return the value of a JSON text.

    Raises `DamagedDataError` if the text is not JSON, is nested more than 32 levels deep, has a
    key twice, or has a number that is not finite or does not fit into 64 bits. The message is a
    clause, e.g. ``"it is not JSON (...)"``; the caller puts the name of the file before it.
    """
    try:
        value = _DECODER.decode(as_text(text) if isinstance(text, bytes) else text)
    except RecursionError:
        raise DamagedDataError(_TOO_DEEP) from None
    except json.JSONDecodeError as error:
        raise DamagedDataError(f"it is not JSON ({error})") from error
    _refuse_depth(value)
    return value


def parse_object(text: str | bytes) -> dict[str, Any]:
    """Return the object of a JSON text; refuse others as :func:`parse_json` does."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise DamagedDataError("it is not a JSON object")
    return value


def _refuse_depth(value: object) -> None:
    """Refuse a value nested so deeply that writing or showing it would exhaust the stack."""
    # Level by level instead of by recursion, which would itself exhaust the stack.
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [part for outer in level for part in _parts(outer)]
        if not level:
            return
    raise DamagedDataError(_TOO_DEEP)


def _parts(value: object) -> list[object]:
    """Return the lists and dicts directly inside a value."""
    if not isinstance(value, dict | list):
        return []
    inside = value.values() if isinstance(value, dict) else value
    return [part for part in inside if isinstance(part, dict | list)]


_TOO_DEEP = f"its values are nested more than {_MAX_DEPTH} deep"


def _real(text: str) -> float:
    # "1e400" is valid JSON, and Python reads it as infinity.
    number = float(text)
    if not math.isfinite(number):
        _refuse_number(text)
    return number


def _int_of(text: str) -> int:
    # The length is checked first, because int() raises ValueError above 4,300 digits.
    number = int(text) if len(text) <= _MAX_DIGITS else _MAX_WHOLE
    if not -_MAX_WHOLE <= number < _MAX_WHOLE:
        _refuse_number(text)
    return number


def _refuse_number(text: str) -> Never:
    shown = text if len(text) <= _MAX_DIGITS else f"of {len(text):,} digits"
    raise DamagedDataError(f"it has the number {shown}, which is not finite or beyond 64 bits")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Python's own decoder would silently take the last of two equal keys.
    members = dict(pairs)
    if len(members) < len(pairs):
        raise DamagedDataError("it has the same key twice, and nobody can tell which one counts")
    return members


_DECODER = json.JSONDecoder(
    parse_float=_real, parse_int=_int_of, parse_constant=_refuse_number, object_pairs_hook=_object
)
