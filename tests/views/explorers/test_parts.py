"""The parts of explorers: renderer, legend, pace, controls and table."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from gpulab.core import palette
from gpulab.core.errors import InvalidOptionError
from gpulab.figures.widgets import JupyterLoop, _picture
from gpulab.views.explorers._controls import Controls
from gpulab.views.explorers._renderer import LegendEntry, Renderer, take_legend
from gpulab.views.explorers._scene import Marker, Scene, Selector, Spot, nearest
from gpulab.views.explorers._scheduling import Pace
from gpulab.views.explorers._table import table_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

P = ParamSpec("P")


def line(to: float, *, label: str = "rises", end: float = 10) -> "Callable[[Axes], object]":
    """Return a plotting function for a line from the origin, on axes from 0 to ``end``."""

    def plot(ax: "Axes") -> None:
        ax.plot([0, 10], [0, to], label=label)
        ax.set(xlim=(0, 10), ylim=(0, end), xlabel="n", ylabel="time (µs)")

    return plot


def pixels(png: bytes) -> Any:  # noqa: ANN401  # numpy's own
    """Return a picture as an array."""
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"), dtype=int)


@pytest.mark.slow
def test_a_reused_frame_gives_the_same_picture() -> None:
    """Drawing on the saved pixels of the axes gives the same picture as drawing everything."""
    kept, fresh = Renderer(), Renderer()
    for to in (2.0, 8.0):
        png = kept.draw(Scene(plot=line(to), title="T", key=to)).png
    assert np.array_equal(pixels(png), pixels(fresh.draw(Scene(plot=line(8.0), title="T")).png))


@pytest.mark.slow
def test_the_frame_is_drawn_again_when_it_differs() -> None:
    """Other limits or another title lead to a new frame."""
    frame = Renderer()
    first = frame.draw(Scene(plot=line(2.0), title="T")).png
    for scene in (
        Scene(plot=line(2.0, end=20), title="T"),
        Scene(plot=line(2.0), title="Another"),
    ):
        again = Renderer().draw(scene).png
        assert np.array_equal(pixels(frame.draw(scene).png), pixels(again))
        assert again != first


def test_scene_of_a_known_key_is_not_drawn() -> None:
    """A scene with a known key is not drawn again, and a scene without a key always is."""
    n_drawn = 0

    def plot(ax: "Axes") -> None:
        nonlocal n_drawn
        n_drawn += 1
        line(3.0)(ax)

    frame = Renderer()
    for key in ("a", "b", "a", None, None):
        frame.draw(Scene(plot=plot, title="T", key=key))
    assert n_drawn == 4


@pytest.mark.slow
def test_only_the_newest_pictures_are_kept() -> None:
    """The renderer keeps the 64 newest pictures, and none after ``close``."""
    frame = Renderer(width_px=100, height_px=100)
    for key in range(70):
        frame.draw(Scene(plot=line(3.0), key=key))
    assert list(frame._pictures) == list(range(6, 70))
    frame.close()
    assert not frame._pictures


def test_places_are_shares_of_the_picture() -> None:
    """Spots and markers have the relative places of their points; a line spans the axes."""
    frame = Renderer()
    scene = Scene(
        plot=line(10.0), title="T", spots=(Spot(5, 5, "here"),), markers=(Marker(5), Marker(5, 5))
    )
    drawn = frame.draw(scene)
    (x, y), (vertical, ring) = drawn.spots[0], drawn.markers
    assert ring == (x, y, y)
    assert vertical == (x, pytest.approx(0.13), pytest.approx(0.86))
    height, width, _ = pixels(drawn.png).shape
    nearby = pixels(drawn.png)[round(y * height) - 1 : round(y * height) + 2, round(x * width)]
    assert nearby.min() < 150  # the line goes through there


@pytest.mark.parametrize(("asked", "had"), [(0.5, 1.0), (1.5, 1.5), (4.0, 2.0)])
def test_sharpness(asked: float, had: float) -> None:
    """A picture has one to two device pixels for each CSS pixel, and a change draws it again."""
    frame = Renderer()
    scene = Scene(plot=line(3.0), key=1)
    frame.draw(scene)
    frame.suit(asked, is_dark=False)
    assert frame.sharpness == had
    height, width, _ = pixels(frame.draw(scene).png).shape
    # matplotlib 3.10 rounds a height down that 3.11 rounds to the nearest pixel
    assert (width, height) == (840 * had, pytest.approx(460 * had, abs=1))


def test_dark_pages_get_dark_paper() -> None:
    """Background, curves and legend have the palette's colours for the theme."""

    def plot(ax: "Axes") -> None:
        ax.plot([0, 10], [0, 10], color=palette.ROLES["GPU"].colour.light, label="a")
        ax.legend()

    frame = Renderer()
    scene = Scene(plot=plot, key=1)
    light = frame.draw(scene)
    frame.suit(1.0, is_dark=True)
    dark = frame.draw(scene)
    shades = [palette.PAPER.light, palette.PAPER.dark]
    corners = [pixels(drawn.png)[0, 0] for drawn in (light, dark)]
    assert ["#" + "".join(f"{value:02x}" for value in corner) for corner in corners] == shades
    legend = [drawn.legend[0].colour for drawn in (light, dark)]
    assert legend == list(palette.ROLES["GPU"].colour)


