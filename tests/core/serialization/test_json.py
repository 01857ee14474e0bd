"""Unreadable JSON is refused with the reason, and never with an error of Python's."""

import pytest

from gpulab.core.errors import DamagedDataError, InvalidOptionError, SchemaVersionError
from gpulab.core.serialization import parse_json
from gpulab.device.measurement import Measurement
from gpulab.views.live import Trace
from tests.support.conditions import HERE

RECORD = Measurement((2e-5, 3e-5), "events", "measured", HERE)
NOT_FINITE = ", which is not finite or beyond 64 bits"
DEEP = "its values are nested more than 32 deep"
REFUSED = {
    "": "it is not JSON (Expecting value: line 1 column 1 (char 0))",
    "{": (
        "it is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 "
        "(char 1))"
    ),
    "[1e400]": f"it has the number 1e400{NOT_FINITE}",
    "[NaN]": f"it has the number NaN{NOT_FINITE}",
    "[-Infinity]": f"it has the number -Infinity{NOT_FINITE}",
    f"[{2**63}]": f"it has the number {2**63}{NOT_FINITE}",
    f"[{-(2**63) - 1}]": f"it has the number {-(2**63) - 1}{NOT_FINITE}",
    f"[1{'0' * 5000}]": f"it has the number of 5,001 digits{NOT_FINITE}",
    '{"a": 1, "b": 2, "a": 3}': (
        "it has the same key twice, and nobody can tell which one counts"
    ),
    "[" * 33 + "]" * 33: DEEP,
    "[" * 200_000 + "]" * 200_000: DEEP,
    '{"a":' * 200_000 + "1" + "}" * 200_000: DEEP,
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_means_nothing_is_refused(text: str) -> None:
    """The error says what is wrong; if it is a number, the error shows it."""
    with pytest.raises(DamagedDataError) as error:
        parse_json(text)
    assert str(error.value) == REFUSED[text]


def test_what_can_be_told_is_read() -> None:
    """The largest numbers of 64 bits, real numbers, nesting, and every kind of value."""
    assert parse_json(f"[{2**63 - 1}, {-(2**63)}, 1.7e308, 5e-324]") == [
        *(2**63 - 1, -(2**63), 1.7e308, 5e-324),
    ]
    assert parse_json('{"a": [null, true, "\\ud800"], "b": {}}') == {
        "a": [None, True, "\ud800"],
        "b": {},
    }
    deep = parse_json("[" * 32 + "]" * 32)
    assert isinstance(deep, list)


BYTES = {
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "it is UTF-16 text, and must be UTF-8"),
    "mark": (
        b"\xef\xbb\xbf{}",
        "it begins with a byte order mark, and must be UTF-8 without one, as gpulab wrote it",
    ),
    "binary": (b"\x89PNG\r\n", "it is not text"),
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_utf_8_are_refused(name: str) -> None:
    """Bytes that are not UTF-8 are refused, and the error says what they are."""
    raw, message = BYTES[name]
    with pytest.raises(DamagedDataError) as error:
        parse_json(raw)
    assert str(error.value) == message


@pytest.mark.parametrize("text", [None, 3, ["{}"]])
def test_what_is_no_text_is_refused(text: object) -> None:
    """An argument that is no text is refused, and the error says what to pass."""
    with pytest.raises(InvalidOptionError) as error:
        Measurement.from_json(text)  # type: ignore[arg-type] # that is the test
    assert str(error.value) == f"text={text!r}; it must be the text that to_json returned"


def test_numbers_of_a_dict_are_checked_too() -> None:
    """nan, infinity and huge numbers are refused in a dict as well."""
    for value in (float("nan"), float("inf"), 10**400):
        with pytest.raises(SchemaVersionError, match=r"floor_s=.* is not of type float"):
            Measurement.from_dict({**RECORD.to_dict(), "floor_s": value})


def test_a_field_that_may_be_none_is_read_as_none() -> None:
    """A tuple field that may be None, such as the reasons of a reading, is read as None."""
    text = (
        '{"schema": "gpulab.trace/1", "readings": [{"at_s": 0.0, "reasons": null}], "source": '
        '"measured", "device_name": "x", "asked_s": 1}'
    )
    assert Trace.from_json(text).readings[0].reasons is None
