"""The screens for a growing figure: a live notebook, an exported one, or a text bar."""

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from gpulab.core import shell
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.progress import Bar
from gpulab.figures import Figure, widgets
from gpulab.views.live._stop import Stop, StopButton
from gpulab.views.live._view import view_of_figure

PERIOD_S = 0.2  # least time from the end of one drawing to the beginning of the next
# Drawing takes at most half of the time: after one that took 1 s, the work has 1 s to itself.
_REST = 1

Draw = Callable[[Any], Figure]
# Returns what the page draws of a record, given how far it is.
View = Callable[[Any, str], dict[str, Any]]


class Screen:
    """Shows nothing; the base class of the other screens."""

    is_watched = False

    def show(self, record: object, n_done: float) -> None:
        """Show the record and how much is done, unless the last drawing is very recent."""

    def close(self, record: object | None, note: str) -> None:
        """Show the final figure; without a record, show the note."""


class TextScreen(Screen):
    """A progress bar on the standard error stream, outside of notebooks."""

    def __init__(self, activity: str, total: float | None, unit: str) -> None:
        self._bar = Bar(total=total, desc=activity, unit=unit, disable=False)  # type: ignore[arg-type]  # tqdm takes floats

    def show(self, record: object, n_done: float) -> None:  # noqa: ARG002  # as Screen has it
        """Move the bar."""
        # The bar adds up its updates; without rounding, seconds would be shown with 15 digits.
        self._bar.update(round(n_done, 1) - self._bar.n)

    def close(self, record: object | None, note: str) -> None:  # noqa: ARG002  # as Screen has it
        """Remove the bar."""
        self._bar.close()


class ExportScreen(Screen):
    """One figure at the end, for a notebook that is executed and exported."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def close(self, record: object | None, note: str) -> None:
        """Show the figure."""
        from IPython.display import display

        if record is None:
            display(_plain(note), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        else:
            display(self._draw(record))  # type: ignore[no-untyped-call]  # as above


class NotebookScreen(Screen):
    """A picture that grows in its place, a few times a second.

    The page draws it. At the end there is a figure, which a saved notebook keeps.
    """

    is_watched = True

    def __init__(self, draw: Draw, view: View, note: Callable[[float], str], stop: Stop) -> None:
        from IPython.display import display

        self._draw, self._view = draw, view
        self._widget: Any = None
        self._note = note
        self._button = StopButton(stop)
        self._due_s = 0.0
        handle = display(_plain(self._note(0)), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above
        self._handle: Any = handle
        self._button.offer()

    def show(self, record: object, n_done: float) -> None:
        """Draw the figure, if the last drawing is old enough."""
        began_s = time.monotonic()
        if began_s < self._due_s:
            return
        self._button.offer()
        # A plot may need more results than the first ones, so only the final figure may fail.
        with suppress(Exception):
            self._show_frame(record, self._note(n_done))
        drawn_s = time.monotonic()
        self._due_s = drawn_s + max(PERIOD_S, _REST * (drawn_s - began_s))

    def _show_frame(self, record: object, note: str) -> None:
        view = self._view(record, note)
        if self._widget is None:
            self._widget = widgets.view_class("live")(view=view)
            self._handle.update(widgets.widget_data(self._widget) | _plain(note), raw=True)
        else:
            self._widget.view = view

    def close(self, record: object | None, note: str) -> None:
        """Draw the final figure and remove the button."""
        self._button.close()
        if self._widget is not None:
            self._widget.close()
        if record is None:
            self._handle.update(_plain(note), raw=True)
        else:
            self._handle.update(self._draw(record))


def screen_for(  # noqa: PLR0913  # all but two are keyword-only
    draw: Draw,
    stop: Stop,
    *,
    activity: str,
    unit: str,
    total: float | None,
    progress: bool,
    view: View | None = None,
) -> Screen:
    """Return the best screen for this environment.

    ``activity``, ``unit`` and ``total`` make the line that shows how far it is, as in ``"loading:
    0.4 of 2 s"``. ``view`` returns what the page draws while the picture grows; without it, that
    is what the figure shows.
    """
    if shell.jupyter_kernel() is None:
        return TextScreen(activity, total, unit) if progress else Screen()
    if progress and shell.is_watched():
        of = "" if total is None else f" of {total:g}"
        view = view or (lambda record, note: view_of_figure(draw(record), note))
        return NotebookScreen(draw, view, partial(_note, activity, f"{of}{unit}"), stop)
    return ExportScreen(draw)


def _note(activity: str, of: str, n_done: float) -> str:
    done = f"{n_done:.1f}" if isinstance(n_done, float) else n_done
    return f"{activity}: {done}{of}. Interrupt the kernel to stop; what there is by then is kept."


def _plain(note: str) -> dict[str, str]:
    return {"text/plain": visible(note), "text/html": f"<p>{clean(note)}</p>"}
