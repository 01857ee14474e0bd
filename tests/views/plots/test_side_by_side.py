"""Timelines of several programs on one axis of time: what differs is the title."""

import pytest

from gpulab import plots
from gpulab.core.errors import InvalidOptionError
from gpulab.tracing import Span, Timeline
from tests.support.spans import host, mark, work

pytestmark = pytest.mark.usefixtures("no_pixels")


def program(*spans: Span) -> Timeline:
    """Return the timeline of a program on a virtual H200."""
    return Timeline(spans, "virtual", "NVIDIA H200")


def launched(n_calls: int) -> Timeline:
    """Return launches of 10 µs, each with a kernel of 5 µs, which ends with the last one."""
    calls = [host("launch", 10 * n, 10 * n + 10, n) for n in range(n_calls)]
    works = [work(10 * n + 5, 10 * n + 10, 0, n) for n in range(n_calls)]
    return program(*calls, *works)


def copied(*copies: tuple[float, float]) -> Timeline:
    """Return copies, and a kernel from 40 to 80 µs."""
    spans = [work(*ends, 1, n, engine="copy in", name="HtoD") for n, ends in enumerate(copies)]
    return program(host("launch", 0, 5, 0), *spans, work(40, 80, 0, 9, name="mm"))


def test_without_copies_the_title_compares_the_times() -> None:
    """The title has the ratio of the longest to the shortest program."""
    figure = plots.side_by_side({"ten launches": launched(10), "one replay": launched(1)})
    assert figure.title == "ten launches: 10 times as long as one replay (virtual NVIDIA H200)"
    assert figure.caption.splitlines() == [
        "ten launches: 100 µs, 10 calls that launch, 10 kernels.",
        "one replay: 10.0 µs, 1 call that launches, 1 kernel.",
    ]
    same = plots.side_by_side({"a": launched(2), "b": launched(2)})
    assert same.title.startswith("All programs take the same time")


def test_with_copies_the_title_has_the_overlap() -> None:
    """The title has the programs whose kernels run during copies; copies may overlap, too."""
    before, half, two = copied((5, 40)), copied((20, 60)), copied((30, 60), (50, 70))

    def finding(**programs: Timeline) -> str:
        return plots.side_by_side(programs).title.partition(" (virtual")[0]

    during = "Kernels run during a copy"
    assert (
        finding(before=before, half=half, two=two) == f"{during} only in: half (50 %), two (75 %)"
    )
    assert finding(half=half, two=two) == f"{during} in: half (50 %), two (75 %)"
    assert finding(before=before) == "No kernel runs during a copy"


def test_each_program_has_the_rows_that_it_needs() -> None:
    """A program without copies has no row for them, and programs stand apart."""
    figure = plots.side_by_side({"one": launched(1), "two": copied((5, 40))})
    (ax,) = figure.canvas.axes
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        *("one: host", "one: kernels", "two: host", "two: copies", "two: kernels"),
    ]
    assert ax.get_yticks().tolist() == [0, 1, 3, 4, 5]
    # Only kernels have names of their own.
    assert [text.get_text() for text in ax.texts] == ["launch", "copy", "mm"]


def test_the_wait_of_a_stream_is_no_time_of_the_host() -> None:
    """A stream that waits has no bar in the row of the host."""
    waiting = program(host("launch", 0, 5, 0), mark("wait", 10, 60, 7, 3), work(60, 80, 7, 0))
    (ax,) = plots.side_by_side({"one": waiting}).canvas.axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["launch", "kernel"]


def test_programs_without_length_are_alike() -> None:
    """Kernels that take no time give no ratio and no share."""
    still = program(work(0, 0, 0, 1), work(0, 0, 1, 2, engine="copy in"))
    figure = plots.side_by_side({"a": still, "b": still})
    assert figure.title.startswith("All programs take the same time")


def test_a_program_without_work_is_named() -> None:
    """There is nothing to draw of it."""
    for record, name in (({}, "record"), ({"one": launched(1), "two": program()}, "two")):
        with pytest.raises(
            InvalidOptionError, match=f"^{name} has no launches, copies or kernels"
        ):
            plots.side_by_side(record)
