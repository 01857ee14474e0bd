"""The records: what they refuse, how they print, and that saving loses nothing."""

import json
import math
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.core.errors import (
    EmptyMeasurementError,
    InvalidOptionError,
    SchemaVersionError,
    UnknownNameError,
)
from gpulab.device.measurement import Conditions, Finding, Measurement
from gpulab.gpus.provenance import SOURCES
from gpulab.tracing import Span
from tests.support.conditions import HERE

SVG = "{http://www.w3.org/2000/svg}"
SAMPLES_S = tuple((24.5 + step / 100) * 1e-6 for step in range(41))
TAKEN = Measurement(SAMPLES_S, "events", "measured", HERE, n_warmup=3)
DRIFTING = Finding("drifting", "the last third is 5 % slower", "wait until the clocks settle")

seconds = st.floats(0, 1e6)
texts = st.text(st.characters(codec="utf-8"))
findings = st.builds(Finding, texts, texts, texts)
clocks = st.none() | st.integers(0, 5000)
conditions = st.builds(
    Conditions,
    texts,
    torch_version=texts,
    python_version=texts,
    gpulab_version=texts,
    cuda_version=st.none() | texts,
    driver_version=st.none() | texts,
    cache=texts,
    taken_at=texts,
    clock_before_mhz=clocks,
    clock_after_mhz=clocks,
)
measurements = st.builds(
    Measurement,
    st.lists(seconds, min_size=1, max_size=30).map(tuple),
    texts,
    st.sampled_from(SOURCES),
    conditions,
    st.lists(findings, max_size=3).map(tuple),
    st.integers(1, 1000),
    st.integers(0, 1000),
    texts,
    texts,
)


def test_interval_includes_the_floors_error() -> None:
    """The interval adds the errors of median and floor in squares, since they are independent."""
    low_s, high_s = TAKEN.interval_s
    low_both_s, high_both_s = replace(TAKEN, floor_error_s=0.3e-6).interval_s
    assert TAKEN.median_s - low_both_s == pytest.approx(math.hypot(TAKEN.median_s - low_s, 0.3e-6))
    assert high_both_s - TAKEN.median_s == pytest.approx(
        math.hypot(high_s - TAKEN.median_s, 0.3e-6)
    )
    shared = replace(TAKEN, floor_error_s=0.3e-6, inner_loops=3)
    assert shared.interval_s[0] == pytest.approx(
        TAKEN.median_s - math.hypot(TAKEN.median_s - low_s, 0.1e-6)
    )


def test_interval_reaches_no_time_below_zero() -> None:
    """The low end of an interval is never negative."""
    assert replace(TAKEN, floor_error_s=1.0).interval_s[0] == 0.0


def test_table_lists_power_and_regime() -> None:
    """The table lists power, temperature and clock regime."""
    conditions = replace(
        HERE,
        clock_before_mhz=1980,
        clock_after_mhz=1410,
        power_before_w=120.4,
        power_after_w=691.0,
        temperature_after_c=59,
        regime="throttled",
        throttle_reasons=("power cap",),
    )
    record = replace(TAKEN, conditions=conditions)
    rows = {row[0].text: row[1].text for row in html_of(record).iter("tr")}
    assert rows["clock before, after"] == "1980 MHz, 1410 MHz"
    assert rows["power before, after"] == "120 W, 691 W"
    assert rows["temperature before, after"] == "not read, 59 °C"
    assert rows["regime"] == "throttled, power cap"


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({}, "95 % interval of 41; events, hot cache; NVIDIA H200, measured"),
        ({"source": "virtual"}, "95 % interval of 41; events, hot cache; virtual NVIDIA H200"),
        ({"source": "recorded"}, "95 % interval of 41; events, hot cache; NVIDIA H200, recorded"),
        (
            {"n_warmup": 0},
            "95 % interval of 41; events, hot cache, no warm-up; NVIDIA H200, measured",
        ),
        (
            {"findings": (DRIFTING,)},
            "95 % interval of 41; events, hot cache; NVIDIA H200, measured",
        ),
    ],
)
def test_remark_says_how_the_time_was_taken(change: dict[str, Any], remark: str) -> None:
    """The line has estimate, interval, count, method, cache, warm-up and source, no findings."""
    line = replace(TAKEN, **change).line()
    assert line == f"24.7 µs [24.6, 24.8] per call (median, {remark})"


def test_statistics_are_those_of_the_samples() -> None:
    """Median, interval and spread are computed from the samples, in seconds per call."""
    assert TAKEN.n_samples == 41
    assert TAKEN.median_s == SAMPLES_S[20]
    assert TAKEN.interval_s == (SAMPLES_S[13], SAMPLES_S[27])
    assert TAKEN.spread_s == pytest.approx(1.4826 * 0.1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf, -1e-9])
