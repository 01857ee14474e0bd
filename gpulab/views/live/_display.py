"""The screens for a growing figure: a live notebook, an exported one, or a text bar."""

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.progress import Bar
from gpulab.figures import Figure, widgets
from gpulab.views.live._stop import Stop, StopButton

PERIOD_S = 0.2  # least time from the end of one drawing to the beginning of the next
# Drawing takes at most half of the time: after one that took 1 s, the work has 1 s to itself.
_REST = 1
THREAD = "gpulab live picture"

Draw = Callable[[Any], Figure]


class Screen:
    """Shows nothing; the base class of the other screens."""

    is_watched = False

    def show(self, record: object, n_done: float) -> None:
        """Show the results so far, unless the last drawing is very recent.

        Parameters
        ----------
        record
            The argument of ``draw``.
        n_done
            How much of the total is done.
        """

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
    """A figure that is replaced in its place, a few times a second."""

    is_watched = True

    def __init__(
        self, draw: Draw, activity: str, total: float | None, unit: str, stop: Stop
    ) -> None:
        from IPython.display import display

        self._draw = draw
        self._of = "" if total is None else f" of {total:g}"
        self._activity, self._unit = activity, unit
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
            self._handle.update(_frame(self._draw(record), self._note(n_done)), raw=True)
        drawn_s = time.monotonic()
        self._due_s = drawn_s + max(PERIOD_S, _REST * (drawn_s - began_s))

    def close(self, record: object | None, note: str) -> None:
        """Draw the final figure and remove the button."""
        self._button.close()
        if record is None:
            self._handle.update(_plain(note), raw=True)
        else:
            self._handle.update(self._draw(record))

    def _note(self, n_done: float) -> str:
        done = f"{n_done:.1f}" if isinstance(n_done, float) else n_done
        return (
            f"{self._activity}: {done}{self._of}{self._unit}. "
            "Interrupt the kernel to stop; what there is by then is kept."
        )


class Painter(Screen):
    """Draws the newest record on a thread of its own, and skips records that come meanwhile.

    So a load does not wait for drawings: the host launches kernels while a figure is drawn.
    """

    def __init__(self, screen: NotebookScreen) -> None:
        self.is_watched = True
        self._screen = screen
        self._newest: tuple[object, float] | None = None
        self._changed = threading.Condition()
        self._closed = False
        # ipykernel finds the cell of an output by the context of the thread that writes it.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._work,), name=THREAD, daemon=True)
        self._thread.start()

    def show(self, record: object, n_done: float) -> None:
        """Pass on the results so far; returns at once."""
        with self._changed:
            self._newest = (record, n_done)
            self._changed.notify()

    def close(self, record: object | None, note: str) -> None:
        """End the thread, wait for it, and show the final figure from this thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        # A front end shows what arrives last, so no drawing may arrive after the final figure.
        self._thread.join()
        self._screen.close(record, note)

    def _work(self) -> None:
        while (newest := self._take()) is not None:
            self._screen.show(*newest)

    def _take(self) -> tuple[object, float] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._newest is not None)
            newest, self._newest = self._newest, None
            return None if self._closed else newest


def screen_for(  # noqa: PLR0913  # all but two are keyword-only
    draw: Draw,
    stop: Stop,
    *,
    activity: str,
    unit: str,
    total: float | None,
    progress: bool,
    threaded: bool = False,
) -> Screen:
    """Return the best screen for this environment.

    Parameters
    ----------
    draw
        Returns the figure of a record.
    stop
        What the Stop button sets.
    activity, unit, total
        For the line that shows how far it is: ``"loading: 0.4 of 2 s"``.
    progress
        Whether anything is shown before the end.
    threaded
        Whether growing figures are drawn on a thread of their own.
    """
    if widgets.jupyter_kernel() is None:
        return TextScreen(activity, total, unit) if progress else Screen()
    if progress and widgets.is_watched():
        screen = NotebookScreen(draw, activity, total, unit, stop)
        return Painter(screen) if threaded else screen
    return ExportScreen(draw)


def _plain(note: str) -> dict[str, str]:
    return {"text/plain": visible(note), "text/html": f"<p>{clean(note)}</p>"}


def _frame(figure: Figure, note: str) -> dict[str, str]:
    return {
        "text/plain": visible(f"{figure.description} {note}"),
        "text/html": f"{figure._repr_html_()}<p>{clean(note)}</p>",
    }
