"""Where a growing picture is shown: in a notebook that is watched, in an exported one, as text."""

import contextvars
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from gpulab import widgets
from gpulab.figures import Figure
from gpulab.foreign_text import visible
from gpulab.live._stop import Stop, StopButton
from gpulab.markup import clean
from gpulab.progress import Bar

PERIOD_S = 0.2  # from the end of one picture to the begin of the next, at least
_REST = 1  # times as long as a picture took is left to the work
THREAD = "gpulab live picture"

Draw = Callable[[Any], Figure]


class Screen:
    """Shows nothing: the picture of somebody who wants none, and what the others build on."""

    is_watched = False

    def show(self, record: object, n_done: float) -> None:
        """Show what there is so far, unless the last time was a moment ago.

        Parameters
        ----------
        record
            What ``draw`` takes.
        n_done
            How much of the total that is.
        """

    def close(self, record: object | None, note: str) -> None:
        """Show the whole, the last time; with no record, the note alone."""


class TextScreen(Screen):
    """A bar on the standard error stream, where nothing can be drawn."""

    def __init__(self, what: str, total: float | None, unit: str) -> None:
        self._bar = Bar(total=total, desc=what, unit=unit, disable=False)  # type: ignore[arg-type]  # tqdm takes floats

    def show(self, record: object, n_done: float) -> None:  # noqa: ARG002  # as Screen has it
        """Move the bar."""
        # The bar adds up; seconds are rounded, or it would show fifteen digits.
        self._bar.update(round(n_done, 1) - self._bar.n)

    def close(self, record: object | None, note: str) -> None:  # noqa: ARG002  # as Screen has it
        """Take the bar away."""
        self._bar.close()


class ExportScreen(Screen):
    """One picture at the end: whoever runs a notebook to export it sees no other."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def close(self, record: object | None, note: str) -> None:
        """Show the picture."""
        from IPython.display import display

        if record is None:
            display(_plain(note), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        else:
            display(self._draw(record))  # type: ignore[no-untyped-call]  # as above


class NotebookScreen(Screen):
    """A picture that is replaced in its place, a few times a second."""

    is_watched = True

    def __init__(self, draw: Draw, what: str, total: float | None, unit: str, stop: Stop) -> None:
        from IPython.display import display

        self._draw = draw
        self._of = "" if total is None else f" of {total:g}"
        self._what, self._unit = what, unit
        self._button = StopButton(stop)
        self._due_s = 0.0
        handle = display(_plain(self._note(0)), raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above
        self._handle: Any = handle
        self._button.offer()

    def show(self, record: object, n_done: float) -> None:
        """Draw it, if the last picture is old enough."""
        began_s = time.monotonic()
        if began_s < self._due_s:
            return
        self._button.offer()
        # A plot may be unable to draw the first results alone; the last picture does not forgive.
        with suppress(Exception):
            self._handle.update(_frame(self._draw(record), self._note(n_done)), raw=True)
        drawn_s = time.monotonic()
        self._due_s = drawn_s + max(PERIOD_S, _REST * (drawn_s - began_s))

    def close(self, record: object | None, note: str) -> None:
        """Draw the whole, and take the button away."""
        self._button.close()
        if record is None:
            self._handle.update(_plain(note), raw=True)
        else:
            self._handle.update(self._draw(record))

    def _note(self, n_done: float) -> str:
        done = f"{n_done:.1f}" if isinstance(n_done, float) else n_done
        return (
            f"{self._what}: {done}{self._of}{self._unit}. "
            "Interrupt the kernel to stop; what there is by then is kept."
        )


class Painter(Screen):
    """Draws on a thread of its own the newest of what it is given, and skips the rest.

    A load must not wait for pictures: while one is drawn, the host goes on launching.
    """

    def __init__(self, screen: NotebookScreen) -> None:
        self.is_watched = True
        self._screen = screen
        self._newest: tuple[object, float] | None = None
        self._changed = threading.Condition()
        self._closed = False
        # Outputs find their cell by the context of the thread that writes them.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._work,), name=THREAD, daemon=True)
        self._thread.start()

    def show(self, record: object, n_done: float) -> None:
        """Give it what there is so far; returns at once."""
        with self._changed:
            self._newest = (record, n_done)
            self._changed.notify()

    def close(self, record: object | None, note: str) -> None:
        """End the thread and wait until it has ended, then show the whole from this one."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        # A front end keeps what comes last, so no late frame may follow the finished picture.
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
    what: str,
    unit: str,
    total: float | None,
    progress: bool,
    threaded: bool = False,
) -> Screen:
    """Return the best screen that there is here.

    Parameters
    ----------
    draw
        Makes the figure of a record.
    stop
        What the Stop button asks.
    what, unit, total
        For the line that tells how far it is: ``"loading: 0.4 of 2 s"``.
    progress
        Whether anything is shown before the end.
    threaded
        Whether pictures that grow are drawn on a thread of their own.
    """
    if widgets.jupyter_kernel() is None:
        return TextScreen(what, total, unit) if progress else Screen()
    if progress and widgets.is_watched():
        screen = NotebookScreen(draw, what, total, unit, stop)
        return Painter(screen) if threaded else screen
    return ExportScreen(draw)


def _plain(note: str) -> dict[str, str]:
    return {"text/plain": visible(note), "text/html": f"<p>{clean(note)}</p>"}


def _frame(figure: Figure, note: str) -> dict[str, str]:
    return {
        "text/plain": visible(f"{figure.description} {note}"),
        "text/html": f"{figure._repr_html_()}<p>{clean(note)}</p>",
    }