def test_a_hidden_name_stays_hidden() -> None:
    """A name without room is not drawn, although all artists are hidden for the empty axes."""

    def plot(ax: "Axes") -> None:
        line(3.0)(ax)
        ax.text(1, 1, "no room", visible=False)

    drawn = [Renderer().draw(Scene(plot=each)).png for each in (plot, line(3.0))]
    assert drawn[0] == drawn[1]


def test_a_longer_title_lowers_the_axes() -> None:
    """The axes begin below the last line of the title, and a vertical marker with them."""
    tops = []
    for title in ("", "a\nb", "a\nb\nc"):
        scene = Scene(plot=line(3.0), title=title, markers=(Marker(1.0),))
        tops.append(Renderer().draw(scene).markers[0][1])
    assert tops[0] == tops[1] == pytest.approx(0.13)
    assert tops[2] == pytest.approx(0.178)


def test_names_at_lines_need_no_legend() -> None:
    """Axes without a legend have none on the page, and a legend of some lines has only these."""
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    ax.plot([1, 2], [1, 2], label="named at its end")
    assert take_legend(ax) == ()
    ax.legend(handles=ax.plot([1], [1], "o", label="a point"))
    assert [entry.label for entry in take_legend(ax)] == ["a point"]


def test_the_legend_becomes_values() -> None:
    """Lines, points and areas become legend entries, and the axes lose their legend."""
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    ax.plot([1], [1], "s-", color="#0072B2", label="a line")
    ax.plot([1], [1], "--", color="black", label="dashes")
    ax.plot([1], [1], "o", mfc="none", mec="#ff0000", label="open")
    ax.fill_between([0, 1], 0, 1, color="#00ff00", label="area")
    ax.legend()
    assert take_legend(ax) == (
        LegendEntry("a line", "#0072b2", "s", is_filled=True, line="solid"),
        LegendEntry("dashes", "#000000", "", is_filled=True, line="dashed"),
        LegendEntry("open", "#ff0000", "o", is_filled=False, line=""),
        LegendEntry("area", "#00ff00", "", is_filled=True, line="band"),
    )
    assert ax.get_legend() is None


class Clock:
    """An event loop whose delayed actions run when the test calls them."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def later(self, _delay_s: float, action: Callable[[], object]) -> bool:
        """Store the action."""
        self.waiting.append(action)
        return True


def paced() -> tuple[Pace, list[int], Clock]:
    """Return a pace, the list of its pictures' numbers, and its event loop."""
    drawn: list[int] = []
    clock = Clock()

    def draw() -> int:
        drawn.append(len(drawn) + 1)
        return len(drawn)

    return Pace(draw, clock), drawn, clock  # type: ignore[arg-type]  # it has the only method that is used


