"""The widgets of an explorer: its controls, its picture, and the buttons to measure and stop."""

from collections.abc import Callable
from typing import Any

from gpulab.core.foreign_text import visible
from gpulab.figures.widgets import JupyterLoop, picture_class
from gpulab.views.explorers._controls import Controls
from gpulab.views.explorers._scene import Selector
from gpulab.views.explorers._scheduling import MeasurementJob, Pace

_REST_S = 0.4  # without a new picture, before the table follows
_MOST_RATIO = 16  # device pixels for a CSS pixel; phones have up to 4


class Panel:
    """The layout of an explorer on the page; it shows values and does not know their meaning.

    Parameters
    ----------
    controls
        The controls of the choices.
    loop
        The loop on whose thread everything runs.
    draw
        Called with the sharpness (device pixels for each CSS pixel) and whether the paper is dark;
        returns the traits of the picture.
    table
        Returns the table as HTML; called when the controls have been at rest for a moment.
    file
        Returns the contents of a file by its suffix, ``".png"`` or ``".csv"``.
    measure, stop
        The actions of the buttons.

    Attributes
    ----------
    box
        The widget with all others.
    picture, pace
        The picture, and the object that decides when it is drawn.
    """

    def __init__(  # noqa: PLR0913 # each is an action of its own
        self,
        controls: Controls,
        loop: JupyterLoop,
        *,
        draw: Callable[[float, bool], dict[str, Any]],
        table: Callable[[], str],
        file: Callable[[str], bytes],
        measure: Callable[[], object],
        stop: Callable[[], object],
    ) -> None:
        import ipywidgets  # type: ignore[import-untyped] # it ships no types

        self._controls, self._draw, self._table, self._file = controls, draw, table, file
        self.picture: Any = picture_class()()
        self._loop = loop
        self.pace = Pace(self._show, loop)
        self._page: dict[str, Any] = {"ratio": 1.0, "dark": False}
        self._is_open = False
        # Messages, not traits: ipywidgets sets traits from the page on a thread of its own. If two
        # threads set traits at a time, the words of the last picture can get lost.
        receive = loop.in_turn(self._receive)
        self.picture.on_msg(lambda _, content, __: receive(content))
        self._start = ipywidgets.Button(description="Measure here", icon="play")
        begin = loop.in_turn(measure)
        self._start.on_click(lambda _: begin())
        self._stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        # Not in turn, unlike the other button: it must arrive while a step is running.
        self._stop.on_click(lambda _: stop())
        self._row = ipywidgets.HBox([self._start, self._stop])
        self._row.layout.flex_flow = "row wrap"
        self._top = ipywidgets.HBox(controls.short, layout={"flex_flow": "row wrap"})
        self.box: Any = ipywidgets.VBox([self._top, *controls.long, self._row, self.picture])

    def tell(self, choices: tuple[Selector, ...], state: object) -> None:
        """Update the controls, and draw the picture for the current choices."""
        self._controls.tell(choices, state)
        self.pace.ask()

    def report(self, job: MeasurementJob) -> None:
        """Show the progress of a job."""
        self._stop.disabled = not job.is_running
        self._start.disabled = job.is_running
        total = len(job.steps) if job.is_running else 0
        self.picture.progress = {"text": visible(str(job)), "done": job.n_done, "total": total}

    def close(self) -> None:
        """Remove everything from the page."""
        self.pace.close()
        self._controls.close()
        for widget in (*self._row.children, self._row, self._top, self.picture, self.box):
            widget.close()

    def _show(self) -> int:
        number = int(self.picture.number) + 1
        traits = self._draw(self._page["ratio"], self._page["dark"])
        # In one message: the page would acknowledge a number that arrives before its picture.
        with self.picture.hold_sync():
            for name, value in {**traits, "number": number}.items():
                self.picture.set_trait(name, value)
        if not self._loop.later(_REST_S, lambda: self._rest(number)):
            self._rest(number)
        return number

    def _rest(self, number: int) -> None:
        """Update the table when the controls are at rest, if it is open."""
        if number == self.picture.number and self._is_open:
            self.picture.table = self._table()

    def _receive(self, content: Any) -> None:  # noqa: ANN401  # any JSON
        """Handle a message of the page; :func:`gpulab.figures.widgets.picture_class` lists them.

        Any other message is dropped: a page may be older than this kernel.
        """
        match content:
            case {"shown": int(number)}:
                self.pace.seen(number)
            case {"file": ".png" | ".csv" as suffix}:
                self.picture.send(content, buffers=[self._file(suffix)])
            case {"is_open": bool(is_open)}:
                self._is_open = is_open
                self._rest(self.picture.number)
            case {"ratio": int() | float() as ratio, "dark": bool()} if 0 < ratio <= _MOST_RATIO:
                if content != self._page:
                    self._page = content
                    self.pace.ask()
