"""Plots draw the recorded values, read back from matplotlib's artists, and describe them."""

import html
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab import plots
from gpulab.core import palette
from gpulab.core.errors import InvalidOptionError
from gpulab.device.measurement import Measurement
from gpulab.figures import provenance
from gpulab.figures._figure import MAX_TABLE_ROWS
from gpulab.roofline import ceilings
from gpulab.tracing import Span, Timeline
from tests.support.conditions import HERE

pytestmark = pytest.mark.usefixtures("no_pixels")

SAMPLES_S = tuple((20 + step / 10) * 1e-6 for step in range(41))
EVENTS = Measurement(SAMPLES_S, "events", "virtual", HERE)
NAIVE = replace(EVENTS, method="naive", samples_s=tuple(s / 4 for s in SAMPLES_S))
SIZES = pd.DataFrame(
    [
        (64, 12e-6, "naive"),
        (8192, 14e-6, "naive"),
        (8192, 22e-3, "waited <for>"),
        (64, 18e-6, "waited <for>"),
    ],
    columns=["size", "duration_s", "series"],
)
QUEUE = Timeline(
    (
        Span("launch", "a", "host", 1e-3, 1.01e-3),
        Span("wait", "synchronize", "host", 1.01e-3, 1.1e-3),
        Span("kernel", "matmul", "stream 0", 1.02e-3, 1.09e-3, 0),
    ),
    "virtual",
    "NVIDIA H200",
)
NO_SPANS = Timeline((), "virtual", "NVIDIA H200")
NO_COLUMNS = "the frame has no column size, series; it must have size, duration_s, series"
NOT_DRAWABLE = (
    "record=3 cannot be drawn; give a Measurement, a Timeline, a frame, or a list of these"
)
CALLS_S = [5e-6] * 20 + [1e-3]


@dataclass(frozen=True)
class Card:
    """A device with a source and a name."""

    source: str
    name: str


CARD = Card("virtual", "NVIDIA H200")


@pytest.fixture
def ax() -> Axes:
    """Return axes of a figure that pyplot does not manage."""
    return Canvas(figsize=(6.4, 4)).add_subplot()


def texts(ax: Axes) -> list[str]:
    """Return the texts inside the axes."""
    return [text.get_text() for text in ax.texts]


@pytest.mark.slow
@pytest.mark.pixels
def test_a_figure_is_small_and_has_a_text_alternative() -> None:
    """A figure's HTML has picture, description, caption and data in less than 150 kB."""
    figure = plots.draw(plots.scaling, SIZES, title="A plot", alt="It rises.", source=CARD)
    page = figure._repr_html_()
    assert len(page) < 150_000
    assert figure.title == "A plot (virtual NVIDIA H200)"
    assert figure.description.endswith(" It rises.")
    assert ": A plot (virtual NVIDIA H200). The x axis shows " in figure.description
    # role="img" on the whole figure would hide its caption from a screen reader.
    assert page.startswith('<figure class="gpulab-figure" style="margin:0"><img ')
    assert f'alt="{html.escape(figure.description)}"' in page
    assert "<figcaption><p>It rises.</p></figcaption>" in page
    assert "<details><summary>Data</summary><table" in page
    assert str(figure) == repr(figure) == figure.description
    assert figure._repr_mimebundle_() == {"text/html": page, "text/plain": figure.description}


def test_samples_are_drawn_in_order_with_median_and_interval(ax: Axes) -> None:
    """Point n is sample n, the line is the median, and the band is its interval."""
    plots.samples(EVENTS, ax)
    points, line = ax.lines
    expected = np.column_stack([np.arange(1, 42), np.array(SAMPLES_S) * 1e6])
    assert points.get_xydata() == pytest.approx(expected)
    assert line.get_ydata() == pytest.approx([EVENTS.median_s * 1e6] * 2)
    band = ax.patches[0].get_extents().transformed(ax.transData.inverted())
    assert band.intervaly == pytest.approx(np.array(EVENTS.interval_s) * 1e6)


def test_methods_are_rows_with_interval_and_text(ax: Axes) -> None:
    """Each row has a name, a point at the median, and bars to the ends of the interval."""
    plots.compare_methods([EVENTS, NAIVE], ax)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["events", "naive"]
    assert ax.get_xscale() == "log"
    for row, (bars, item) in enumerate(zip(ax.containers, (EVENTS, NAIVE), strict=True)):
        point, _, (interval,) = bars.lines
        assert point.get_xydata()[0] == pytest.approx([item.median_s * 1e6, row])
        ends = interval.get_segments()[0][:, 0]
        assert ends == pytest.approx(np.array(item.interval_s) * 1e6)
    assert texts(ax) == ["22.0 µs [21.3, 22.7]", "5.50 µs [5.33, 5.67]"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1], "the first row must be at the top"