def test_pace_draws_the_first_and_the_last() -> None:
    """The first request is drawn at once; after it was seen, only the last one is drawn."""
    pace, drawn, _ = paced()
    for _ in range(5):
        pace.ask()
    assert drawn == [1]
    pace.seen(1)
    assert drawn == [1, 2]
    pace.seen(2)
    assert (drawn, pace.n_dropped) == ([1, 2], 3)
    pace.ask()
    assert drawn == [1, 2, 3]


def test_pace_stops_waiting_for_a_page_that_does_not_answer() -> None:
    """After the delay the last request is drawn without an answer; late answers change nothing."""
    pace, drawn, clock = paced()
    pace.ask()
    pace.ask()
    clock.waiting[0]()
    assert drawn == [1, 2]
    pace.ask()
    clock.waiting[0]()  # the delay of the first picture, which was replaced
    pace.seen(1)
    assert drawn == [1, 2]
    pace.seen(2)
    assert drawn == [1, 2, 3]


def test_pace_continues_after_an_error() -> None:
    """A picture whose drawing failed does not block the next one."""
    pace, drawn, _ = paced()
    pace._draw = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        pace.ask()
    pace._draw = lambda: drawn.append(1) or 1  # type: ignore[func-returns-value]  # it is None
    pace.ask()
    assert drawn == [1]


def test_a_closed_pace_draws_nothing() -> None:
    """Requests that were not drawn before ``close`` are dropped."""
    pace, drawn, clock = paced()
    pace.ask()
    pace.ask()
    pace.close()
    clock.waiting[0]()
    assert drawn == [1]


@pytest.mark.parametrize(
    ("offered", "value", "expected"),
    [
        ((1, 2, 8), 8, 8),
        ((1, 2, 8), 6, 8),
        ((None, 2, 8), 3, 2),
        ((None, 2, 8), None, None),
        (("a", "b"), "c", "a"),
    ],
)
def test_nearest(offered: tuple[object, ...], value: object, expected: object) -> None:
    """``nearest`` returns the value if it is offered, else the nearest number or the first."""
    assert nearest(offered, value) == expected


def test_value_given_by_hand() -> None:
    """A slider takes the nearest number, several values may be one name; others are refused."""
    slider = Selector("size", "Size", "slider", (("1", 1), ("4", 4)))
    several = Selector("names", "Names", "several", (("a", "a"), ("b", "b")))
    assert (slider.read(3), several.read("b"), several.read(["a", "b"])) == (4, ("b",), ("a", "b"))
    with pytest.raises(InvalidOptionError) as refused:
        several.read(["a", "c"])
    assert str(refused.value) == "names='c'; choose one of 'a', 'b'"


def test_controls_report_only_what_the_reader_chose() -> None:
    """A control's change is reported with its value; a change by the program is not reported."""
    chosen: list[tuple[str, object]] = []
    choices = (
        Selector("link", "Link", "slider", (("own", None), ("PCIe", "PCIe"))),
        Selector("names", "Names", "several", (("a", "a"), ("b", "b"))),
    )
    state = SimpleNamespace(link=None, names=("b",))
    controls = Controls(
        choices, state, lambda name, value: chosen.append((name, value)), JupyterLoop()
    )
    assert controls.widgets["names"].index == [1]
    controls.widgets["link"].index = 1
    controls.widgets["names"].index = (0, 1)
    assert chosen == [("link", "PCIe"), ("names", ("a", "b"))]
    only = (Selector("link", "Link", "slider", (("PCIe", "PCIe"),)), choices[1])
    controls.tell(only, SimpleNamespace(link="PCIe", names=("gone", "a")))
    assert len(chosen) == 2
    assert controls.widgets["link"].disabled
    assert controls.widgets["names"].index == [0]
    controls.close()


