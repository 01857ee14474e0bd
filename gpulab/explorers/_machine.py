"""The machine: a small program for a GPU that is played with on its own picture."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpulab import widgets
from gpulab.disk import write_whole
from gpulab.errors import GpulabError, InvalidOptionError
from gpulab.explorers._machine_edits import EDITS, SETTING
from gpulab.explorers._machine_still import still_html
from gpulab.explorers._machine_view import view_of
from gpulab.machine import (
    STARTS,
    Attempt,
    MachineProgram,
    MachineState,
    MethodReading,
    Playback,
    attempt,
    challenge,
    code,
    own_readings,
    play,
    playback_words,
    reading_words,
    readings,
    start,
)
from gpulab.requirements import PATH
from gpulab.widgets import JupyterLoop

_MOST_UNDONE = 200
_MOST_TRIED = 200
_REST_S = 0.6  # without a change, before the still picture follows


class MachineExplorer:
    """A program on the lanes host, streams and engines, with what each method reads of it.

    It is made by :func:`machine_explorer`. Every change runs the simulator of the virtual GPU
    again: nothing is measured, and no GPU is needed.
    """

    def __init__(self, state: MachineState) -> None:
        self._first = self._program = state.program
        self._challenge = state.challenge
        self._tried = list(state.tried)
        self._undone: list[MachineProgram] = []
        self._done: list[MachineProgram] = []
        self._gesture: object = None
        self._judged_gesture: object = None
        self._judged: Any = None
        self._problem: dict[str, Any] = {}
        self._answer = 0
        self._widget: Any = None
        self._still: Any = None
        self._mark = f"gpulab-still-{secrets.token_hex(4)}"
        self._loop = JupyterLoop()
        self._n_changes = 0
        self._run()

    @property
    def program(self) -> MachineProgram:
        """What is on the machine; set it to put another program there."""
        return self._program

    @program.setter
    def program(self, program: MachineProgram) -> None:
        """Put another program on the machine; that can be undone."""
        self._change(program, None)
        self._send()

    @property
    def playback(self) -> Playback:
        """What the program does, call by call."""
        return self._playback

    @property
    def readings(self) -> tuple[MethodReading, ...]:
        """What each method reads now, the program's own stopwatch and events first."""
        return self._readings

    @property
    def words(self) -> tuple[str, ...]:
        """What the picture shows, in words."""
        return (*playback_words(self._playback), *map(reading_words, self._readings))

    @property
    def code(self) -> str:
        """The program as PyTorch code."""
        return code(self._program)

    @property
    def link(self) -> str:
        """One line of Python that puts this program on a machine."""
        return f"gpulab.explorers.machine_explorer({self._program.to_json()!r})"

    @property
    def tried(self) -> tuple[Attempt, ...]:
        """What was tried for challenges, in its order."""
        return tuple(self._tried)

    @property
    def state(self) -> MachineState:
        """Everything that is kept: the program, the challenge, and what was tried."""
        return MachineState(self._program, self._challenge, self.tried)

    def begin(self, name: str | None) -> None:
        """Begin a challenge, with its program; None ends the one that runs.

        Raises
        ------
        UnknownNameError
            If there is no such challenge.
        """
        if name is not None:
            self._first = challenge(name).program
        self._challenge = name or ""
        self._change(self._program if name is None else self._first, None)
        self._send()

    def undo(self) -> None:
        """Take the last change back, if there is one."""
        if self._done:
            self._undone.append(self._program)
            self._put(self._done.pop())
        self._send()

    def redo(self) -> None:
        """Make the change again that was taken back."""
        if self._undone:
            self._done.append(self._program)
            self._put(self._undone.pop())
        self._send()

    def reset(self) -> None:
        """Put the first program back; that can be undone, too."""
        self._change(self._first, None)
        self._send()

    def save(self, path: str | Path) -> Path:
        """Write the state as JSON; :func:`machine_explorer` takes its text.

        Raises
        ------
        InvalidOptionError
            If the name does not end in ``.json``.
        """
        PATH.check(path=path)
        path = Path(path)
        if path.suffix != ".json":
            raise InvalidOptionError(f"path={str(path)!r}; its name must end in .json")
        write_whole(path, self.state.to_json(indent=1).encode())
        return path

    @property
    def widget(self) -> Any:  # noqa: ANN401 # anywidget's own
        """The machine as a widget, for a place in a layout of your own."""
        if self._widget is None:
            self._widget = widgets.machine_class()(view=self._view())
            receive = self._loop.in_turn(self._receive)
            self._widget.on_msg(lambda _, content, __: receive(content))
        return self._widget

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Do what a message of the page asks for; a mistake is said at its place."""
        self._answer = content.get("number", self._answer)
        self._problem = {}
        try:
            self._do(content)
        except GpulabError as error:
            self._problem = {"text": str(error), "place": content.get("place"), **_field(content)}
        finally:
            self._send()  # a page that gets no answer waits for ever

    def _do(self, content: Mapping[str, Any]) -> None:
        what = content["do"]
        if what in EDITS:
            self._change(EDITS[what](self._program, content), content.get("gesture"))
        elif what == "begin":
            self.begin(content["name"] or None)
        else:
            {"undo": self.undo, "redo": self.redo, "reset": self.reset}[what]()

    def __str__(self) -> str:
        return "\n".join(self.words)

    __repr__ = __str__

    def _ipython_display_(self) -> None:
        from IPython.display import display

        text = {"text/plain": str(self), "text/html": self._still_html()}
        if not widgets.is_watched():
            display(text, raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
            return
        # Two outputs: a page that is opened without a kernel shows the still one.
        self._still = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above
        display(widgets.widget_data(self.widget), raw=True)  # type: ignore[no-untyped-call]  # as above

    def _still_html(self) -> str:
        return still_html(self._playback, self._readings, self.words, self._mark)

    def _change(self, program: MachineProgram, gesture: object) -> None:
        """Put a changed program on the machine; the steps of one gesture are undone together."""
        if program == self._program and gesture is None:
            self._put(program)
            return
        if gesture is None or gesture != self._gesture:
            self._done = [*self._done, self._program][-_MOST_UNDONE:]
        self._gesture = gesture
        self._undone.clear()
        self._put(program)

    def _put(self, program: MachineProgram) -> None:
        self._program = program
        self._run()

    def _run(self) -> None:
        self._playback = play(self._program)
        self._readings = (*own_readings(self._playback), *readings(self._program))
        self._judge()

    def _judge(self) -> None:
        """Keep what was tried for the challenge; each program once in a row."""
        if not self._challenge:
            return
        judged = self._judged = attempt(self._challenge, self._playback, self._tried)
        is_new = not self._tried or self._tried[-1] != judged
        if not is_new or self._program == self._first:
            return
        goes_on = self._gesture is not None and self._gesture == self._judged_gesture
        self._judged_gesture = self._gesture
        before = self._tried[:-1] if goes_on else self._tried
        self._tried = [*before, judged][-_MOST_TRIED:]

    def _send(self) -> None:
        if self._widget is None:
            return
        self._widget.view = self._view()
        self._n_changes += 1
        number = self._n_changes
        self._loop.later(_REST_S, lambda: self._rest(number))

    def _rest(self, number: int) -> None:
        """Bring the still picture up to date when nothing moves any more."""
        if number == self._n_changes and self._still is not None:
            text = {"text/plain": str(self), "text/html": self._still_html()}
            self._still.update(text, raw=True)

    def _view(self) -> dict[str, Any]:
        return {
            **view_of(self._playback, self._readings, self.words),
            "code": self.code,
            "link": self.link,
            "answer": self._answer,
            "problem": self._problem,
            "can_undo": bool(self._done),
            "can_redo": bool(self._undone),
            "still": self._mark,
            **self._challenge_view(),
        }

    def _challenge_view(self) -> dict[str, Any]:
        if not self._challenge:
            return {"challenge": "", "goal": "", "said": "", "tried": []}
        mine = [each for each in self._tried if each.challenge == self._challenge]
        return {
            "challenge": self._challenge,
            "goal": challenge(self._challenge).goal,
            "said": self._judged.said,
            "tried": [each.said for each in mine],
        }


def _field(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"field": content.get("field", ""), "value": content.get("value")}


def machine_explorer(
    program: str | MachineProgram | MachineState = "stopwatch",
    *,
    challenge: str | None = None,  # the word that learners know
    **settings: object,
) -> MachineExplorer:
    """Play with a small program for a GPU, on its picture.

    Drag the end of a kernel or of a copy to change how long it is, drag it to another stream, and
    drop in further operations. Beside the picture stands what each timing method would read now,
    and why it is wrong. The simulator of the virtual GPU computes all of it; nothing is measured.

    Parameters
    ----------
    program
        The name of a program to begin with, e.g. ``"stopwatch"`` or ``"streams"``; a
        :class:`gpulab.machine.MachineProgram`; or the JSON text of a program or of a state that
        ``explorer.save()`` wrote.
    challenge
        Name of a challenge to begin with, e.g. ``"right stopwatch"``.
    **settings
        ``launch_us``, ``queue_depth``, ``repetitions`` or ``n_streams`` of the program.

    Returns
    -------
    MachineExplorer
        Show it as the last line of a cell. ``program``, ``readings``, ``words``, ``code`` and
        ``tried`` give what is seen.

    Raises
    ------
    UnknownNameError
        If there is no such program or challenge.
    SchemaVersionError
        If a text was written by another version, or is damaged.
    InvalidOptionError
        If a setting is not one, or a program is too large.
    """
    state = _state_of(program)
    for name in settings:
        SETTING.check(setting=name)
    changed: Any = settings
    explorer = MachineExplorer(replace(state, program=replace(state.program, **changed)))
    if challenge is not None:
        explorer.begin(challenge)
    return explorer


def _state_of(program: str | MachineProgram | MachineState) -> MachineState:
    if isinstance(program, MachineState):
        return program
    if isinstance(program, MachineProgram):
        return MachineState(program)
    if not isinstance(program, str):
        raise InvalidOptionError(
            f"program={program!r}; it must be the name of a program to begin with "
            f"({', '.join(STARTS)}), a MachineProgram, or the text that was saved"
        )
    if program.lstrip().startswith("{"):
        is_program = (
            f'"{MachineProgram.schema}"' in program and f'"{MachineState.schema}"' not in program
        )
        return (
            MachineState(MachineProgram.from_json(program))
            if is_program
            else (MachineState.from_json(program))
        )
    return MachineState(start(program))