def test_methods_that_differ_little_begin_at_zero(ax: Axes) -> None:
    """Below a factor of three, lengths from zero compare as the times do."""
    near = replace(NAIVE, samples_s=tuple(2.9 * sample_s for sample_s in NAIVE.samples_s))
    plots.compare_methods([near, NAIVE], ax)
    assert (ax.get_xscale(), ax.get_xlim()[0]) == ("linear", 0)
    ends = [bars.get_segments()[0][:, 0] for bars in ax.collections]
    first, second = (end for start, end in ends if start == 0)
    assert first / second == pytest.approx(2.9)


def test_the_label_says_the_state_of_a_cache_that_the_work_set_up(ax: Axes) -> None:
    """A row has the colour of the cache that its label begins with, or that gpulab set up."""
    hot, cold = (
        replace(NAIVE, label=label, conditions=replace(NAIVE.conditions, cache="hot"))
        for label in ("pause, cold", "cold, paused")
    )
    plots.compare_methods([hot, cold], ax)
    colours = [bars.lines[0].get_color() for bars in ax.containers]
    assert colours == [palette.ROLES[name].colour.light for name in ("hot", "cold")]


@pytest.mark.parametrize(
    ("factor", "ticks"), [(1.5, ["20"]), (0.25, ["5", "10", "20"]), (1e-3, ["0.1", "1", "10"])]
)
def test_log_axes_have_plain_numbers_at_enough_ticks(
    factor: float, ticks: list[str], ax: Axes
) -> None:
    """Ticks are powers of ten, or 1, 2 and 5 times those if few fit; they have no exponents."""
    other = replace(NAIVE, samples_s=tuple(sample_s * factor for sample_s in SAMPLES_S))
    plots.compare_methods([EVENTS, other], ax)
    low, high = ax.get_xlim()
    shown = [
        text.get_text()
        for place, text in zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        if low <= place <= high
    ]
    assert set(ticks) <= set(shown)
    assert ("20" in shown) == ("20" in ticks)


def test_scaling_sorts_each_series_by_size(ax: Axes) -> None:
    """Each series is one line from small to large sizes, on log axes with sizes as ticks."""
    plots.scaling(SIZES, ax, size_label="n")
    naive, waited = ax.lines
    assert naive.get_xydata() == pytest.approx(np.array([[64, 12], [8192, 14]]))
    assert waited.get_xydata() == pytest.approx(np.array([[64, 18], [8192, 22_000]]))
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", "n")
    assert list(ax.get_xticks()) == [64, 8192]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["64", "8,192"]
    assert naive.get_marker() != waited.get_marker()


def test_many_sizes_get_plain_ticks(ax: Axes) -> None:
    """If not all sizes fit below the axis, every second one has a tick."""
    sizes = [2**step for step in range(23)]
    plots.scaling(pd.DataFrame({"size": sizes, "duration_s": 1e-6, "series": "a"}), ax)
    assert list(ax.get_xticks()) == sizes[::2]


def test_call_times_count_from_one(ax: Axes) -> None:
    """Point n is call n."""
    plots.call_times(CALLS_S, ax)
    (points,) = ax.lines
    assert points.get_xydata()[-1] == pytest.approx([21, 1000])
    assert ax.get_yscale() == "log"


def test_timeline_of_moments_can_be_drawn(ax: Axes) -> None:
    """A timeline that contains one event, and so has no length, can be drawn."""
    plots.timeline(replace(QUEUE, spans=(Span("event", "e", "host", 1.0, 1.0),)), ax)
    assert ax.get_xlim() == (-0.01, 1.01)


def test_a_timeline_shows_when_the_gpu_is_idle_unless_it_has_another_title() -> None:
    """Its own title says how busy the GPU is, and the row shows when it is not."""
    lanes = []
    for title in (None, "Mine"):
        (ax,) = plots.timeline(QUEUE, title=title).canvas.axes
        lanes.append(ax.get_yticklabels()[-1].get_text())
    assert lanes == ["GPU idle: 30.0 µs", "stream 0"]


def test_description_is_complete() -> None:
    """The description has kind, title, source, axes with unit and range, series and caption."""
    figure = plots.draw(plots.scaling, SIZES, title="Two lines", alt=" One is flat. ", source=CARD)
    assert figure.description == (
        "Line chart: Two lines (virtual NVIDIA H200). The x axis shows size, from 64 to 8,192, "
        "logarithmic. The y axis shows time per call (µs), from 12 to 22,000, logarithmic. "
        "Series: naive, waited <for>. One is flat."
    )


def test_the_description_of_an_axis_without_a_label_has_its_range() -> None:
    """Numbers at the ticks are described as a range, not as names of rows."""
    figure = plots.draw(
        lambda record, ax: ax.plot(record), [-1, 2.5], title="A", alt="B", source="x"
    )
    assert "The y axis shows numbers, from -1 to 2.5." in figure.description