class TurnsByHand(JupyterLoop):
    """An event loop whose turns come when the test runs them, as while a cell is running."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []

    def in_turn(self, action: Callable[P, object]) -> Callable[P, None]:
        """Return a function that stores the action."""
        return lambda *args, **options: self.waiting.append(lambda: action(*args, **options))


SIZES = Selector("size", "Size", "slider", tuple((str(n), n) for n in range(5)))


def test_a_control_is_not_set_back_to_an_earlier_choice() -> None:
    """A slider that moves while an earlier choice is drawn keeps its new place."""
    turns, chosen = TurnsByHand(), list[object]()

    def draw(_name: str, value: Hashable) -> None:
        chosen.append(value)
        if value == 1:
            # ipywidgets does the same: it sets the value from the page, then notifies.
            with slider.hold_trait_notifications():
                slider.index = 2
                controls.tell((SIZES,), SimpleNamespace(size=1))
                assert slider.index == 2
            controls.tell((SIZES,), SimpleNamespace(size=0))  # the explorer cannot show 1
        assert slider.index == 2

    controls = Controls((SIZES,), SimpleNamespace(size=0), draw, turns)
    slider = controls.widgets["size"]
    slider.index = 1
    for turn in turns.waiting:
        turn()
    assert chosen == [1, 2]
    controls.close()


def test_only_the_last_of_many_choices_is_taken() -> None:
    """After a busy moment, only the slider's last place is drawn and not each step."""
    turns, chosen = TurnsByHand(), list[object]()
    controls = Controls(
        (SIZES,), SimpleNamespace(size=0), lambda _, value: chosen.append(value), turns
    )
    for place in (1, 2, 3, 4):
        controls.widgets["size"].index = place
    for turn in turns.waiting:
        turn()
    assert chosen == [4]
    controls.close()


def test_a_choice_made_while_controls_are_set_is_kept() -> None:
    """A choice from another thread, which may come at any moment, is not overwritten."""
    other = replace(SIZES, name="other")
    turns, chosen = TurnsByHand(), list[tuple[str, object]]()

    def choose_elsewhere(_change: object) -> None:
        thread = Thread(target=setattr, args=(controls.widgets["other"], "index", 3))
        thread.start()
        thread.join()

    state = SimpleNamespace(size=0, other=0)
    controls = Controls(
        (SIZES, other), state, lambda name, value: chosen.append((name, value)), turns
    )
    controls.widgets["size"].observe(choose_elsewhere, "index")
    controls.tell((SIZES, other), SimpleNamespace(size=1, other=0))
    for turn in turns.waiting:
        turn()
    assert chosen == [("other", 3)]
    assert controls.widgets["other"].index == 3
    controls.close()


def test_table_for_reading() -> None:
    """Times have units, sizes commas; constant columns are left out, and text is escaped."""
    frame = pd.DataFrame(
        {
            "name": ["<b>", "add"],
            "size": [1024, 2**20],
            "median_s": [1.5e-6, float("nan")],
            "ratio": [1.23456, 2.0],
            "dtype": ["float32", "float32"],
        }
    )
    assert table_html(frame, "<T>") == (
        "<table><caption>&lt;T&gt;</caption><thead><tr>"
        '<th scope="col">name</th><th scope="col">size</th><th scope="col">median</th>'
        '<th scope="col">ratio</th></tr></thead><tbody>'
        "<tr><td>&lt;b&gt;</td><td>1,024</td><td>1.50 µs</td><td>1.235</td></tr>"
        "<tr><td>add</td><td>1,048,576</td><td></td><td>2</td></tr></tbody></table>"
    )


def test_a_long_table_says_that_it_is_cut() -> None:
    """A table shows 300 rows, and its caption says of how many."""
    text = table_html(pd.DataFrame({"size": range(301)}), "T.")
    assert "<caption>T. The first 300 of 301 rows.</caption>" in text
    assert text.count("<tr>") == 301


def test_every_trait_is_read_by_the_script() -> None:
    """The script uses every trait of the Python widget by the same name."""
    script = Path(_picture.__file__).with_name("picture.js").read_text("utf-8")
    widget: Any = _picture.picture_class()
    for name in widget.class_own_traits():
        if not name.startswith("_"):
            assert f'"{name}"' in script, name
