"""The machine explorer: a small program for a GPU that you edit on its picture."""

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpulab.core import shell
from gpulab.core.disk import write_whole
from gpulab.core.errors import GpulabError, InvalidOptionError, shown
from gpulab.core.requirements import PATH
from gpulab.figures import widgets
from gpulab.views.machine._challenges import Attempt, attempt, challenge
from gpulab.views.machine._code import code
from gpulab.views.machine._edits import EDITS, SETTING
from gpulab.views.machine._playback import play
from gpulab.views.machine._program import MachineProgram
from gpulab.views.machine._readings import READING_NAMES, MethodReading, own_readings, readings
from gpulab.views.machine._starts import STARTS, methods_of, start
from gpulab.views.machine._still import still_html
from gpulab.views.machine._view import view_of
from gpulab.views.machine._words import playback_words, reading_words

_MOST_UNDONE = 200
_MOST_TRIED = 200
_REST_S = 2.0  # without a change, before the still picture is drawn, which takes a quarter second
_ACTIONS = (*EDITS, "begin", "undo", "redo", "reset", "show all methods")


class MachineExplorer:
    """A small GPU program on lanes for host, streams and engines, and each method's reading.

    :func:`machine_explorer` makes it. Every change runs the simulator of the virtual GPU again;
    nothing is measured, and no GPU is needed.

    Examples
    --------
    >>> import gpulab
    >>> machine = gpulab.explorers.machine_explorer("stopwatch")
    >>> machine.readings[-1].truth_us > 0
    True
    """

    def __init__(self, program: MachineProgram, methods: tuple[str, ...] = READING_NAMES) -> None:
        self._methods = methods
        self._first = self._program = program
        self._challenge = ""
        self._tried: list[Attempt] = []
        self._undone: list[MachineProgram] = []
        self._done: list[MachineProgram] = []
        self._gesture: object = None
        self._judged_gesture: object = None
        self._judged: Any = None
        self._problem: dict[str, Any] = {}
        self._answer = 0
        self._widget: Any = None
        self._still: Any = None
        # The widget finds its still picture by this id, to hide it. It is random, because a
        # notebook may have several machines, also from earlier kernels.
        self._mark = f"gpulab-still-{secrets.token_hex(4)}"
        self._loop = widgets.JupyterLoop()
        self._n_changes = 0
        self._run()

    @property
    def program(self) -> MachineProgram:
        """The program on the machine; set it to replace the program."""
        return self._program

    @program.setter
    def program(self, program: MachineProgram) -> None:
        """Replace the program; :meth:`undo` takes it back."""
        self._change(program, None)
        self._send()

    @property
    def readings(self) -> tuple[MethodReading, ...]:
        """The readings of the methods that are shown, after the program's own ones."""
        return self._readings

    @property
    def words(self) -> tuple[str, ...]:
        """A description of the picture, in sentences."""
        return (*playback_words(self._playback), *map(reading_words, self._readings))

    @property
    def code(self) -> str:
        """The program as PyTorch code."""
        return code(self._program)

    @property
    def link(self) -> str:
        """One line of Python that opens a machine with this program."""
        return f"gpulab.explorers.machine_explorer({self._program.to_json()!r})"

    @property
    def tried(self) -> tuple[Attempt, ...]:
        """The attempts at challenges, in order."""
        return tuple(self._tried)

    def begin(self, name: str | None) -> None:
        """Start a challenge with its program; None ends the current challenge.

        Raises
        ------
        UnknownNameError
            If there is no challenge of this name.
        """
        if name is not None:
            self._first = challenge(name).program
            self._methods = methods_of(challenge(name).start)
        self._challenge = name or ""
        self._change(self._program if name is None else self._first, None)
        self._send()

    def show_all_methods(self) -> None:
        """Show the readings of the methods of later lessons, too."""
        self._methods = READING_NAMES
        self._run()
        self._send()

    def undo(self) -> None:
        """Undo the last change, if there is one."""
        if self._done:
            self._undone.append(self._program)
            self._put(self._done.pop())
        self._send()

    def redo(self) -> None:
        """Redo the change that was undone last."""
        if self._undone:
            self._done.append(self._program)
            self._put(self._undone.pop())
        self._send()

    def reset(self) -> None:
        """Go back to the first program; this can be undone, too."""
        self._change(self._first, None)
        self._send()

    def save(self, path: str | Path) -> Path:
        """Write the program as JSON; :func:`machine_explorer` accepts the text of the file.

        Raises
        ------
        InvalidOptionError
            If the name does not end in ``.json``.
        """
        PATH.check(path=path)
        path = Path(path)
        if path.suffix != ".json":
            raise InvalidOptionError(f"path={str(path)!r}; its name must end in .json")
        write_whole(path, self._program.to_json(indent=1).encode())
        return path

    @property
    def widget(self) -> Any:  # noqa: ANN401 # anywidget's own
        """The machine as a widget, for a layout of your own."""
        if self._widget is None:
            self._widget = widgets.view_class("machine")(view=self._view())
            widgets.listen(self._widget, self._loop.in_turn(self._receive))
        return self._widget

    def _receive(self, content: Mapping[str, Any]) -> None:
        """Handle a message of the page; an error is shown at the operation that it is about."""
        # A page may be older than this kernel. "hurry" is sent only for its acknowledgement.
        if content.get("do") not in _ACTIONS:
            return
        self._answer = content.get("number", self._answer)
        self._problem = {}
        try:
            self._do(content)
        except GpulabError as error:
            self._problem = {"text": str(error), "place": content.get("place"), **_field(content)}
        except (LookupError, TypeError, ValueError, OverflowError):  # no message of our page
            pass
        finally:
            self._send()  # in any case, because the page waits for an answer

    def _do(self, content: Mapping[str, Any]) -> None:
        what = content["do"]
        if what in EDITS:
            self._change(EDITS[what](self._program, content), content.get("gesture"))
        elif what == "begin":
            self.begin(content["name"] or None)
        else:
            actions = {"undo": self.undo, "redo": self.redo, "reset": self.reset}
            actions.get(what, self.show_all_methods)()

    def __str__(self) -> str:
        return "\n".join(self.words)

    __repr__ = __str__

    def _ipython_display_(self) -> None:
        from IPython.display import display

        text = {"text/plain": str(self), "text/html": self._still_html()}
        if not shell.is_watched():
            display(text, raw=True)  # type: ignore[no-untyped-call]  # IPython's gap
            return
        # Two outputs: the widget, and a still picture for a page without a kernel. The picture has
        # its own output so that it can be updated without making the widget anew.
        self._still = display(text, raw=True, display_id=True)  # type: ignore[no-untyped-call]  # as above
        display(widgets.widget_data(self.widget), raw=True)  # type: ignore[no-untyped-call]  # as above

    def _still_html(self) -> str:
        return still_html(self._playback, self._readings, self.words, self._mark)

    def _change(self, program: MachineProgram, gesture: object) -> None:
        """Replace the program; all steps of one gesture, such as a drag, are undone together."""
        # Nothing to undo, but a new challenge must judge the same program again.
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
        self._readings = (
            *own_readings(self._playback),
            *readings(self._program, self._methods),
        )
        self._judge()

    def _judge(self) -> None:
        """Judge the program and add the attempt, unless it equals the one before."""
        if not self._challenge:
            return
        judged = self._judged = attempt(self._challenge, self._playback, self._tried)
        is_new = not self._tried or self._tried[-1] != judged
        if not is_new or self._program == self._first:
            return
        # All steps of a drag are one attempt: each replaces the one before.
        is_continued = self._gesture is not None and self._gesture == self._judged_gesture
        self._judged_gesture = self._gesture
        before = self._tried[:-1] if is_continued else self._tried
        self._tried = [*before, judged][-_MOST_TRIED:]

    def _send(self) -> None:
        if self._widget is None:
            return
        self._widget.view = self._view()
        self._n_changes += 1
        number = self._n_changes
        self._loop.later(_REST_S, lambda: self._rest(number))

    def _rest(self, number: int) -> None:
        """Update the still picture when no change has come for a moment."""
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
            "has_all_methods": self._methods == READING_NAMES,
            "can_undo": bool(self._done),
            "can_redo": bool(self._undone),
            "still": self._mark,
            **self._challenge_view(),
        }

    def _challenge_view(self) -> dict[str, Any]:
        if not self._challenge:
            return {"challenge": "", "goal": "", "said": "", "tried": []}
        attempts = [each for each in self._tried if each.challenge == self._challenge]
        return {
            "challenge": self._challenge,
            "goal": challenge(self._challenge).goal,
            "said": self._judged.said,
            "tried": [each.said for each in attempts],
        }


