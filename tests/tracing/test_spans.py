"""The records of a timeline refuse impossible values and survive JSON."""

from dataclasses import replace

import pytest

from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.tracing import Span, Timeline
from gpulab.tracing._counters import CounterSeries
from tests.support.spans import host, work

MEMORY = CounterSeries("memory", "B", 0, (0.0, 1e-6), (512.0, 0.0))
TIMELINE = Timeline(
    (
        host("launch", 0, 5, 1),
        work(7, 9, number=1, size_bytes=64, engine="copy in"),
        host("wait", 6, 12, 2, waits_for=1),
    ),
    "virtual",
    "NVIDIA H200",
    (MEMORY,),
    3,
)


def test_engine_must_be_one_of_the_four() -> None:
    """The error for a misspelt engine lists all four."""
    with pytest.raises(UnknownNameError) as error:
        replace(TIMELINE.spans[1], engine="copy inn")
    assert str(error.value) == (
        "unknown engine 'copy inn'; did you mean 'copy in'? "
        "Known: compute, copy between GPUs, copy in, copy out"
    )


def test_series_has_a_value_for_each_time() -> None:
    """A series with different numbers of times and values is refused."""
    with pytest.raises(InvalidOptionError) as error:
        CounterSeries("memory", "B", 0, (0.0,), ())
    assert str(error.value) == "1 times and 0 values; a series has one value for each time"


def test_series_goes_forward() -> None:
    """Times of a series may be equal but not decrease."""
    CounterSeries("memory", "B", 0, (1.0, 1.0), (0.0, 1.0))
    with pytest.raises(InvalidOptionError) as error:
        CounterSeries("memory", "B", 0, (1.0, 0.5), (0.0, 1.0))
    assert str(error.value) == (
        "times_s goes from 1.0 to 0.5; give the readings in the order of their times"
    )


def test_first_version_of_the_schema_is_still_read() -> None:
    """A file from before spans had a correlation is read with None there."""
    text = (
        '{"schema": "gpulab.timeline/1", "spans": [{"kind": "kernel", "name": "k", '
        '"lane": "stream 0", "start_s": 0.0, "end_s": 1.0, "stream": 0}], '
        '"source": "virtual", "device_name": "NVIDIA H200"}'
    )
    timeline = Timeline.from_json(text)
    assert timeline.spans == (Span("kernel", "k", "stream 0", 0.0, 1.0, 0),)
    assert (timeline.memory, timeline.n_missing) == ((), 0)


def test_frame_keeps_whole_numbers_whole() -> None:
    """Whole-number columns stay integers where values are missing."""
    frame = TIMELINE.to_frame()
    assert list(frame["correlation"]) == [1, 1, 2]
    assert frame["waits_for"].isna().tolist() == [True, True, False]
    names = ["stream", "device", "correlation", "waits_for", "size_bytes"]
    assert {str(frame[name].dtype) for name in names} == {"Int64"}
    assert list(frame["size_bytes"].dropna()) == [64]


def test_host_and_work_are_told_apart() -> None:
    """A wait in a stream counts neither as host nor as work."""
    wait = Span("wait", "w", "stream 0", 0.0, 1.0, 0)
    kinds = [(span.is_on_host, span.is_work) for span in (*TIMELINE.spans[:2], wait)]
    assert kinds == [(True, False), (False, True), (False, False)]
