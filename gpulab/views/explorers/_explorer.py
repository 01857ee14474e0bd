"""The explorer: choices that you change, and the figure, table and measurements they lead to."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic

from gpulab.core.disk import write_whole
from gpulab.core.errors import GpulabError, InvalidOptionError, UnknownNameError, shown
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.requirements import PATH, instance_of
from gpulab.figures import Figure, place_labels, render, style, widgets
from gpulab.figures.widgets import JupyterLoop
from gpulab.views.explorers._controls import Controls
from gpulab.views.explorers._panel import Panel
from gpulab.views.explorers._renderer import Renderer
from gpulab.views.explorers._scene import Measured, Model, Scene, Selector, State, Step
from gpulab.views.explorers._scheduling import MeasurementJob
from gpulab.views.explorers._table import table_html
from gpulab.workloads.sweeps import Point

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_SUFFIXES = (".png", ".svg", ".pdf", ".csv")
_N_PICTURES = 20  # while a job runs
_SIZE_IN = (9.0, 5.2)
_DPI = 200  # of a file
_LACKS = object()  # of a state without a field


class Explorer(Generic[State]):
    """A figure that follows your choices; a notebook shows it with controls.

    Without widgets, as on an exported page, it is a figure with its table. Nothing is measured
    until you press the button or call :meth:`measure`. Measured points stay when choices change.

    Examples
    --------
    >>> import gpulab
    >>> explorer = gpulab.explorers.crossover_explorer("matmul", size=512)
    >>> explorer.choose(workload="softmax")
    >>> explorer.state.workload, explorer.found
    ('softmax', ())
    """

    def __init__(
        self,
        model: Model[State],
        state: State,
        *,
        measure_step: Callable[[Step], Measured],
        found: Sequence[Measured] = (),
    ) -> None:
        self._model, self._measure_step = model, measure_step
        self._state = model.settled(state)
        self._note = ""  # on a state that was set and does not fit
        self._measured = tuple(found)
        self._job: MeasurementJob | None = None
        self._panel: Panel | None = None
        self._loop = JupyterLoop()

    @property
    def state(self) -> State:
        """Your choices as a frozen dataclass; set it, or call :meth:`choose`."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        """Set all choices at once, e.g. to a state that you saved.

        A choice that does not fit is replaced by the nearest one; the explorer says so.
        """
        kind: Any = type(self._state)
        instance_of(kind, f"a {kind.__name__}, such as explorer.state").check(state=state)
        # Saved by another version, it may lack a field.
        known = {each.name: getattr(state, each.name, _LACKS) for each in fields(kind)}
        given = {name: value for name, value in known.items() if value is not _LACKS}
        try:
            hash(tuple(given.values()))
        except TypeError:
            raise InvalidOptionError(
                f"state={shown(state)}; each choice must be one value, as in explorer.state"
            ) from None
        self._settle(kind(**given), known)

    def _replaced(self, known: Mapping[str, Any]) -> Iterator[str]:
        """Yield a sentence for each choice of a given state that is not shown as it was."""
        default = type(self._state)()
        for choice in (each for each in self.choices if each.name in known):
            shown, was = getattr(self._state, choice.name), known[choice.name]
            if was is _LACKS:
                yield f"The state has no {choice.name}; it is {shown!r} here."
            elif choice.kind == "several":
                gone = (each for each in known[choice.name] if each not in shown)
                yield from (f"{choice.name}={each!r} is not offered here." for each in gone)
            # A default may stand for the first option, and a slider takes the nearest number.
            elif was not in {shown, getattr(default, choice.name)} and choice.kind != "slider":
                yield f"{choice.name}={was!r} is not offered here; {shown!r} is shown instead."

    def _settle(self, state: State, known: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._state = self._model.settled(state)
        self._note = " ".join(self._replaced(known))
        if self._panel is not None:
            self._panel.tell(self.choices, self._state)

    @property
    def choices(self) -> tuple[Selector, ...]:
        """The choices that are offered now, with their options."""
        return self._model.choices(self._state)

    @property
    def code(self) -> str:
        """The line of Python that opens the explorer with these choices, without measurements."""
        # Settled like the state itself: an empty default stands for the first option.
        first = self._model.settled(type(self._state)())
        # Your own recordings too, because they are among the options and come first.
        chosen = [f"recordings={self._model.mine!r}"] if self._model.mine else []
        chosen += [
            f"{choice.name}={getattr(self._state, choice.name)!r}"
            for choice in self.choices
            if getattr(self._state, choice.name) != getattr(first, choice.name)
        ]
        return f"gpulab.explorers.{self._model.name}_explorer({', '.join(chosen)})"

    @property
    def found(self) -> tuple[Measured, ...]:
        """The points and ceilings that were measured here, in the order taken."""
        return (*self._measured, *(self._job.found if self._job else ()))

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that were measured here."""
        return tuple(found for found in self.found if isinstance(found, Point))

    def choose(self, **values: object) -> None:
        """Change choices by their names, as by hand.

        Raises
        ------
        UnknownNameError
            If there is no choice of this name.
        InvalidOptionError
            If the value is not among those offered.
        """
        state: Any = self._state
        for name, value in values.items():
            # One value after the other, because a choice may change the options of the next one.
            known = {choice.name: choice for choice in self._model.choices(state)}
            if name not in known:
                raise UnknownNameError("choice", name, known)
            state = self._model.settled(replace(state, **{name: known[name].read(value)}))
        self._settle(state)

    @property
    def scene(self) -> Scene:
        """The scene for the current choices; if it cannot be drawn, it says why."""
        note = (self._note,) if self._note else ()
        try:
            scene = self._model.scene(self._state, self.found)
        except GpulabError as error:
            return Scene(empty="\n".join((str(error), *note)))
        return replace(scene, words=(*scene.words, *note)) if note else scene

    def measure(self) -> tuple[Measured, ...]:
        """Measure the chosen tasks now and return the results; after Ctrl-C, those until then.

        The button does the same in steps, between which the notebook stays usable.
        """
        job = self._begin()
        job.start(None)
        return tuple(job.found)

    def stop(self) -> None:
        """Stop measuring after the current step; measured points are kept."""
        if self._job is not None:
            self._job.stop()  # at once, even while a step runs on the cells' thread
            self._loop.in_turn(self._report)(self._job)

    def figure(self) -> Figure:
        """Return the figure with its description and table, as shown without widgets.

        Raises
        ------
        InvalidOptionError
            If there is nothing to draw; the message says what to do.
        """
        scene = self._drawable()
        alt = "\n".join((scene.alt, *scene.words))
        return render(_axes(scene), alt=alt, frame=scene.frame())

    def to_frame(self) -> "pd.DataFrame":
        """Return the table of the drawn points, one row each; times are in seconds."""
        return self.scene.frame()

    def save(self, path: str | Path) -> Path:
        """Write the figure, or the table if the name ends in ``.csv``.

        Parameters
        ----------
        path
            Its suffix decides: ``.png``, ``.svg``, ``.pdf`` or ``.csv``.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InvalidOptionError
            If the suffix is none of these, or there is nothing to draw.
        NotSavedError
            If the file cannot be written; an existing file is then unchanged.
        """
        PATH.check(path=path)
        path = Path(path)
        if path.suffix not in _SUFFIXES:
            raise InvalidOptionError(
                f"path={str(path)!r}; its name must end in one of {', '.join(_SUFFIXES)}"
            )
        write_whole(path, self._content(path.suffix))
        return path

    def _content(self, suffix: str) -> bytes:
        """Return the bytes of a saved file."""
        scene = self._drawable()
        if suffix == ".csv":
            return str(scene.frame().to_csv(index=False)).encode()
        ax = _axes(scene)
        canvas: Any = ax.get_figure(root=True)
        canvas.set_dpi(_DPI)  # before the labels are placed by the size of their texts
        place_labels(ax)
        content = io.BytesIO()
        canvas.savefig(content, format=suffix.removeprefix("."), dpi=_DPI)
        return content.getvalue()

    @property
    def widget(self) -> Any:  # noqa: ANN401 # ipywidgets has no types
        """The controls and the figure as a widget, for a layout of your own."""
        if self._panel is None:
            self._panel = self._build()
        return self._panel.box

    def close(self) -> None:
        """Stop measuring and remove the widgets from the page; points and choices stay."""
        self.stop()
        if self._panel is not None:
            self._panel.close()
        self._panel = None

    def __str__(self) -> str:
        scene = self.scene
        return visible(scene.empty or "\n".join((scene.title.replace("\n", " "), *scene.words)))

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        # The front end saves both: a page without a kernel shows the figure instead of the widget.
        shown = self._static()
        if widgets.is_watched():
            shown |= widgets.widget_data(self.widget)
        return shown

    def _static(self) -> dict[str, Any]:
        scene = self.scene
        if scene.empty:
            return {
                "text/plain": visible(scene.empty),
                "text/html": f"<p>{clean(scene.empty)}</p>",
            }
        return self.figure()._repr_mimebundle_()

    def _drawable(self) -> Scene:
        scene = self.scene
        if scene.empty:
            raise InvalidOptionError(scene.empty)
        return scene

    def _build(self) -> Panel:
        controls = Controls(self.choices, self._state, self._chosen, self._loop)
        renderer = Renderer()

        def draw(sharpness: float, is_dark: bool) -> dict[str, Any]:  # noqa: FBT001  # of the page
            renderer.suit(sharpness, is_dark=is_dark)
            return _traits(self.scene, renderer) | {"code": self.code}

        panel = Panel(
            controls,
            self._loop,
            draw=draw,
            table=self._table,
            file=self._file,
            measure=self._press,
            stop=self.stop,
        )
        panel.picture.file = self._model.name
        panel.pace.ask()
        return panel

    def _chosen(self, name: str, value: object) -> None:
        state: Any = self._state
        self._settle(replace(state, **{name: value}))

    def _table(self) -> str:
        scene = self.scene
        return "" if scene.empty else table_html(scene.frame(), scene.title)

    def _file(self, suffix: str) -> bytes:
        return self._content(suffix) if suffix == ".csv" else self.figure().png

    def _press(self) -> None:
        if self._job is None or not self._job.is_running:
            self._begin().start(self._loop.asyncio_loop)

    def _begin(self) -> MeasurementJob:
        """Return a new job for the current choices; points of the previous job are kept."""
        self.stop()
        before, steps = self._job, self._model.steps(self._state)
        # A stopped job is continued; a complete one is measured again.
        is_rest = before is not None and before.steps == steps and not before.is_complete
        # Before the job is replaced, because `found` includes what that job has measured.
        self._measured = self.found
        job = self._job = MeasurementJob(
            steps,
            measure_step=self._measure_step,
            skips=self._model.skips,
            report=lambda: self._report(job),
            n_done=before.n_done if before is not None and is_rest else 0,
        )
        return job

    def _report(self, job: MeasurementJob) -> None:
        if self._panel is not None:
            self._panel.report(job)
            # Drawing takes longer than a quick step, so a job draws only about twenty pictures.
            if not job.is_running or job.n_done % max(1, len(job.steps) // _N_PICTURES) == 0:
                self._panel.pace.ask()


def _axes(scene: Scene) -> "Axes":
    """Draw a scene on a new figure, whose margins are computed from its texts."""
    from matplotlib.figure import Figure as Canvas

    with style():
        canvas = Canvas(figsize=_SIZE_IN, layout="constrained")
        ax = canvas.add_subplot()
        scene.plot(ax)
        for marker in scene.markers:
            marker.draw(ax)
        # Without this, matplotlib reads text between two dollar signs as a formula.
        ax.set_title(visible(scene.title), parse_math=False)
    return ax


def _traits(scene: Scene, renderer: Renderer) -> dict[str, Any]:
    """Render a scene, and return the traits for the widget."""
    if scene.empty:
        return {"empty": visible(scene.empty), "words": []}
    drawn = renderer.draw(scene)
    hints = (visible(spot.hint) for spot in scene.spots)
    return {
        "png": drawn.png,
        "alt": visible(" ".join((drawn.description, *scene.words))),
        "width": renderer.width_px,
        "spots": [[*place, hint] for place, hint in zip(drawn.spots, hints, strict=True)],
        "legend": [entry._asdict() for entry in drawn.legend],
        "markers": [list(marker) for marker in drawn.markers],
        "words": [visible(words) for words in scene.words],
        "empty": "",
    }