def test_any_function_of_record_and_axes_can_be_drawn() -> None:
    """A function that sets no label and returns nothing can be drawn and described."""

    def bare(record: list[float], ax: Axes) -> None:
        ax.plot(record)
        ax.set_xticks([0, 1], ["first", "second"])
        ax.set_yticks([])

    figure = plots.draw(bare, [1e-6, 2e-6], title="Mine", alt="Rises.", source="virtual T4")
    rows = "The x axis has the rows first, second."
    assert figure.description == f"Plot: Mine (virtual T4). {rows} Rises."


def test_long_titles_put_the_source_on_a_line_of_its_own() -> None:
    """The source of a title that is too long is on the next line, and a $ begins no formula."""
    title = "A title of $N$ words that is rather long for the width of one figure"
    drawn = []
    figure = plots.draw(lambda _, ax: drawn.append(ax), EVENTS, title=title, alt="B")
    assert f"Plot: {title} (virtual NVIDIA H200). " in figure.description
    assert drawn[0].get_title() == f"{title}\n(virtual NVIDIA H200)"
    assert figure.title == f"{title} (virtual NVIDIA H200)"
    assert not drawn[0].title.get_parse_math()


@pytest.mark.slow
def test_long_tables_are_cut_and_say_so() -> None:
    """The page shows the first hundred rows, and the frame has all."""
    times_s = [1e-6] * (MAX_TABLE_ROWS + 900)
    figure = plots.draw(plots.call_times, times_s, title="A", alt="B", source=CARD)
    page = figure._repr_html_()
    assert "<p>The first 100 of 1,000 rows.</p>" in page
    assert page.count("<tr>") == MAX_TABLE_ROWS
    assert len(figure.frame) == 1000


@pytest.mark.parametrize(
    ("record", "source", "words"),
    [
        (EVENTS, None, "virtual NVIDIA H200"),
        (replace(EVENTS, source="measured"), None, "measured on NVIDIA H200"),
        (QUEUE, None, "virtual NVIDIA H200"),
        ([EVENTS, NAIVE], None, "virtual NVIDIA H200"),
        (
            [EVENTS, replace(NAIVE, source="recorded")],
            None,
            "recorded on NVIDIA H200 and virtual NVIDIA H200",
        ),
        (EVENTS.to_frame(), None, "virtual NVIDIA H200"),
        (CALLS_S, Card("measured", "Tesla T4"), "measured on Tesla T4"),
        (CALLS_S, " recorded on NVIDIA H200 ", "recorded on NVIDIA H200"),
        (ceilings("H200").to_frame(), None, "data sheet of NVIDIA H200"),
    ],
)
def test_numbers_name_their_source(record: object, source: object, words: str) -> None:
    """The source comes from the record, or from ``source=``."""
    assert provenance(record, source) == words


@pytest.mark.parametrize(
    ("record", "kind"),
    [(CALLS_S, "list"), (SIZES, "DataFrame"), ([EVENTS, 1.0], "list"), ([], "list")],
)
def test_numbers_without_a_source_are_not_drawn(record: object, kind: str) -> None:
    """Numbers without a source are refused, and the message says how to give one."""
    with pytest.raises(InvalidOptionError) as error:
        provenance(record)
    assert str(error.value) == (
        f"{kind} does not say where its numbers come from; pass source=gpulab.device.current() "
        "or text such as source='recorded on NVIDIA H200'"
    )


@pytest.mark.parametrize(
    ("plot", "record", "message"),
    [
        (plots.samples, [], "record=[] has no measurements; give at least one"),
        (plots.scaling, SIZES.drop(columns=["size", "series"]), NO_COLUMNS),
        (plots.scaling, SIZES.iloc[:0], "the frame has no rows; there is nothing to draw"),
        (plots.call_times, 3, NOT_DRAWABLE),
    ],
)
def test_unusable_records_are_refused(
    plot: Callable[..., Axes], record: object, message: str, ax: Axes
) -> None:
    """The message names what the record lacks."""
    with pytest.raises(InvalidOptionError) as error:
        plot(record, ax)
    assert str(error.value) == message


def test_the_longest_call_is_marked_only_if_it_stands_out() -> None:
    """Its time is written at its point if it is more than twice the median."""
    far, alike = plots.call_times([5e-6, 5e-6, 9e-4, 5e-6]), plots.call_times([5e-6, 6e-6, 9e-6])
    assert far.title.startswith("The longest call takes 180 times as long as the median (")
    (mark,) = far.canvas.axes[0].texts
    assert (mark.get_text(), mark.xy[0]) == ("the longest: 900 µs", 3)
    assert alike.title.startswith("No call takes more than 2 times the median (")
    assert not alike.canvas.axes[0].texts
