"""Calling a plot with only a record gives a finished figure, with text from the record."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure as Canvas

import gpulab
from gpulab import plots
from gpulab.core.errors import InvalidOptionError
from gpulab.figures import WIDTH_IN, Figure
from gpulab.timing import Ladder, Rung
from tests.views.plots.test_basic import CALLS_S, CARD, EVENTS, NAIVE, QUEUE, SIZES

pytestmark = pytest.mark.usefixtures("no_pixels")

STAIRS = pd.DataFrame({"n": [4, 1, 2], "time_s": [8e-6, 2e-6, 3e-6], "queue_s": [1e-6] * 3})
ROWS = pd.Series({"matmul": 2e-3, "add": 5e-6}, name="time_s")
LADDER = Ladder(
    (Rung("naive", "nothing", NAIVE, 5e-6), Rung("graph", "launch", obstacle="no")),
    "virtual",
    "NVIDIA H200",
    "relu",
)
EVERY: list[tuple[Callable[..., Any], Any, str, str]] = [
    (
        plots.samples,
        [EVENTS, NAIVE],
        "Every sample of events, naive",
        (
            "events: median 22.0 µs [21.3, 22.7], all 41 samples from 20.0 µs to 24.0 µs.\n"
            "naive: median 5.50 µs [5.33, 5.67], all 41 samples from 5.00 µs to 6.00 µs."
        ),
    ),
    (
        plots.compare_methods,
        [EVENTS, NAIVE],
        "events reads 4 times as much as naive",
        (
            "events: 22.0 µs [21.3, 22.7].\nnaive: 5.50 µs [5.33, 5.67].\n"
            "The largest is 4 times the smallest."
        ),
    ),
    (
        plots.scaling,
        SIZES,
        "Time per call over size",
        (
            "naive: from 12.0 µs at 64 to 14.0 µs at 8,192.\n"
            "waited <for>: from 18.0 µs at 64 to 22.0 ms at 8,192."
        ),
    ),
    (
        plots.call_times,
        CALLS_S,
        "The longest call takes 200 times as long as the median",
        "21 calls, median 5.00 µs. The longest is call 21: 1.00 ms.",
    ),
    (
        plots.timeline,
        QUEUE,
        "The GPU is busy 70 % of 100 µs",
        "\n".join(QUEUE.summary().lines()),
    ),
    (
        plots.ladder,
        LADDER,
        "relu by every method",
        "naive: 5.50 µs (+10.0 % from the driver's records).",
    ),
    (
        plots.line,
        STAIRS,
        "time, queue over n",
        (
            "time: from 2.00 µs at 1 to 8.00 µs at 4; lowest 2.00 µs, highest 8.00 µs.\n"
            "queue: from 1.00 µs at 1 to 1.00 µs at 4; lowest 1.00 µs, highest 1.00 µs."
        ),
    ),
    (
        plots.scatter,
        STAIRS[["n", "time_s"]],
        "time over n",
        "time: from 2.00 µs at 1 to 8.00 µs at 4; lowest 2.00 µs, highest 8.00 µs.",
    ),
    (plots.bars, ROWS, "time", "matmul: 2.00 ms.\nadd: 5.00 µs."),
]


@pytest.fixture(autouse=True)
def _on_virtual_h200() -> Any:  # noqa: ANN401  # a fixture that yields nothing
    """Enter a virtual H200, from which numbers without a source are assumed to come."""
    with gpulab.virtual_gpu("H200", first_use=False):
        yield


@pytest.mark.parametrize(
    ("plot", "record", "title", "alt"), EVERY, ids=[plot.__name__ for plot, *_ in EVERY]
)
def test_title_and_alternative_are_computed(
    plot: Callable[..., Any], record: object, title: str, alt: str
) -> None:
    """One call gives a figure with title, source and caption computed from the record."""
    figure = plot(record)
    assert isinstance(figure, Figure)
    assert figure.title == f"{title} (virtual NVIDIA H200)"
    assert figure.caption == alt
    assert figure.width_px == WIDTH_IN * 100


@pytest.mark.parametrize(("plot", "record"), [(plot, record) for plot, record, *_ in EVERY])
def test_what_all_plots_share(plot: Callable[..., Any], record: object) -> None:
    """Title, caption and size may be given, axes get labels, and a wrong option is named."""
    before = dict(mpl.rcParams)
    figure = plot(record, title="Mine", alt="Look.", ax_size=(5, 3))
    assert dict(mpl.rcParams) == before
    assert (figure.title, figure.width_px) == ("Mine (virtual NVIDIA H200)", 500)
    assert figure.caption == "Look."
    ax = Canvas().add_subplot()
    assert plot(record, ax) is ax
    assert ax.get_title() == ""
    rows = [tick.get_text() for tick in ax.get_yticklabels()]
    assert ax.get_xlabel()
    assert ax.get_ylabel() or all(rows)
    for axes in (None, ax):
        with pytest.raises(TypeError, match="tile"):
            plot(record, axes, tile="A title")


def test_a_known_source_is_used() -> None:
    """Only numbers without a source get that of the GPU in use."""
    assert plots.samples(replace(EVENTS, source="measured")).title.endswith(
        "(measured on NVIDIA H200)"
    )
    assert plots.call_times(CALLS_S, source=CARD).title.endswith("(virtual NVIDIA H200)")
    recorded = plots.call_times(CALLS_S, source="recorded on Tesla T4")
    assert recorded.title.endswith("(recorded on Tesla T4)")


def test_lines_are_sorted_share_a_unit_and_begin_at_zero() -> None:
    """Columns share one unit, also with a gap, rows are sorted, and the axis begins at zero."""
    ax = plots.line(STAIRS, Canvas().add_subplot())
    time, queue = ax.lines
    assert time.get_xydata() == pytest.approx(np.array([[1, 2], [2, 3], [4, 8]]))
    assert queue.get_xydata() == pytest.approx(np.array([[1, 1], [2, 1], [4, 1]]))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("n", "time (µs)")
    assert ax.get_ylim()[0] == 0
    assert time.get_marker() != queue.get_marker()
    gap = plots.line(STAIRS.assign(queue_s=[1e-6, np.nan, 3e-6]), Canvas().add_subplot())
    assert (gap.get_ylabel(), len(gap.lines[1].get_xdata())) == ("time (µs)", 2)
    mixed = pd.DataFrame({"n": [1, 2], "a_ms": [1.0, 2.0], "b_mhz": [3.0, 4.0]})
    assert plots.line(mixed, Canvas().add_subplot()).get_ylabel() == "value"


@pytest.mark.parametrize(
    ("values", "is_from_zero"),
    [([8, 10], True), ([8.1, 10], False), ([5, 5], True), ([0, 0], True), ([-1, 10], False)],
)
def test_an_axis_from_zero_does_not_hide_the_data(
    values: list[float], *, is_from_zero: bool
) -> None:
    """A linear axis begins at zero, unless the values would lie in the upper fifth of it."""
    for plot in (plots.line, plots.scatter):
        ax = plot(pd.DataFrame({"n": [1, 2], "value": values}), Canvas().add_subplot())
        assert (ax.get_ylim()[0] == 0) == is_from_zero


def test_a_ladder_has_a_named_row_for_each_rung_that_was_timed() -> None:
    """A rung without a time has no row."""
    ax = plots.ladder(LADDER, Canvas().add_subplot())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["naive"]


def test_counts_have_whole_ticks() -> None:
    """Between two whole numbers an axis of counts has no tick."""
    counts = pd.DataFrame({"calls": range(4), "time_s": [1.0, 2.0, 3.0, 4.0]})
    shares = counts.assign(calls=[0.0, 0.5, 1.0, 3.0])
    ticks = [
        plots.line(frame, Canvas(figsize=(9, 4)).add_subplot()).get_xticks()
        for frame in (counts, shares)
    ]
    assert [bool((places % 1 == 0).all()) for places in ticks] == [True, False]


def test_points_keep_their_rows_and_are_not_joined() -> None:
    """A scatter plot has one point for each row, without a line."""
    ax = plots.scatter(STAIRS, Canvas().add_subplot(), x="n", y="time_s", log="xy")
    (points,) = ax.lines
    assert points.get_xydata() == pytest.approx(np.array([[4, 8], [1, 2], [2, 3]]))
    assert points.get_linestyle() == "None"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    both = plots.scatter(STAIRS.assign(n=[4, 1, 0]), Canvas().add_subplot(), log="x")
    assert both.get_legend() is not None  # loose points have no end for a name


def test_bars_begin_at_zero_and_have_their_numbers() -> None:
    """The first row is at the top, and each bar has its number as length and as text."""
    frame = ROWS.rename_axis("work").reset_index().assign(queue_s=1e-6)
    ax = plots.bars(frame, Canvas().add_subplot(), x="work", y=["time_s", "queue_s"])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["matmul", "add"]
    assert [patch.get_x() for patch in ax.patches] == [0] * 4
    scale = ax.patches[0].get_width() / 2e-3
    widths = [patch.get_width() / scale for patch in ax.patches]
    assert widths == pytest.approx([2e-3, 5e-6, 1e-6, 1e-6])
    assert [text.get_text() for text in ax.texts] == ["2.00 ms", "5.00 µs", "1.00 µs", "1.00 µs"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plots.line(pd.DataFrame({"name": ["a"], "n": [1]})),
            "the column 'name' has no numbers; name columns of numbers, or draw bars",
        ),
        (
            lambda: plots.line(pd.DataFrame({"n": [1, 2], "time_s": [np.nan] * 2})),
            "the column 'time_s' has no numbers; name columns of numbers, or draw bars",
        ),
        (
            lambda: plots.bars(pd.DataFrame({"a": ["x"], "b": ["y"]}), x="a", y="b"),
            "the column 'b' has no numbers; a bar needs a number",
        ),
        (
            lambda: plots.bars(pd.Series(range(31))),
            "31 bars are too many; draw a line instead",
        ),
        (
            lambda: plots.line(pd.DataFrame({"n": [1]})),
            "the frame has no column of numbers to draw; name it: y=...",
        ),
        (
            lambda: plots.scatter(STAIRS, log="z"),
            "log='z'; it must be one of 'x', 'y', 'xy', or None",
        ),
        (
            lambda: plots.samples(EVENTS, title=3),
            "title=3; it must be a text, or None",
        ),
        (
            lambda: plots.samples(EVENTS, ax_size=3),
            "ax_size=3; it must be width and height in inches, such as (9.0, 4.2), or None",
        ),
    ],
)
def test_unusable_arguments_are_refused(call: Callable[[], object], message: str) -> None:
    """The message names the problem and what to give instead."""
    with pytest.raises(InvalidOptionError) as error:
        call()
    assert str(error.value) == message
