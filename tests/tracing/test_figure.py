"""The static picture has the lanes, arrows and series of the widget, and a description."""

from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab.core.errors import InvalidOptionError
from gpulab.figures import Figure
from gpulab.tracing import Timeline
from gpulab.tracing._counters import CounterSeries
from gpulab.tracing._figure import MAX_ARROWS, timeline_plot
from gpulab.tracing._spans import Span
from gpulab.views.plots import timeline
from tests.support.spans import US, host, mark, work

SHOWN = Timeline(
    (
        host("launch", 100, 110, 1),
        work(115, 180, 0, 1, name="matmul"),
        mark("event", 180, 180, 0, 2),
        mark("wait", 130, 180, 7, 3, waits_for=2),
        host("wait", 110, 190, 4, waits_for=1),
        host("host", 190, 191, 2),
    ),
    "virtual",
    "NVIDIA H200",
    (CounterSeries("memory", "B", 0, (0.0, 150 * US), (1024.0, 512.0)),),
)


def draw_timeline(record: Timeline, **options: str) -> Figure:
    """Return the figure of a timeline, with the series below its lanes."""
    marks_idle = "title" not in options
    return timeline_plot(record, marks_idle=marks_idle).figure(**options)  # type: ignore[arg-type]  # texts


@pytest.fixture
def ax() -> Axes:
    """Return axes of a figure that is not shown."""
    return Canvas().add_subplot()


def rows(ax: Axes) -> list[str]:
    """Return the labels of the rows."""
    return [tick.get_text() for tick in ax.get_yticklabels()]


def test_a_pair_of_events_has_a_row_with_what_it_reads() -> None:
    """Events that nothing waits for are pairs, and a row shows what each of them reads."""
    pair = (mark("event", 110, 110, 0, 8), mark("event", 185, 185, 0, 9))
    figure = draw_timeline(replace(SHOWN, spans=(*SHOWN.spans, *pair)))
    (ax,) = figure.canvas.axes
    assert rows(ax)[3] == "between events"
    assert "start to end: 75.0 µs" in [text.get_text() for text in ax.texts]
    assert "Two events on stream 0 are 75.0 µs apart." in figure.caption
    assert figure.title.startswith("Two events 75.0 µs apart; the GPU works for 65.0 µs of it")
    many = tuple(mark("event", at, at, 0, 20 + at) for at in range(110, 130))
    assert "between events" not in rows(
        draw_timeline(replace(SHOWN, spans=(*SHOWN.spans, *many))).canvas.axes[0]
    )


def test_a_short_time_between_events_is_written_beside_its_mark(ax: Axes) -> None:
    """The row of events has its time where its bar is too narrow for it, inside the picture."""
    for begin, side in ((110, "left"), (188, "right")):
        pair = (mark("event", begin, begin, 0, 8), mark("event", begin + 1, begin + 1, 0, 9))
        ax.clear()
        timeline(replace(SHOWN, spans=(*SHOWN.spans, *pair)), ax)
        (text,) = [each for each in ax.texts if "start to end" in each.get_text()]
        assert text.get_ha() == side


def test_a_row_shows_when_the_gpu_is_idle(ax: Axes) -> None:
    """Its marks are all times without work; a title of one's own is about something else."""
    spans = (host("launch", 0, 10, 1), work(20, 30, 0, 1), work(30, 60), host("wait", 60, 100))
    shown = Timeline(spans, "virtual", "NVIDIA H200")
    (drawn,) = draw_timeline(shown).canvas.axes
    assert rows(drawn) == ["host", "stream 0", "GPU idle: 60.0 µs"]
    (level,) = timeline_plot(shown, has_series=False).lanes.levels
    marked = [time_s for time_s, share in level.points if share]
    assert marked == pytest.approx([0, 20 * US, 60 * US, 100 * US])
    (titled,) = draw_timeline(shown, title="A title").canvas.axes
    assert rows(titled) == rows(timeline(shown, ax)) == ["host", "stream 0"]
    assert draw_timeline(shown).title.startswith("The GPU is busy 40 % of 100 µs")


def test_names_of_the_reader(ax: Axes) -> None:
    """Launches get names in their order, and their kernels the same; short names always fit."""
    launches = tuple(host("launch", 3 * n, 3 * n + 3, n) for n in range(4))
    works = tuple(work(20 + 20 * n, 40 + 20 * n, 0, n, name="mm") for n in range(4))
    record = Timeline((*works, *launches), "virtual", "NVIDIA H200")

    def names(given: str) -> list[str]:
        ax.clear()
        timeline(record, ax, names=given)
        return [text.get_text() for text in ax.texts if text.get_text()]

    assert names("ABCD") == [*"ABCD"] * 2
    # One call of PyTorch may launch two kernels.
    assert names("AB") == [*"AABB"] * 2
    assert "A" not in names("ABC")


