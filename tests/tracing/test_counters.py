"""Counters over time: engines in use, and launches in the queue."""

import math

import pytest

from gpulab.core.errors import InvalidOptionError
from gpulab.tracing._counters import (
    CounterSeries,
    at_once,
    counter_series,
    engine_use,
    queue_depth,
)
from tests.support.spans import US, host, work

SPANS = [
    host("launch", 0, 5, 1),
    work(7, 9, 0, 1),
    work(9, 12, 0, 1),  # a second node of the same graph
]


def test_engines_count_what_runs_at_once() -> None:
    """Each engine in use has a series of how many spans run at once, in a fixed order."""
    spans = [work(0, 10, engine="copy out"), work(0, 10), work(5, 15, 1), host("host", 0, 20)]
    compute, copy_out = engine_use(spans)
    assert (compute.name, compute.times_s, compute.values) == (
        "compute",
        (0, 5 * US, 10 * US, 15 * US),
        (1, 2, 1, 0),
    )
    assert copy_out.name == "copy out"


def test_series_are_grouped_by_device() -> None:
    """Engines, queue and memory of one device come one after the other."""
    spans = [host("launch", 0, 1, 1), work(1, 2, 0, 1, device=1), work(1, 2)]
    memory = [CounterSeries("memory", "B", device, (0.0,), (1.0,)) for device in (0, 1)]
    found = [(series.device, series.name) for series in counter_series(spans, memory)]
    assert found == [
        (0, "compute"),
        (0, "memory"),
        (1, "compute"),
        (1, "queue depth"),
        (1, "memory"),
    ]


def test_queue_contains_what_was_launched_and_is_not_done() -> None:
    """A launch is queued from its return to the end of its last work; a graph counts once."""
    (series,) = queue_depth([*SPANS, host("launch", 6, 8, 9), work(12, 13, 0, 9)])
    assert (series.name, series.unit, series.device) == ("queue depth", "launches", 0)
    assert series.times_s == (5 * US, 8 * US, 12 * US, 13 * US)
    assert series.values == (1, 2, 1, 0)


def test_work_that_starts_before_its_call_returns_is_in_the_queue() -> None:
    """A kernel that ends before its launch returns still counts as queued."""
    (series,) = queue_depth([host("launch", 0, 5, 1), work(3, 4, 0, 1)])
    assert series.times_s == (3 * US, 4 * US)


def test_counting_what_overlaps() -> None:
    """The count does not change where one span ends as another begins."""
    assert at_once([(0.0, 1.0), (1.0, 2.0), (0.5, 1.5)]) == ((0.0, 0.5, 1.5, 2.0), (1, 2, 1, 0))


@pytest.mark.parametrize(
    ("times_s", "values", "message"),
    [
        ((0.0,), (math.nan,), "values has nan; it must be a finite number"),
        ((math.nan,), (1.0,), "times_s has nan; it must be finite seconds, at most 1e+12"),
        ((1e300,), (1.0,), "times_s has 1e+300; it must be finite seconds, at most 1e+12"),
    ],
)
def test_numbers_that_cannot_be_drawn_are_refused(
    times_s: tuple[float, ...], values: tuple[float, ...], message: str
) -> None:
    """The error quotes the number that cannot be drawn."""
    with pytest.raises(InvalidOptionError) as error:
        CounterSeries("memory", "B", 0, times_s, values)
    assert str(error.value) == message
