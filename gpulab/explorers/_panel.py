"""A table to be read: units in the cells, no more digits than mean something.

The widgets of an explorer on the page: controls, picture, and the button that measures.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpulab._html import clean, table
from gpulab.explorers._controls import Controls
from gpulab.explorers._scene import Selector
from gpulab.explorers._scheduling import JupyterLoop, MeasurementJob, Pace
from gpulab.units import format_time
from gpulab.widgets import picture_class

if TYPE_CHECKING:
    import pandas as pd


_MAX_ROWS = 300


def table_html(frame: "pd.DataFrame", caption: str) -> str:
    """Write a frame as an HTML table with a caption; every cell is escaped.

    Columns that end in ``_s`` are times. Those that are the same in every row are left out, as
    the caption says what they would.
    """
    shown = frame.head(_MAX_ROWS)
    names = [name for name in shown.columns if len(shown) == 1 or _varies(shown[name])]
    more = f" The first {_MAX_ROWS} of {len(frame):,} rows." if len(frame) > _MAX_ROWS else ""
    writers = [_writer(name) for name in names]
    rows = (
        [write(cell) for write, cell in zip(writers, cells, strict=True)]
        for cells in shown[names].to_numpy()
    )
    return table(rows, caption=f"{caption}{more}", headings=map(_title, names))


def _varies(column: "pd.Series[Any]") -> bool:
    return bool((column != column.iloc[0]).any())


def _title(name: str) -> str:
    return name.removesuffix("_s").replace("_", " ")


def _writer(name: str) -> Callable[[Any], str]:
    return _time if name.endswith("_s") and not name.endswith("per_s") else _plain


def _time(value: float) -> str:
    return "" if value is None or math.isnan(value) else format_time(value)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


_REST_S = 0.4


class Panel:
    """What stands on the page; it knows how to show things and nothing of what they are.

    Parameters
    ----------
    controls
        For the choices.
    kernel
        On whose thread everything happens.
    draw
        Draws at a sharpness (device pixels for each CSS pixel) and returns the traits of the
        picture to set.
    table
        Returns the table as HTML; asked for when nothing moves any more.
    file
        Returns the contents of a file by its suffix, ``".png"`` or ``".csv"``.
    measure, stop
        What the buttons do.

    Attributes
    ----------
    box
        All of it.
    picture, pace
        The picture, and when it is drawn.
    """

    def __init__(  # noqa: PLR0913 # each is an action of its own
        self,
        controls: Controls,
        kernel: JupyterLoop,
        *,
        draw: Callable[[float], dict[str, Any]],
        table: Callable[[], str],
        file: Callable[[str], bytes],
        measure: Callable[[], object],
        stop: Callable[[], object],
    ) -> None:
        import ipywidgets  # type: ignore[import-untyped] # it ships no types

        self._controls, self._draw, self._table, self._file = controls, draw, table, file
        self.picture: Any = picture_class()()
        self._kernel = kernel
        self.pace = Pace(self._show, kernel)
        seen, ask = kernel.turned(self.pace.seen), kernel.turned(self.pace.ask)
        self.picture.observe(lambda change: seen(change["new"]), "shown")
        self.picture.observe(lambda _: ask(), "ratio")
        rest, send = kernel.turned(self._rest), kernel.turned(self._send)
        self.picture.observe(lambda _: rest(self.picture.number), "is_open")
        self.picture.on_msg(lambda _, content, __: send(content))
        self._start = ipywidgets.Button(description="Measure here", icon="play")
        begin = kernel.turned(measure)
        self._start.on_click(lambda _: begin())
        self._stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self._stop.on_click(lambda _: stop())
        self._bar = ipywidgets.IntProgress(layout={"width": "10em", "display": "none"})
        self._told = ipywidgets.HTML()
        self._row = ipywidgets.HBox([self._start, self._stop, self._bar, self._told])
        self._row.layout.flex_flow = "row wrap"
        self._top = ipywidgets.HBox(controls.short, layout={"flex_flow": "row wrap"})
        self.box: Any = ipywidgets.VBox([self._top, *controls.long, self._row, self.picture])

    def tell(self, choices: tuple[Selector, ...], state: object) -> None:
        """Show what is chosen now, in the controls and in the picture."""
        self._controls.tell(choices, state)
        self.pace.ask()

    def report(self, job: MeasurementJob) -> None:
        """Show how far a job is."""
        self._stop.disabled = not job.is_running
        self._start.disabled = job.is_running
        self._bar.max, self._bar.value = max(len(job.steps), 1), job.n_done
        self._bar.layout.display = None if job.is_running else "none"
        self._told.value = f'<span role="status">{clean(str(job))}</span>'

    def close(self) -> None:
        """Take everything off the page."""
        self.pace.close()
        self._controls.close()
        for widget in (*self._row.children, self._row, self._top, self.picture, self.box):
            widget.close()

    def _show(self) -> int:
        number = int(self.picture.number) + 1
        traits = self._draw(self.picture.ratio)
        # One message: a number without its picture would be answered too early.
        with self.picture.hold_sync():
            for name, value in {**traits, "number": number}.items():
                self.picture.set_trait(name, value)
        if not self._kernel.later(_REST_S, lambda: self._rest(number)):
            self._rest(number)
        return number

    def _rest(self, number: int) -> None:
        """Bring the table up to date when nothing moves any more, if it is to be seen."""
        if number == self.picture.number and self.picture.is_open:
            self.picture.table = self._table()

    def _send(self, content: dict[str, str]) -> None:
        self.picture.send(content, buffers=[self._file(content["file"])])
