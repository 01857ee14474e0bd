"""Write seconds, bytes and rates as text with a unit, and read times such as ``"2 ms"``."""

import math
import re
from collections.abc import Iterable, Sequence

from gpulab.core.errors import InvalidOptionError
from gpulab.core.requirements import DIGITS, QUANTITY, TEXT

_TIME_EXPONENTS = {0: "s", -3: "ms", -6: "µs", -9: "ns"}
_MU = "\u03bc"  # Greek mu, which some keyboards give in place of the micro sign
_TIME_SCALES = {"ns": 1e-9, f"{_MU}s": 1e-6, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
# Decimal for rates, as in data sheets; binary for sizes, as memories are built.
_RATE_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_BYTE_STEP = 1024
_TOO_LONG = 10_000  # of a unit; a reader would have to count the digits of more
_MOST_EXACT = 1e15  # above it a float does not have every whole number
_ASCII = str.maketrans({"µ": "u", _MU: "u", "±": "+-", "\u00d7": "x", "\u2013": "-", "…": "..."})


def format_time(time_s: float, digits: int = 3) -> str:
    """Return a duration as text, with the unit that a reader would choose.

    It has ``digits`` significant digits, whether the duration is known so precisely or not.

    >>> format_time(24.86e-6)
    '24.9 µs'
    >>> format_time(999.6e-6)
    '1.00 ms'
    """
    QUANTITY.check(time_s=time_s)
    DIGITS.check(digits=digits)
    exponent, unit = time_unit(time_s, digits)
    return f"{_number(time_s, exponent, _decimals(time_s, exponent, digits))} {unit}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    >>> counted(1, "call"), counted(1200, "call")
    ('1 call', '1,200 calls')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, each column as wide as its longest text.

    >>> aligned([("work", "time"), ("a + b", "2 ms")])
    ['work   time', 'a + b  2 ms']
    """
    cells = [*rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


_SPELLED = ("none", "one", "two", "three", "four", "five", "six")


def spelled(number: int) -> str:
    """Return a small count as a word, and a larger one in digits.

    >>> spelled(0), spelled(3), spelled(1200)
    ('none', 'three', '1,200')
    """
    return _SPELLED[number] if number < len(_SPELLED) else f"{number:,}"


def format_interval(low_s: float, high_s: float, digits: int = 3) -> str:
    """Return an interval of durations as text; both ends have the unit that suits the high end.

    >>> format_interval(24.84e-6, 25.02e-6)
    '[24.8, 25.0] µs'
    """
    exponent, unit = time_unit(high_s, digits)
    decimals = _decimals(high_s, exponent, digits)
    ends = (_number(end_s, exponent, decimals) for end_s in (low_s, high_s))
    return f"[{', '.join(ends)}] {unit}"


def format_estimate(time_s: float, low_s: float, high_s: float, digits: int = 3) -> str:
    """Return an estimate and its interval as text, in the unit and decimals of the estimate.

    An interval that reaches 10,000 of that unit gets a unit of its own. An interval whose rounded
    ends equal the rounded estimate is left out.

    >>> format_estimate(24.86e-6, 24.81e-6, 25.02e-6)
    '24.9 µs [24.8, 25.0]'
    >>> format_estimate(24.86e-6, 24.86e-6, 24.87e-6)
    '24.9 µs'
    """
    exponent, unit = time_unit(time_s, digits)
    decimals = _decimals(time_s, exponent, digits)
    if abs(high_s) >= _TOO_LONG * 10.0**exponent:
        return f"{format_time(time_s, digits)} {format_interval(low_s, high_s, digits)}"
    value, low, high = (_number(part, exponent, decimals) for part in (time_s, low_s, high_s))
    return f"{value} {unit}" if value == low == high else f"{value} {unit} [{low}, {high}]"


def format_bytes(size_bytes: float, digits: int = 3) -> str:
    """Return a size as text in binary units: 1 KiB is 1024 B.

    >>> format_bytes(60 * 1024**2)
    '60.0 MiB'
    >>> format_bytes(512)
    '512 B'
    """
    value, step = float(size_bytes), 0
    # A value that would be written as 1024 belongs to the next unit.
    while abs(value) >= _BYTE_STEP - 0.5 and step < len(_BYTE_UNITS) - 1:
        value, step = value / _BYTE_STEP, step + 1
    decimals = 0 if step == 0 else _decimals(value, 0, digits)
    return f"{_number(value, 0, decimals)} {_BYTE_UNITS[step]}"


def format_rate(per_s: float, unit: str, digits: int = 3) -> str:
    """Return a rate as text in decimal units, as in data sheets: 1 kB/s is 1000 B/s.

    >>> format_rate(4.3e12, "B")
    '4.30 TB/s'
    >>> format_rate(788e12, "FLOP")
    '788 TFLOP/s'
    """
    QUANTITY.check(per_s=per_s)
    TEXT.check(unit=unit)
    DIGITS.check(digits=digits)
    step = min(max(_leading_exponent(per_s, digits) // 3, 0), len(_RATE_PREFIXES) - 1)
    text = _number(per_s, 3 * step, _decimals(per_s, 3 * step, digits))
    return f"{text} {_RATE_PREFIXES[step]}{unit}/s"


def format_ratio(ratio: float, digits: int = 3) -> str:
    """Return a number without a unit, with so many digits and without an exponent if it is large.

    >>> format_ratio(3.43e3), format_ratio(0.0566), format_ratio(12)
    ('3,430', '0.0566', '12')
    """
    QUANTITY.check(ratio=ratio)
    DIGITS.check(digits=digits)
    return f"{float(f'{ratio:.{digits}g}'):,.15g}"


def format_number(value: float) -> str:
    """Return a number as text: a whole number in full, as a count is, any other with three digits.

    >>> format_number(1024), format_number(1874.3), format_number(0.05661)
    ('1,024', '1,870', '0.0566')
    """
    is_count = float(value).is_integer() and abs(value) < _MOST_EXACT
    return f"{value:,.0f}" if is_count else format_ratio(value)


def format_percent(share: float, decimals: int = 0, *, sign: str = "") -> str:
    """Return a share in percent, as prose writes it; ``sign="+"`` shows a plus, too.

    >>> format_percent(0.947), format_percent(-0.0001, 1), format_percent(0.12, sign="+")
    ('95 %', '0.0 %', '+12 %')
    """
    # Adding 0.0 makes minus zero, to which a small negative share rounds, plain zero.
    return f"{round(100 * share, decimals) + 0.0:{sign}.{decimals}f} %"


def parse_time(text: str) -> float:
    """Return the seconds of a duration such as ``"2 ms"``.

    A number without a unit is refused, because its unit could only be guessed.

    Raises
    ------
    InvalidOptionError
        If ``text`` is not a number of at least zero followed by ns, us, µs, ms or s.

    Examples
    --------
    >>> parse_time("2 ms")
    0.002
    """
    # The pattern has no sign, because no option of gpulab is a negative time.
    match = re.fullmatch(r"\s*([\d.]+(?:e[+-]?\d+)?)\s*([^\d\s.]+)\s*", text)
    try:
        number, unit = match.groups() if match else ("", "")
        time_s = float(number) * _TIME_SCALES[unit]
    except (ValueError, KeyError):
        time_s = math.inf
    if math.isinf(time_s):
        raise InvalidOptionError(
            f"time {text!r} cannot be read; "
            "write a number and one of the units ns, us, µs, ms, s, for example '2 ms'"
        )
    return time_s


def ascii_units(text: str, encoding: str | None) -> str:
    """Return ``text`` with µ as u and ± as +- where a console cannot print the signs.

    Text that ``encoding`` can write is returned unchanged. So is any text if ``encoding`` is None,
    as it is for streams of characters.

    >>> ascii_units("24.9 µs", "ascii")
    '24.9 us'
    >>> ascii_units("24.9 µs", "utf-8")
    '24.9 µs'
    """
    if encoding is None:
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    except LookupError:  # a console may name an encoding that Python does not have
        return ascii_units(text, "ascii")
    return text


def time_unit(time_s: float, digits: int = 3) -> tuple[int, str]:
    """Return the unit for a duration: its power of ten and its name.

    A duration that would be rounded up to 1000 of a unit gets the next unit: 999.6 µs is 1.00 ms.

    >>> time_unit(24.9e-6)
    (-6, 'µs')
    """
    exponent = min(max(_leading_exponent(time_s, digits) // 3 * 3, -9), 0)
    return exponent, _TIME_EXPONENTS[exponent]


def _leading_exponent(value: float, digits: int) -> int:
    """Return the power of ten of the first digit, once the value is rounded."""
    # From the rounded text, not from a logarithm: 9.996 is written as 10.0, which has an exponent
    # of 1, while log10(9.996) is below 1.
    return int(f"{value:.{digits - 1}e}".partition("e")[2]) if math.isfinite(value) else 0


def _decimals(value: float, exponent: int, digits: int) -> int:
    return max(0, digits - 1 - (_leading_exponent(value, digits) - exponent))


def _number(value: float, exponent: int, decimals: int) -> str:
    # Divide by 1e6 or multiply by 1e6, which are both exact and round once. Multiplying by 1e-6,
    # which is not an exact float, would round twice and change the last digit of some values.
    return f"{value / 10.0**exponent if exponent >= 0 else value * 10.0**-exponent:.{decimals}f}"