def test_the_title_says_how_far_the_host_is_ahead() -> None:
    """With several launches, the title compares the last launch with the work that is done."""
    launches = tuple(host("launch", 10 * n, 10 * n + 9, n) for n in range(3))
    works = tuple(work(10 + 20 * n, 30 + 20 * n, 0, n) for n in range(3))
    title = draw_timeline(Timeline((*launches, *works), "virtual", "NVIDIA H200")).title
    assert title == (
        "The host has launched all three; by then the GPU has finished none (virtual NVIDIA H200)"
    )
    waited = tuple(replace(each, start_s=0.0, end_s=US) for each in works)
    title = draw_timeline(Timeline((*launches, *waited), "virtual", "NVIDIA H200")).title
    assert title.startswith("The GPU is busy ")


def test_series_of_two_devices_are_named(ax: Axes) -> None:
    """With two devices, each series is named after its device."""
    both = (work(100, 110, 0, device=1), work(105, 110, 3, device=1))
    timeline_plot(replace(SHOWN, spans=(*SHOWN.spans, *both)), marks_idle=False).draw(ax)
    assert "cuda:1 compute (≤ 2)" in rows(ax)


def test_arrows(ax: Axes) -> None:
    """Arrows go from a launch to its work, and from what was awaited to the end of the wait."""
    timeline(SHOWN, ax)
    arrows = [text for text in ax.texts if text.get_text() == ""]
    ends = [(*text.xyann, *text.xy) for text in arrows]  # type: ignore[attr-defined]  # annotations
    assert ends == [
        pytest.approx((10, 0.35, 15, 0.65)),
        pytest.approx((80, 1.35, 80, 1.65)),
        pytest.approx((80, 0.65, 90, 0.35)),
    ]
    names = [text for text in ax.texts if text.get_text()]
    assert min(text.zorder for text in names) > max(text.zorder for text in arrows)


def test_too_many_arrows_are_left_out(ax: Axes) -> None:
    """Above the limit no arrow is drawn, and the description says so."""
    n = MAX_ARROWS + 1
    launches = [host("launch", 10 * i, 10 * i + 1, i) for i in range(n)]
    works = [work(10 * i + 2, 10 * i + 3, 0, i) for i in range(n)]
    shown = Timeline((*launches, *works), "virtual", "NVIDIA H200")
    timeline(shown, ax)
    assert [text for text in ax.texts if text.get_text() == ""] == []
    assert draw_timeline(shown).description.endswith(f"The {n} arrows are left out.")
    fewer = replace(shown, spans=tuple(launches[:-1] + works[:-1]))
    assert "left out" not in draw_timeline(fewer).description


def test_series_are_steps_up_to_their_greatest_value(ax: Axes) -> None:
    """A series is a step line that reaches to the end of the timeline."""
    timeline_plot(SHOWN, marks_idle=False).draw(ax)
    (path,) = ax.collections[-1].get_paths()
    box = path.get_extents()
    assert (box.y0, box.y1) == pytest.approx((2.6, 3.4))
    assert (box.x0, box.x1) == pytest.approx((-100, 91))


def test_picture_reads_as_text() -> None:
    """The description contains the summary, and the table has a row per span."""
    figure = draw_timeline(SHOWN)
    assert figure.title == "The GPU is busy 71 % of 91.0 µs (virtual NVIDIA H200)"
    assert str(SHOWN.summary()) in figure.description
    assert len(figure.frame) == len(SHOWN.spans)


def test_nothing_cannot_be_drawn(ax: Axes) -> None:
    """An empty timeline cannot be drawn."""
    for function in (lambda empty: timeline(empty, ax), draw_timeline):
        with pytest.raises(InvalidOptionError) as error:
            function(replace(SHOWN, spans=()))
        assert str(error.value) == "the timeline has no spans; there is nothing to draw"


def test_long_names_are_cut_where_they_are_drawn(ax: Axes) -> None:
    """Long names are cut in the picture, as matplotlib takes minutes; the table is complete."""
    long = "x" * 10_000
    record = replace(
        SHOWN,
        spans=(*SHOWN.spans, replace(SHOWN.spans[1], lane=long, name=long)),
        device_name=long,
        memory=(replace(SHOWN.memory[0], name=long),),
    )
    timeline(record, ax=ax)
    assert max(map(len, rows(ax))) == 60
    assert max(len(text.get_text()) for text in ax.texts) < 200
    drawn = draw_timeline(record, alt="words")
    assert len(drawn.title) < 200
    assert long in drawn.frame["name"].to_list()


def test_the_only_kernel_is_found_beside_long_copies() -> None:
    """One kernel that is too short for its name has a row with its name and its time."""
    copies = (work(5, 250, 0, 1, engine="copy in"), work(260, 500, 0, 3, engine="copy out"))
    short, long = work(252, 254, 0, 2, name="add"), work(252, 350, 0, 2, name="add")

    def drawn(*spans: Span) -> tuple[list[str], list[str]]:
        record = Timeline((host("launch", 0, 4, 2), *spans), "virtual", "NVIDIA H200")
        (ax,) = draw_timeline(record).canvas.axes
        return rows(ax), [text.get_text() for text in ax.texts if "add" in text.get_text()]

    assert drawn(*copies, short) == (["host", "stream 0", "the only kernel"], ["add: 2.00 µs"])
    assert drawn(*copies, long) == (["host", "stream 0", "GPU idle: 7.00 µs"], ["add"])
    both = drawn(*copies, short, work(256, 258, 0, 4, name="add"))[0]
    assert both == ["host", "stream 0", "GPU idle: 11.0 µs"]