def test_sample_that_is_no_number_is_refused(value: float) -> None:
    """A sample that is not finite or is negative is refused with its index, as is no sample."""
    with pytest.raises(InvalidOptionError) as error:
        replace(TAKEN, samples_s=(1.0, value))
    assert str(error.value) == f"samples_s[1]={value}; it must be a finite number, 0 or more"
    with pytest.raises(EmptyMeasurementError):
        replace(TAKEN, samples_s=())


def test_console_shows_the_line_and_the_findings() -> None:
    """IPython prints the line with one line per finding below it."""

    class Printer:
        written = ""

        def text(self, text: str) -> None:
            self.written += text

    printer, doubtful = Printer(), replace(TAKEN, findings=(DRIFTING, DRIFTING))
    doubtful._repr_pretty_(printer, False)  # noqa: FBT003 # as IPython calls it
    assert printer.written == f"{TAKEN}\n{DRIFTING}\n{DRIFTING}"


OTHER = "they are no measurement: give another file"


@pytest.mark.parametrize(
    ("data", "cure"),
    [
        ({"schema": "gpulab.measurement/2"}, "a newer gpulab wrote them: update this one"),
        (
            {"schema": "gpulab.measurement/0"},
            "an older gpulab wrote them: read them with that one, or save them again with this",
        ),
        *((each, OTHER) for each in ({"schema": "gpulab.card/1"}, {"schema": 1}, {}, [], None)),
    ],
)
def test_other_schema_is_refused(data: Any, cure: str) -> None:  # noqa: ANN401 # any JSON value
    """Another schema is refused with both names; newer, older and other records are told apart."""
    schema = data.get("schema") if isinstance(data, dict) else None
    with pytest.raises(SchemaVersionError) as error:
        Measurement.from_json(json.dumps(data))
    assert str(error.value) == (
        f"the saved data have the schema {schema!r} and this version of gpulab reads "
        f"'gpulab.measurement/1'; {cure}"
    )


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (["method"], ..., "method is missing"),
        (["conditions", "cache"], ..., "conditions.cache is missing"),
        (["extra"], 1, "extra is not a field of it"),
        (["method"], 1, "method=1 is not of type str"),
        (["samples_s"], "1.0", "samples_s='1.0' is not of type tuple"),
        (["samples_s"], [1.0, "2"], "samples_s[1]='2' is not of type float"),
        (
            ["conditions", "clock_before_mhz"],
            1.5,
            "conditions.clock_before_mhz=1.5 is not of type int | None",
        ),
        (["findings"], [{"code": "x"}], "findings[0].message is missing"),
    ],
)
def test_damaged_record_is_refused(path: list[str], value: object, complaint: str) -> None:
    """The error names the field that is missing, unknown or of the wrong type."""
    data = json.loads(TAKEN.to_json())
    inner = data
    for name in path[:-1]:
        inner = inner[name]
    inner.pop(path[-1], None)
    if value is not ...:
        inner[path[-1]] = value
    with pytest.raises(SchemaVersionError) as error:
        Measurement.from_dict(data)
    assert str(error.value) == (
        "the saved data are not a whole 'gpulab.measurement/1' record; "
        f"save them again: {complaint}"
    )


def test_an_index_of_no_sample_is_refused() -> None:
    """A flag must be the index of a sample."""
    with pytest.raises(InvalidOptionError) as error:
        replace(TAKEN, flagged=(0, TAKEN.n_samples))
    assert str(error.value) == (
        f"flagged has {TAKEN.n_samples}; it must be the index of a sample, from 0 to "
        f"{TAKEN.n_samples - 1}"
    )
    with pytest.raises(InvalidOptionError) as error:
        replace(TAKEN, flagged=(0, -1))
    assert str(error.value) == "flagged[1]=-1; it must be a whole number, 0 or more"


def test_frame_has_one_row_per_sample() -> None:
    """The table has one row per sample, with the columns that tell measurements apart."""
    frame = replace(TAKEN, samples_s=(1.0, 2.0), label="mm").to_frame()
    assert frame.to_dict("list") == {
        "sample": [0, 1],
        "duration_s": [1.0, 2.0],
        "method": ["events", "events"],
        "source": ["measured", "measured"],
        "device_name": ["NVIDIA H200", "NVIDIA H200"],
        "label": ["mm", "mm"],
    }


def html_of(measurement: Measurement) -> ET.Element:
    """Return the parsed HTML, which must be one well-formed element."""
    return ET.fromstring(measurement._repr_html_())


