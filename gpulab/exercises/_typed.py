"""Read the numbers that a learner types into a form."""

import re

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import parse_time

# A comma between groups of three digits. Another comma is a decimal one: "2,5" or "0,125".
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?![\d,])(?:\.\d+)?")
_DECIMAL_COMMA = re.compile(r"(\d+),(\d+)(?![\d,.])")
_NUMBER = re.compile(r"(?P<over>-?[\d.]+(?:[eE][+-]?\d+)?)(?:\s*/\s*(?P<under>[\d.]+))?")
_FACTOR = {"x", "\u00d7"}  # the letter, and the sign


def read_typed(text: str, unit: str) -> float | str | None:
    """Return what a learner typed as a number, or None if it is no number.

    It takes ``"5 ms"``, ``"1/3"``, ``"1,000"``, ``"2,5"`` and ``"8x"``. A duration with its unit
    stays a text, because that unit counts and not the one of the question.

    >>> read_typed("1,000", "µs"), read_typed("1/4", "times"), read_typed("8x", "times")
    (1000.0, 0.25, 8.0)
    >>> read_typed("2,5", "times"), read_typed("0,125 s", "ms"), read_typed("1,2,3", "times")
    (2.5, '0.125 s', None)
    >>> read_typed("5 ms", "µs"), read_typed("many", "times")
    ('5 ms', None)
    """
    typed = text.strip()
    groups = _THOUSANDS.match(typed)
    if groups:
        typed = groups[0].replace(",", "") + typed[groups.end() :]
    elif _DECIMAL_COMMA.match(typed):
        typed = typed.replace(",", ".", 1)
    if _is_time(typed):
        return typed
    number = _NUMBER.match(typed)
    ends = {"", unit} | (_FACTOR if unit == "times" else set())
    if number is None or typed[number.end() :].strip() not in ends:
        return None
    try:
        return float(number["over"]) / float(number["under"] or 1)
    except (ValueError, ZeroDivisionError):
        return None


def _is_time(text: str) -> bool:
    try:
        parse_time(text)
    except InvalidOptionError:
        return False
    return True
