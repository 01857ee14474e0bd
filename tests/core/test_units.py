"""Durations, sizes and rates, as text and back."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.errors import InvalidOptionError
from gpulab.core.units import (
    ascii_units,
    format_bytes,
    format_estimate,
    format_interval,
    format_rate,
    format_ratio,
    format_time,
    parse_time,
    time_unit,
)

MICRO, MU = "\u00b5", "\u03bc"


@pytest.mark.parametrize(
    ("time_s", "text"),
    [
        *json.loads((Path(__file__).parents[1] / "javascript" / "times.json").read_text("utf-8")),
        (float("nan"), "nan s"),
        (float("inf"), "inf s"),
    ],
)
def test_time_has_three_digits_and_a_readable_unit(time_s: float, text: str) -> None:
    """The unit is chosen after rounding, from ns to s; the widgets write the same text."""
    assert format_time(time_s) == text


def test_time_takes_a_number_of_digits() -> None:
    """More digits on request, and the unit follows the rounding."""
    assert format_time(999.6e-6, digits=4) == "999.6 µs"
    assert format_time(24.86e-6, digits=2) == "25 µs"
    assert format_time(99.6e-6, digits=2) == "100 µs"


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (24.84e-6, 25.02e-6, "[24.8, 25.0] µs"),
        (998e-6, 1.013e-3, "[1.00, 1.01] ms"),
        (9.84e-6, 10.2e-6, "[9.8, 10.2] µs"),
        (0.0, 0.0, "[0.00, 0.00] s"),
    ],
)
def test_interval_has_one_unit(low_s: float, high_s: float, text: str) -> None:
    """Both ends share the unit and the decimals of the high end."""
    assert format_interval(low_s, high_s) == text


@pytest.mark.parametrize(
    ("parts_s", "text"),
    [
        ((24.86e-6, 24.81e-6, 25.02e-6), "24.9 µs [24.8, 25.0]"),
        ((999e-6, 998e-6, 1.012e-3), "999 µs [998, 1012]"),
        ((1e-9, 0.0, 9999e-9), "1.00 ns [0.00, 9999.00]"),
        ((1e-9, 0.0, 10000e-9), "1.00 ns [0.0, 10.0] µs"),
        ((9.999e-6, 9.94e-6, 10.03e-6), "10.0 µs [9.9, 10.0]"),
    ],
)
def test_estimate_keeps_the_unit_of_its_value(
    parts_s: tuple[float, float, float], text: str
) -> None:
    """An interval after a value does not change the unit."""
    assert format_estimate(*parts_s) == text


def test_unit_of_a_duration() -> None:
    """`time_unit` returns the power of ten and the unit that fit a duration."""
    assert [time_unit(time_s) for time_s in (2.0, 0.9996, 0.9, 3e-6, 3e-12, 0.0)] == [
        (0, "s"),
        (0, "s"),
        (-3, "ms"),
        (-6, "µs"),
        (-9, "ns"),
        (0, "s"),
    ]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (60 * 1024**2, "60.0 MiB"),
        (1023.4 * 1024, "1023 KiB"),
        (1023.6 * 1024, "1.00 MiB"),
        (139 * 1024**3, "139 GiB"),
        (2**60, "1048576 TiB"),
        (-512, "-512 B"),
    ],
)
def test_sizes_are_binary(size_bytes: float, text: str) -> None:
    """Sizes step by 1024, and 1024 of a unit is written as 1 of the next."""
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("per_s", "unit", "text"),
    [
        (4.3e12, "B", "4.30 TB/s"),
        (788e12, "FLOP", "788 TFLOP/s"),
        (999.6, "B", "1.00 kB/s"),
        (0.5, "B", "0.500 B/s"),
        (0.0, "B", "0.00 B/s"),
        (1e21, "B", "1000 EB/s"),
    ],
)
def test_rates_are_decimal(per_s: float, unit: str, text: str) -> None:
    """Rates step by 1000, as on a data sheet."""
    assert format_rate(per_s, unit) == text


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("2 ms", 2e-3),
        ("2ms", 2e-3),
        (" 1.5 s ", 1.5),
        ("3e2 ns", 300e-9),
        ("4 us", 4e-6),
        (f"4 {MICRO}s", 4e-6),
        (f"4 {MU}s", 4e-6),
        ("0 s", 0.0),
    ],
)
def test_time_is_read_with_its_unit(text: str, time_s: float) -> None:
    """Spaces are optional, and all three ways to type a microsecond are read."""
    assert parse_time(text) == pytest.approx(time_s, rel=1e-15)


@pytest.mark.parametrize("text", ["2", "ms", "", "-1 ms", "2 min", "1.2.3 s", "1e999 s", "nan s"])
def test_time_that_cannot_be_read(text: str) -> None:
    """The message shows the text, the units and an example to follow."""
    with pytest.raises(InvalidOptionError) as error:
        parse_time(text)
    assert str(error.value) == (
        f"time {text!r} cannot be read; "
        "write a number and one of the units ns, us, µs, ms, s, for example '2 ms'"
    )


@given(time_s=st.floats(1e-9, 1e4))
def test_written_time_reads_back(time_s: float) -> None:
    """A time written as text and read back differs only by rounding to three digits."""
    assert parse_time(format_time(time_s)) == pytest.approx(time_s, rel=5.01e-3)


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("utf-8", "1 µs ± 2 … \u4e2d"),
        ("ascii", "1 us +- 2 ... ?"),
        ("latin-1", "1 us +- 2 ... ?"),
        ("no-such-encoding", "1 us +- 2 ... ?"),
        (None, "1 µs ± 2 … \u4e2d"),
    ],
)
def test_consoles_get_what_they_can_write(encoding: str | None, written: str) -> None:
    """If a console cannot write the text, all special characters in it are replaced."""
    assert ascii_units("1 µs ± 2 … \u4e2d", encoding) == written


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(3_434.0, "3,430"), (1.0, "1"), (0.05663, "0.0566"), (99.96, "100"), (math.inf, "inf")],
)
def test_ratios_have_no_exponent(ratio: float, text: str) -> None:
    """A ratio has three digits, and a large one is written out with commas."""
    assert format_ratio(ratio) == text
