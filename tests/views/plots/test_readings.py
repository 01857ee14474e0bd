"""Pictures of readings: beside the work, line by line, and in the order taken."""

from collections.abc import Callable

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab import plots
from gpulab.core.errors import InvalidOptionError

pytestmark = pytest.mark.usefixtures("no_pixels")

WRONG = {
    "n": [8192, 64, 512, 4096],
    "reading_s": [1e-5, 1e-5, 1e-5, 1e-5],
    "gpu_s": [2e-2, 4e-6, 2e-5, 3e-3],
}


def texts(ax: Axes) -> list[str]:
    """Return all texts in the picture."""
    return [text.get_text() for text in ax.texts if text.get_text()]


def test_a_reading_that_does_not_follow_the_work() -> None:
    """The title compares the largest with the smallest size, and an arrow marks the error."""
    figure = plots.reading_and_work(WRONG, source="virtual")
    assert figure.title == (
        "From n = 64 to 8,192 the GPU needs 5,000 times as long. The stopwatch reads the same "
        "(virtual)"
    )
    assert figure.caption == (
        "At n = 64 the GPU needs 4.00 µs and the stopwatch reads 10.0 µs.\n"
        "At n = 4,096 the GPU needs 3.00 ms and the stopwatch reads 10.0 µs.\n"
        "At n = 8,192 the GPU needs 20.0 ms and the stopwatch reads 10.0 µs."
    )
    (ax,) = figure.canvas.axes
    assert "2,000 times\ntoo little" in texts(ax)
    (arrow,) = (text for text in ax.texts if text.arrow_patch and not text.get_text())  # type: ignore[attr-defined]  # annotations have it
    assert [arrow.xy, arrow.xyann] == [(8192, 20_000), (8192, pytest.approx(10))]  # type: ignore[attr-defined]  # as above


def test_a_reading_that_is_too_long_and_grows() -> None:
    """The words follow the data in the other direction, and a right reading has no mark."""
    grows = WRONG | {"reading_s": [6e-2, 1e-5, 1e-5, 1e-5]}
    figure = plots.reading_and_work(pd.DataFrame(grows), source="virtual")
    assert "The stopwatch reads 6,000 times as much" in figure.title
    assert "3.0 times\ntoo much" in texts(figure.canvas.axes[0])
    right = plots.reading_and_work(WRONG | {"reading_s": WRONG["gpu_s"]}, source="virtual")
    assert not any("too" in text for text in texts(right.canvas.axes[0]))


def test_lines_that_wait() -> None:
    """The limit is in the largest gap; the bars of both sides have names and numbers."""
    seen = {"a": 21e-3, "b": 1e-7, "c": 15e-6, "d": 12e-3}
    assert plots.host_times(seen, source="virtual").title == (
        "2 of 4 lines wait for the GPU (virtual)"
    )
    ax = plots.host_times(pd.Series(seen), Canvas().add_subplot())
    assert [label.get_text() for label in ax.get_yticklabels()] == [*"abcd"]
    assert ax.get_xlabel() == "time on the host (µs)"
    assert [bar.get_width() / 1e6 for bar in ax.patches] == pytest.approx([*seen.values()])
    assert texts(ax) == [
        *["21.0 ms", "100 ns", "15.0 µs", "12.0 ms", "← returned at once", "waited →"]
    ]


@pytest.mark.parametrize(
    ("seen", "title"),
    [
        ({"a": 1e-5, "b": 2e-5}, "None of 2 lines wait for the GPU"),
        ({"a": 1e-5, "b": 2e-2}, "1 of 2 lines waits for the GPU"),
    ],
)
def test_the_title_counts_the_waits(seen: dict[str, float], title: str) -> None:
    """Times of one size show no wait."""
    assert plots.host_times(seen, source="virtual").title == f"{title} (virtual)"


def test_a_jump_is_found_and_marked() -> None:
    """The first of many higher readings is marked; a single long one is no jump."""
    short = [9e-5] + [4e-6] * 35 + [7e-6] + [9e-6] * 63
    seen = {"short kernel": short, "long kernel": [20e-6] + [17e-6] * 49}
    figure = plots.readings_in_order(seen, what="pair", before="ahead", source="virtual")
    assert figure.title == "The short kernel jumps at pair 37, the long kernel stays (virtual)"
    assert texts(figure.canvas.axes[0]) == ["short kernel", "long kernel", "← ahead"]
    assert figure.caption == (
        "short kernel: the first 4.00 µs, the last 9.00 µs (medians of 10).\n"
        "long kernel: the first 17.0 µs, the last 17.0 µs (medians of 10)."
    )


def test_words_before_a_jump_need_room() -> None:
    """Words that would leave the axes at the left are not written."""
    seen = {"a": [4e-6] * 12 + [9e-6] * 88}
    figure = plots.readings_in_order(seen, before="the queue is full", after="b", source="virtual")
    assert texts(figure.canvas.axes[0]) == ["a", "b →"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plots.reading_and_work({"n": [1]}),
            "the frame has no column reading_s, gpu_s; it must have n, reading_s, gpu_s",
        ),
        (
            lambda: plots.reading_and_work({"n": [1], "reading_s": [0], "gpu_s": [1]}),
            "reading_s[0]=0; it must be a finite number above 0",
        ),
        (
            lambda: plots.host_times([1]),
            "record=[1]; it must be seconds by name, such as {'x @ x': 2e-5}",
        ),
        (lambda: plots.host_times({}), "record={} has no lines; there is nothing to draw"),
        (
            lambda: plots.readings_in_order({"a": []}),
            "record={'a': []} is empty, or a list in it is; give lists of seconds by name",
        ),
        (
            lambda: plots.readings_in_order([1.0]),  # type: ignore[arg-type]  # on purpose
            "record=[1.0]; give lists of seconds by name",
        ),
        (
            lambda: plots.reading_and_work({"n": [1, 2], "reading_s": [1.0], "gpu_s": [1.0]}),
            (
                "record={'gpu_s': [1.0], 'n': [1, 2], 'reading_s': [1.0]}; n, reading_s and gpu_s "
                "must be lists of the same length"
            ),
        ),
        (
            lambda: plots.readings_in_order({"a": [1.0]}, what=3),
            "what=3; it must be a text",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused(call: object, message: str) -> None:
    """The message says what is wrong and what is needed."""
    with pytest.raises(InvalidOptionError) as error:
        call()  # type: ignore[operator]  # a function
    assert str(error.value) == message


def test_a_series_may_have_the_name_of_the_axis() -> None:
    """What is counted and what is read may have one name; other columns of a frame may be text."""
    figure = plots.readings_in_order({"reading": [1e-6, 2e-6]}, what="reading", source="virtual")
    assert figure.title.startswith("The reading stays")
    other = pd.DataFrame({"x": list("abcd"), **WRONG})
    assert plots.reading_and_work(other, source="virtual").title


class Raising:
    """An object of the user's own, each of whose attributes raises."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


@pytest.mark.parametrize("call", [plots.readings_in_order, plots.host_times])
def test_attributes_that_raise_are_not_asked_for(call: Callable[[object], object]) -> None:
    """The object is refused by its name."""
    with pytest.raises(InvalidOptionError, match=r"record=<.* object at"):
        call(Raising())