@settings(max_examples=30)
@given(measurement=measurements)
def test_any_measurement_is_saved_and_drawn(measurement: Measurement) -> None:
    """JSON loses nothing, and the HTML is well-formed, without a script or a bar outside."""
    assert Measurement.from_json(measurement.to_json()) == measurement
    assert Measurement.from_dict(measurement.to_dict()) == measurement
    root = html_of(measurement)
    assert len(root.findall("ul/li")) == len(measurement.findings)
    assert len(root.findall("ul")) == bool(measurement.findings)
    allowed = {"div", "p", "strong", "ul", "li", "details", "summary", "table", "tbody", "tr"}
    allowed |= {"th", "td", *(SVG + name for name in ("svg", "rect", "path", "text"))}
    assert {element.tag for element in root.iter()} <= allowed
    assert not any(name.startswith("on") for element in root.iter() for name in element.keys())  # noqa: SIM118 # an element iterates over its children

    svg = root.find(f"{SVG}svg")
    assert svg is not None
    _, _, width, height = map(float, svg.get("viewBox", "").split())
    for bar in svg.iter(f"{SVG}rect"):
        x, y, wide, high = (float(bar.get(name, "nan")) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height


def test_html_has_a_drawing_with_a_text_alternative() -> None:
    """The text alternative describes the drawing and names its source."""
    svg = html_of(TAKEN).find(f"{SVG}svg")
    assert svg is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == (
        "Distribution of 41 samples (NVIDIA H200, measured): from 24.5 µs to 24.9 µs, "
        "median 24.7 µs, 95 % interval [24.6, 24.8] µs"
    )


@pytest.mark.parametrize(
    ("method", "source"),
    [
        ("work", " from the driver's records of this work"),
        ("timer", " from a kernel that reads the device's clock"),
        ("profiler", " from the driver's records of a small kernel"),
        ("assumed", " from a small kernel and what it takes on an H200"),
        ("records", " from the model"),
        ("another", ""),
    ],
)
def test_table_says_how_the_floor_was_found(method: str, source: str) -> None:
    """The table says how the floor was found, and nothing for an unknown way."""
    record = replace(TAKEN, floor_s=3.1e-6, floor_error_s=20e-9, floor_method=method)
    rows = {row[0].text: row[1].text for row in html_of(record).iter("tr")}
    assert rows["floor subtracted"] == f"3.10 µs, known within 20.0 ns{source}"


def test_span_of_unknown_kind_is_refused() -> None:
    """A misspelt kind of span is refused with the nearest name."""
    with pytest.raises(UnknownNameError) as error:
        Span("kernels", "gemm", "stream 7", 0.0, 1.0)
    assert str(error.value) == (
        "unknown span kind 'kernels'; did you mean 'kernel'? "
        "Known: copy, event, host, kernel, launch, wait"
    )


@pytest.mark.parametrize(
    ("start_s", "end_s"),
    [(2.0, 1.0), (2.0, math.nan), (2.0, math.inf), (-math.inf, 2.0), (0.0, 1e300)],
)
def test_span_of_impossible_times_is_refused(start_s: float, end_s: float) -> None:
    """A span that ends before it starts, or has no finite time, is refused."""
    with pytest.raises(InvalidOptionError) as error:
        Span("kernel", "gemm", "stream 7", start_s, end_s)
    assert str(error.value) == (
        f"start_s={start_s}, end_s={end_s}; "
        "both must be finite seconds, at most 1e+12, and the end not before the start"
    )


def texts_of(measurement: Measurement) -> list[str | None]:
    """Return the texts of the drawing, in order."""
    return [text.text for text in html_of(measurement).iter(f"{SVG}text")]


def test_drawing_counts_what_lies_off_its_axis() -> None:
    """Outliers do not stretch the axis, but are counted beside it."""
    shown = texts_of(replace(TAKEN, samples_s=(*SAMPLES_S, 1e-6, 9e-3, 8e-3)))
    assert "\N{LEFTWARDS ARROW} 1 down to 1.00 µs" in shown
    assert "2 up to 9.00 ms \N{RIGHTWARDS ARROW}" in shown
    assert len(texts_of(replace(TAKEN, samples_s=(*SAMPLES_S, 9e-3)))) == len(shown) - 1


def test_drawing_has_units_and_source_on_its_axis() -> None:
    """The axis has round numbers, a unit and the device, and the counts are at the side."""
    assert texts_of(TAKEN) == [
        *["4", "0", "samples"],
        *["24.5", "24.6", "24.7", "24.8", "24.9"],
        "duration per call in µs (NVIDIA H200, measured)",
        "bars: samples, line: median, band: 95 % interval",
    ]
    # The number of the median stands below its line.
    (line,) = (path for path in html_of(TAKEN).iter(f"{SVG}path") if path.get("stroke-width"))
    (number,) = (text for text in html_of(TAKEN).iter(f"{SVG}text") if text.text == "24.7")
    assert line.get("d", "").startswith(f"M{number.get('x')} ")