def _field(content: Mapping[str, Any]) -> dict[str, Any]:
    return {"field": content.get("field", ""), "value": content.get("value")}


def machine_explorer(
    program: str | MachineProgram = "stopwatch",
    *,
    challenge: str | None = None,  # the word that learners know
    **settings: object,
) -> MachineExplorer:
    """Return a small GPU program that you edit on its picture, with all methods' readings.

    Drag the end of a kernel or of a copy to change its length, drag it to another stream, and add
    operations. Beside the picture you see what timing methods would read, and why a reading is
    wrong: at first those that the lesson of the program knows, and all of them on request. The
    simulator of the virtual GPU computes all of it; nothing is measured.

    Parameters
    ----------
    program
        The name of a program, e.g. ``"stopwatch"`` or ``"streams"``, the ``program`` of another
        explorer, or the JSON text that ``explorer.save()`` wrote.
    challenge
        Name of a challenge to start, e.g. ``"right stopwatch"``.
    **settings
        ``launch_us``, ``queue_depth``, ``repetitions`` or ``n_streams`` of the program.

    Returns
    -------
    MachineExplorer
        Show it as the last line of a cell. ``program``, ``readings``, ``words``, ``code`` and
        ``tried`` contain what it shows.

    Raises
    ------
    UnknownNameError
        If there is no program, challenge or setting of this name.
    SchemaVersionError
        If a text was written by another version, or is damaged.
    InvalidOptionError
        If a setting has a wrong value, or the program is too large.

    Examples
    --------
    >>> import gpulab
    >>> machine = gpulab.explorers.machine_explorer("stopwatch", launch_us=4.0)
    >>> machine.program.launch_us
    4.0
    """
    opened = _opened(program)
    for name in settings:
        SETTING.check(setting=name)
    changed: Any = settings
    methods = methods_of(program) if isinstance(program, str) else READING_NAMES
    explorer = MachineExplorer(replace(opened, **changed), methods)
    if challenge is not None:
        explorer.begin(challenge)
    return explorer


def _opened(program: str | MachineProgram) -> MachineProgram:
    if isinstance(program, MachineProgram):
        return program
    if not isinstance(program, str):
        raise InvalidOptionError(
            f"program={shown(program)}; it must be the name of a program to begin with "
            f"({', '.join(STARTS)}), a MachineProgram, or the text that was saved"
        )
    # Only JSON begins with a brace, no name of a program does.
    is_saved = program.lstrip().startswith("{")
    return MachineProgram.from_json(program) if is_saved else start(program)
