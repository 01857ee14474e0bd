"""The records of a timeline refuse impossible values and survive JSON."""

import math

import pytest

from gpulab.core.errors import InvalidOptionError, UnknownNameError
from gpulab.tracing import Span, Timeline
from gpulab.tracing._counters import CounterSeries
from tests.support.spans import work


def test_engine_must_be_one_of_the_four() -> None:
    """The error for a misspelt engine lists all four."""
    with pytest.raises(UnknownNameError) as error:
        work(7, 9, engine="copy inn")
    assert str(error.value) == (
        "unknown engine 'copy inn'; did you mean 'copy in'? "
        "Known: compute, copy between GPUs, copy in, copy out"
    )


@pytest.mark.parametrize(
    ("times_s", "values", "message"),
    [
        ((0.0,), (), "1 times and 0 values; a series has one value for each time"),
        (
            (1.0, 1.0, 0.5),
            (0.0, 1.0, 1.0),
            "times_s goes from 1.0 to 0.5; give the readings in the order of their times",
        ),
        ((0.0,), (math.nan,), "values has nan; it must be a finite number"),
        ((math.nan,), (1.0,), "times_s has nan; it must be finite seconds, at most 1e+12"),
        ((1e300,), (1.0,), "times_s has 1e+300; it must be finite seconds, at most 1e+12"),
    ],
)
def test_a_series_that_cannot_be_drawn_is_refused(
    times_s: tuple[float, ...], values: tuple[float, ...], message: str
) -> None:
    """There is a value for each time, and times ascend; the error quotes what is wrong."""
    with pytest.raises(InvalidOptionError) as error:
        CounterSeries("memory", "B", 0, times_s, values)
    assert str(error.value) == message


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
