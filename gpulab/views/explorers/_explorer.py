"""The explorer: choices that you change, and the figure, table and measurements they lead to."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from gpulab.core import shell
from gpulab.core.disk import write_whole
from gpulab.core.errors import GpulabError, InvalidOptionError, UnknownNameError
from gpulab.core.foreign_text import visible
from gpulab.core.markup import clean
from gpulab.core.requirements import PATH, check_fields
from gpulab.figures import Figure, widgets
from gpulab.views.explorers._scene import Measured, Model, Selector, State, Step
from gpulab.views.explorers._scheduling import MeasurementJob
from gpulab.workloads.sweeps import Point

if TYPE_CHECKING:
    import pandas as pd


_SUFFIXES = (".png", ".svg", ".pdf", ".csv")
_N_REPORTS = 20  # while a job runs


class Explorer(Generic[State]):
    """A picture that follows your choices; a notebook shows it with controls.

    The page draws it by itself, so it also works without a kernel, as on an exported page. Nothing
    is measured until you press the button or call :meth:`measure`. Measured points stay when
    choices change.

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
        self._measured = tuple(found)
        self._job: MeasurementJob | None = None
        self._widget: Any = None
        # Widget and HTML are two outputs of a cell, which find each other by this mark.
        self._mark = secrets.token_hex(6)
        self._loop = widgets.JupyterLoop()

    @property
    def state(self) -> State:
        """Your choices as a frozen dataclass; :meth:`choose` changes them."""
        return self._state

    @property
    def choices(self) -> tuple[Selector, ...]:
        """The choices that are offered now, with their options."""
        return self._model.choices(self._state)

    @property
    def code(self) -> str:
        """The line of Python that opens the explorer with these choices, without measurements."""
        first = self._first
        # Your own recordings too, because they are among the options and come first.
        chosen = [f"recordings={self._model.own_files!r}"] if self._model.own_files else []
        chosen += [
            f"{choice.name}={getattr(self._state, choice.name)!r}"
            for choice in self.choices
            if getattr(self._state, choice.name) != getattr(first, choice.name)
        ]
        return f"gpulab.explorers.{self._model.name}_explorer({', '.join(chosen)})"

    @property
    def _first(self) -> State:
        """The state without any choice; an empty default stands for the first option."""
        return self._model.settled(type(self._state)())

    @property
    def found(self) -> tuple[Measured, ...]:
        """The points and ceilings that were measured here, in the order taken."""
        return (*self._measured, *(self._job.found if self._job else ()))

    @property
    def points(self) -> tuple[Point, ...]:
        """The points that were measured here."""
        return tuple(item for item in self.found if isinstance(item, Point))

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
        self._state = state
        self._send_state()

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
        """Return a figure of what is shown, with its description and table.

        Raises
        ------
        InvalidOptionError
            If there is nothing to draw; the message says what to do.
        """
        return self._model.figure(self._state, self.found)

    def to_frame(self) -> "pd.DataFrame":
        """Return the table of the points that are shown, one row each; times are in seconds."""
        import pandas as pd

        try:
            return self._model.frame(self._state, self.found)
        except GpulabError:  # nothing to show; the words say why
            return pd.DataFrame()

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
        if suffix == ".csv":
            return self._model.frame(self._state, self.found).to_csv(index=False).encode()
        return self.figure().saved(suffix.removeprefix("."))

    @property
    def widget(self) -> Any:  # noqa: ANN401 # ipywidgets has no types
        """Controls and picture as a widget, for a layout of your own."""
        if self._widget is None:
            self._widget = widgets.view_class(self._model.name)(view={"mark": ""})
            receive = self._loop.in_turn(self._receive)

            # Stop is not in turn: it must arrive while a step runs.
            def handle(content: Mapping[str, Any]) -> None:
                if content.get("do") == "stop":
                    self.stop()
                else:
                    receive(content)

            widgets.listen(self._widget, handle)
        return self._widget

    def close(self) -> None:
        """Stop measuring and take the kernel from the page; points and choices stay."""
        self.stop()
        if self._widget is not None:
            self._widget.close()
        self._widget = None

    def __str__(self) -> str:
        try:
            return visible("\n".join(self._model.words(self._state, self.found)))
        except GpulabError as error:
            return visible(str(error))

    __repr__ = __str__

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self._shown(), raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
        if shell.is_watched():
            self.widget.view = {"mark": self._mark}
            display(widgets.widget_data(self.widget), raw=True)  # type: ignore[no-untyped-call]  # as above

    def _shown(self) -> dict[str, str]:
        """Return the page of the explorer, which runs by itself, and its words."""
        return {
            "text/plain": str(self),
            "text/html": widgets.page_html(
                self._model.name, self._mark, self._numbers(), self._still()
            ),
        }

    def _still(self) -> str:
        """Return the HTML that a page shows which runs no script."""
        # A figure takes a second, which a reader at a front end would wait for.
        if not shell.is_watched():
            with suppress(GpulabError):  # nothing to draw
                return str(self.figure()._repr_mimebundle_()["text/html"])
        return "".join(f"<p>{clean(line)}</p>" for line in str(self).splitlines())

    def _numbers(self) -> dict[str, Any]:
        """Return everything that the page needs at first."""
        numbers = self._model.base_numbers()
        merge(numbers, self._model.state_numbers(self._state))
        merge(numbers, self._model.own_numbers(self.found))
        first = {choice.name: getattr(self._first, choice.name) for choice in self.choices}
        known = {"kind": self._model.name, "recordings": self._model.own_files}
        return {**numbers, **known, "first": first, "state": self._state_numbers()}

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Handle a message of the page; ``widgets/chart/explorer.js`` sends them."""
        what = content.get("do")
        if what == "measure":
            if self._job is None or not self._job.is_running:
                self._begin().start(self._loop.asyncio_loop)
        elif what == "hello":
            self._send_state()
        else:
            if "state" in content:
                state = self._read(content["state"])
                if state is None:
                    return
                self._state = state
            if what == "numbers" and "state" in content:
                self._send(numbers=self._model.state_numbers(self._state))
            elif what == "numbers":
                self._send(numbers=self._numbers())

    def _state_numbers(self) -> dict[str, Any]:
        """Return the state as the page has it."""
        state: Any = self._state
        return asdict(state)

    def _read(self, sent: object) -> State | None:
        """Return the state that the page has sent, or None if it is not one of this version."""
        if not isinstance(sent, Mapping):
            return None
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in sent.items()
        }
        kind: Any = type(self._state)
        try:
            state: State = kind(**values)
            check_fields(state)
            return self._model.settled(state)
        # No name, type or size that is known here, or the choices of another version.
        except (GpulabError, TypeError, ValueError, OverflowError):
            return None

    def _send_state(self) -> None:
        self._send(
            state=self._state_numbers(),
            numbers=self._model.state_numbers(self._state),
        )

    def _send(self, **message: object) -> None:
        if self._widget is not None:
            self._widget.send(message)

    def _begin(self) -> MeasurementJob:
        """Return a new job for the current choices; points of the previous job are kept."""
        self.stop()
        before, steps = self._job, self._model.steps(self._state)
        # A stopped job is continued; a complete one is measured again.
        is_continued = before is not None and before.steps == steps and not before.is_complete
        # Before the job is replaced, because `found` includes what that job has measured.
        self._measured = self.found
        job = self._job = MeasurementJob(
            steps,
            measure_step=self._measure_step,
            report=lambda: self._report(job),
            n_done=before.n_done if before is not None and is_continued else 0,
        )
        return job

    def _report(self, job: MeasurementJob) -> None:
        if self._widget is None:
            return
        total = len(job.steps) if job.is_running else 0
        progress = {"text": visible(str(job)), "done": job.n_done, "total": total}
        # All points travel each time, so a job sends them only about twenty times.
        if not job.is_running or job.n_done % max(1, len(job.steps) // _N_REPORTS) == 0:
            self._send(progress=progress, numbers=self._model.own_numbers(self.found))
        else:
            self._send(progress=progress)


def merge(known: dict[str, Any], added: dict[str, Any]) -> None:
    """Add the entries of nested dicts to another one."""
    for name, value in added.items():
        if isinstance(value, dict) and isinstance(known.get(name), dict):
            merge(known[name], value)
        else:
            known[name] = value
