"""A live picture is shown in a front end, an exported notebook or a console, or not at all."""

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpulab.figures import Figure
from gpulab.figures._figure import PackedCanvas
from gpulab.views.live import _display, _stop
from gpulab.views.live._display import Screen, screen_for
from gpulab.views.live._stop import Stop, StopButton
from tests.support.notebook_display import needs_ipywidgets_8, shown_in

NOTE = "Interrupt the kernel to stop; what there is by then is kept."


def picture(record: object) -> Figure:
    """Return an empty figure with the record as its title, or fail for "too little"."""
    import pandas as pd
    from matplotlib.figure import Figure as Canvas

    if record == "too little":
        raise ValueError(record)
    return Figure(
        PackedCanvas(Canvas()), str(record), f"words for {record}", "seen", pd.DataFrame()
    )


def opened(stop: Stop | None = None, *, progress: bool = True) -> Screen:
    """Return the screen for the place that the test pretends to be in."""
    return screen_for(
        picture,
        stop or Stop(),
        activity="measuring",
        unit=" results",
        total=9,
        progress=progress,
    )


def title_of(screen: Any) -> str:  # noqa: ANN401  # only a notebook's screen has a widget
    """Return the title that the page shows."""
    title: str = screen._widget.view["title"]
    return title


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock by one that stands still; the list's only item is the time."""
    now = [100.0]
    monkeypatch.setattr(_display, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


@needs_ipywidgets_8
def test_a_watched_picture_is_replaced_in_its_place(
    clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One output shows a note first, then a widget that gets each view, and then the figure."""
    shown = shown_in(monkeypatch, watched=True)
    screen: Any = opened()
    screen.show("one", 1)
    widget = screen._widget
    assert widget.view["title"] == "one"
    assert widget.view["note"] == f"measuring: 1 of 9 results. {NOTE}"
    clock[0] += 1
    screen.show("two", 2)
    assert widget.view["title"] == "two"
    screen.close("all", "")
    first, frame, last = shown.outputs[0]
    assert first["text/plain"] == f"measuring: 0 of 9 results. {NOTE}"
    assert any("widget" in kind for kind in frame)
    assert last.title == "all"
    assert widget.comm is None


@needs_ipywidgets_8
@pytest.mark.parametrize(("drawing_s", "step_s"), [(0.0, 0.125), (1.0, 0.5)])
def test_frames_that_come_too_soon_are_skipped(
    clock: list[float], drawing_s: float, step_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most five frames a second are drawn, and drawing takes at most half of the time."""

    def draw(record: object) -> Figure:
        clock[0] += drawing_s
        return picture(record)

    shown_in(monkeypatch, watched=True)
    screen = screen_for(draw, Stop(), activity="", unit="", total=None, progress=True)
    titles = []
    for number in range(7):
        screen.show(number, number)
        titles.append(title_of(screen))
        clock[0] += step_s
    assert list(dict.fromkeys(titles)) == ["0", "2", "4", "6"]


def test_a_frame_that_cannot_be_drawn_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame that fails is skipped, but an error of the finished picture is raised."""
    shown = shown_in(monkeypatch, watched=True)
    screen = opened()
    screen.show("too little", 1)
    assert len(shown.outputs[0]) == 1
    with pytest.raises(ValueError, match="too little"):
        screen.close("too little", "")


def test_nothing_to_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """If there is nothing to show, the output is a note."""
    for watched in (True, False):
        shown = shown_in(monkeypatch, watched=watched)
        opened().close(None, "nothing <yet>")
        assert shown.outputs[0][-1] == {
            "text/plain": "nothing <yet>",
            "text/html": "<p>nothing &lt;yet&gt;</p>",
        }


@pytest.mark.parametrize(("watched", "progress"), [(False, True), (True, False)])
def test_an_exported_picture_is_shown_once(
    *, watched: bool, progress: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a front end, or without progress, only the finished picture is shown."""
    shown = shown_in(monkeypatch, watched=watched)
    screen = opened(progress=progress)
    screen.show("one", 1)
    screen.close("all", "")
    ((figure,),) = shown.outputs
    assert figure.title == "all"


def test_a_console_gets_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A console gets a progress bar on stderr if progress is on, and nothing otherwise."""
    shown = shown_in(monkeypatch, watched=False, kernel=None)
    for progress in (True, False):
        screen = opened(progress=progress)
        if progress:
            bar: Any = screen._bar  # type: ignore[attr-defined]  # it waits for a second
            bar.start_t, bar.last_print_t = bar.start_t - 10, bar.last_print_t - 10
        screen.show("one", 3)
        screen.close("all", "")
        out, told = capsys.readouterr()
        assert not out
        assert ("measuring:  33%" in told) == progress
    assert shown.outputs == []


def test_without_ipython_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program without IPython gets a progress bar, and IPython is not imported."""
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert isinstance(opened(), _display.TextScreen)


# The button


def kernel(*subshells: str) -> Any:  # noqa: ANN401  # a kernel has no types
    """Return a kernel with these subshells, on which messages of widgets arrive."""
    manager = SimpleNamespace(list_subshell=lambda: list(subshells))
    thread = SimpleNamespace(manager=manager)
    return SimpleNamespace(_supports_kernel_subshells=True, shell_channel_thread=thread)


@needs_ipywidgets_8
def test_the_button_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    """A click on the button stops the work, and the button disappears at the end."""
    shown = shown_in(monkeypatch, watched=True, kernel=kernel("a subshell"))
    stop = Stop()
    screen = opened(stop)
    screen.show("one", 1)
    ((_, _), (button,)) = shown.outputs
    assert button.description == "Stop"
    button.comm._reply_subshell_id = None
    button.click()
    assert (stop.by, stop.wait(0)) == ("stop", True)
    screen.close("all", "")
    assert shown.outputs[1][-1] == {"text/plain": ""}
    assert button.comm is None


@needs_ipywidgets_8
@pytest.mark.parametrize("kernel", [kernel(), SimpleNamespace(), True])
def test_no_button_where_a_click_would_not_arrive(
    kernel: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without subshells, or if the front end opened none, no button is shown."""
    shown = shown_in(monkeypatch, watched=True, kernel=kernel)
    screen = opened()
    screen.show("one", 1)
    screen.close("all", "")
    assert len(shown.outputs) == 1


def test_a_click_goes_where_the_front_end_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The button's comm is not bound to the subshell of the busy cell, so clicks arrive."""
    shown_in(monkeypatch, watched=True, kernel=kernel("a subshell"))
    comm = SimpleNamespace(_reply_subshell_id=None)
    widget = SimpleNamespace(comm=comm, close=lambda: None)
    monkeypatch.setattr(_stop, "_button", lambda _: widget)
    button = StopButton(Stop())
    button.offer()
    assert hasattr(comm, "_reply_subshell_id")
    button.offer()
    assert not hasattr(comm, "_reply_subshell_id")


def test_the_first_reason_to_stop_counts() -> None:
    """``by`` names the first reason to stop; later ones change nothing."""
    stop = Stop()
    assert not stop.wait(0)
    stop.ask("stop")
    stop.ask("interrupt")
    assert stop.by == "stop"


def test_no_handler_is_installed_on_another_thread() -> None:
    """Off the main thread, which alone gets Ctrl-C, no signal handler is replaced."""
    seen: list[object] = []

    def work() -> None:
        with Stop() as stop:
            seen.append(stop._before)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
