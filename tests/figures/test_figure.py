"""Figures as SVG: colours of both themes, the width of the page, and readable labels."""

import gc
import re
import xml.etree.ElementTree as ET  # it parses only pictures that these tests draw
from urllib.parse import unquote

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from gpulab import figures, plots
from gpulab.core import palette
from gpulab.device.measurement import Measurement
from gpulab.figures import _line_names
from tests.support.conditions import HERE


def drawn() -> figures.Figure:
    """Return a figure of two series."""
    frame = pd.DataFrame(
        [(size, size * 1e-6, name) for name in ("cold", "hot") for size in (1, 2, 4)],
        columns=["size", "duration_s", "series"],
    )
    frame = frame.assign(source="virtual", device_name="NVIDIA H200")
    return plots.draw(plots.scaling, frame, title="A", alt="First.\nSecond.")


def test_the_picture_has_both_themes() -> None:
    """Each colour of the palette is a CSS variable that the dark theme sets to its dark shade."""
    svg = drawn().svg
    ET.fromstring(svg)  # our own picture
    light, dark = palette.ROLES["cold"].colour
    style = re.search("<style>(.*?)</style>", svg)
    assert style is not None
    first, second = style[1].split("@media (prefers-color-scheme: dark)")
    assert f"--c{light[1:]}:{light}" in first
    assert f"--c{light[1:]}:{dark}" in second
    assert light not in svg.replace(style[0], "")


def test_equal_pictures_are_one_text() -> None:
    """Two figures of the same data take the memory of one in a kernel that keeps both outputs."""
    first, second = (drawn()._repr_html_() for _ in range(2))
    assert first is second


def test_the_page_shows_it_as_wide_as_the_cell() -> None:
    """It fits into cell and window, follows the theme, and has a line for each sentence."""
    shown = drawn()
    page = shown._repr_html_()
    source = re.search(r'src="data:image/svg\+xml,([^"]+)"', page)
    assert source is not None
    assert unquote(source[1]) == shown.svg.replace('"', "'")
    ET.fromstring(unquote(source[1]))  # our own picture
    assert "width:100%" in page
    shape = shown.canvas.get_figwidth() / shown.canvas.get_figheight()
    assert f"max-width:max({shown.width_px}px, {85 * shape:.0f}vh)" in page
    assert '[data-jp-theme-light="false"] .gpulab-figure{color-scheme:dark}' in page
    assert "<figcaption><p>First.</p><p>Second.</p></figcaption>" in page


def test_series_are_named_where_their_lines_end() -> None:
    """Names stand at the ends of their lines in the same colour, and near names move apart."""
    with figures.style():
        ax = Canvas().add_subplot()
        for name, end in (("cold", 1.0), ("hot", 1.001)):
            ax.plot([1, 2], [0, end], color=figures.look_of(name).colour, label=name)
        figures.finish(ax, "Line chart", "x", "y")
    assert ax.get_legend() is None
    names = {text.get_text(): text for text in ax.texts}
    assert {text.get_color() for text in ax.texts} == {
        figures.look_of(name).colour for name in names
    }
    heights = [names[name].xyann[1] for name in ("cold", "hot")]  # type: ignore[attr-defined]  # annotations have it
    assert heights[1] - heights[0] > 0.03
    assert all(text.arrow_patch for text in ax.texts)  # type: ignore[attr-defined]  # as above


@pytest.mark.parametrize(
    ("wanted", "sizes", "placed"),
    [
        ([], [], []),
        ([0.2, 0.8], [0.1, 0.1], [0.2, 0.8]),
        ([0.5, 0.5], [0.1, 0.1], [0.45, 0.55]),
        ([0.5, 0.5, 0.9], [0.1, 0.3, 0.1], [0.4, 0.6, 0.9]),
        ([0.95, 1.2], [0.1, 0.1], [0.9, 1.0]),
        ([-0.3, 0.0], [0.1, 0.1], [0.0, 0.1]),
    ],
)
def test_near_names_move_apart_inside_the_axes(
    wanted: list[float], sizes: list[float], placed: list[float]
) -> None:
    """Names keep their order and a distance, move equally far, and none leaves the axes."""
    assert _line_names.apart(wanted, sizes) == pytest.approx(placed)


def test_a_legend_is_used_where_names_do_not_fit() -> None:
    """A name that is too long for the end of its line leads to a legend."""
    ax = Canvas().add_subplot()
    for name in ("a", "b" * 60):
        ax.plot([1, 2], [1, 2], label=name)
    figures.finish(ax, "Line chart", "x", "y")
    assert ax.get_legend() is not None
    assert not ax.texts


@pytest.mark.parametrize(
    ("source", "is_filled", "dashes"),
    [("measured", True, "-"), ("recorded", False, "-"), ("virtual", True, "--")],
)
def test_sources_differ_in_fill_and_dashes(source: str, is_filled: bool, dashes: str) -> None:  # noqa: FBT001  # a case
    """Measured is filled, recorded outlined, and virtual dashed, or hatched for bars."""
    look = figures.look_of("GPU")
    line, bar = figures.marks(look, source), figures.bar_marks(look, source)
    assert (line["markerfacecolor"] == look.colour) == is_filled
    assert line["linestyle"] == dashes
    assert (bar["facecolor"] == look.colour) == is_filled
    assert bool(bar.get("hatch")) == (source == "virtual")


def test_a_given_source_marks_numbers_without_one() -> None:
    """Numbers of a frame without a source get the marks of the given device."""
    frame = pd.DataFrame({"size": [1, 2], "duration_s": [1.0, 2.0], "series": "a"})
    device = type("Device", (), {"source": "virtual", "name": "T4"})()
    canvas = plots.draw(plots.scaling, frame, title="A", alt="B", source=device).canvas
    assert canvas.axes[0].lines[0].get_linestyle() == "--"
    assert figures.source_of(frame) == "measured"


@pytest.mark.slow
def test_many_marks_become_pixels() -> None:
    """A plot with thousands of marks has them as an image, so that the page stays small."""
    times_s = [1e-6] * 2_500
    few, many = (
        plots.draw(plots.call_times, times_s[:n], title="A", alt="B", source="a T4").svg
        for n in (20, 2_500)
    )
    assert "<image" not in few
    assert "<image" in many
    assert len(many) < 200_000


@pytest.mark.pixels
def test_no_text_is_smaller_than_can_be_read() -> None:
    """In a cell 820 pixels wide, as in a window of 1,280, all text has at least 12 pixels."""
    shown = drawn()
    texts = [text for ax in shown.canvas.axes for text in ax.findobj(match=_is_text)]
    scale = 100 / 72 * 820 / shown.width_px
    small = [text.get_text() for text in texts if text.get_fontsize() * scale < 12]  # type: ignore[attr-defined]  # texts have it
    assert not small


def _is_text(artist: object) -> bool:
    return hasattr(artist, "get_fontsize") and bool(getattr(artist, "get_text", str)())


def test_a_shown_figure_is_packed_and_drawn_again_the_same() -> None:
    """Its ticks have texts of our own, which must be functions of a module."""
    sizes, times_s = [64, 4096, 2**20], [1e-6, 2e-5, 7e-4]
    frame = pd.DataFrame({"size": sizes, "duration_s": times_s, "series": "add"})
    figure = plots.scaling(frame, source="virtual")
    shown = figure._repr_mimebundle_()
    packed = figure.picture
    assert packed._live is None
    gc.collect()
    assert packed._find() is None  # the bytes alone are left
    assert figure._repr_mimebundle_() == shown


def test_a_lent_canvas_keeps_what_its_holder_changes() -> None:
    """It is not packed."""
    frame = pd.DataFrame({"n": [1, 2], "time_us": [3, 5]})
    figure = plots.line(frame, title="T", source="virtual")
    canvas = figure.canvas
    first = figure._repr_mimebundle_()
    canvas.axes[0].set_title("Mine")
    del canvas
    gc.collect()
    assert figure._repr_mimebundle_() != first
    assert figure.canvas.axes[0].get_title() == "Mine"


def test_axes_that_a_plot_function_kept_still_change_the_figure() -> None:
    """As long as the axes exist."""
    kept = []

    def mine(record: list[float], ax: Axes) -> Axes:
        kept.append(ax)
        ax.plot(record)
        return ax

    figure = plots.draw(mine, [1.0, 2.0], title="T", alt="Two numbers.", source="virtual")
    first = figure._repr_mimebundle_()
    gc.collect()
    kept[0].set_xlabel("mine")
    assert figure._repr_mimebundle_() != first


def test_a_figure_that_cannot_be_pickled_stays_as_it_is() -> None:
    """A formatter of the program's own may be a function that has no name."""

    def mine(record: list[float], ax: Axes) -> Axes:
        ax.plot(record)
        ax.xaxis.set_major_formatter(lambda value, _: f"{value} apples")
        return ax

    figure = plots.draw(mine, [1.0, 2.0], title="T", alt="Two numbers.", source="virtual")
    shown = figure._repr_mimebundle_()
    gc.collect()
    assert figure._repr_mimebundle_() == shown
    assert "apples" in {t.get_text().split()[-1] for t in figure.canvas.axes[0].get_xticklabels()}


def test_frames_keep_the_order_of_the_samples() -> None:
    """The frame of several measurements has their samples in order."""
    samples_s = tuple((20 + step / 10) * 1e-6 for step in range(41))
    events = Measurement(samples_s, "events", "virtual", HERE)
    naive = Measurement(samples_s, "naive", "virtual", HERE)
    frame = figures.frame_of([events, naive])
    assert list(frame["method"].unique()) == ["events", "naive"]
    assert tuple(frame["duration_s"][:41]) == samples_s
    assert list(frame.index) == list(range(82))
