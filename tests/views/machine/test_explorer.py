"""The machine explorer without a browser: messages, undo, challenges, saving and display."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpulab.core.errors import InvalidOptionError, SchemaVersionError, UnknownNameError
from gpulab.views.explorers import MachineExplorer, machine_explorer
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.views.machine._readings import READING_NAMES
from gpulab.views.machine._starts import start

SYNCHRONIZE = {"do": "add", "kind": "synchronize", "place": 2, "stream": 0, "is_pinned": True}


def longer(value: float, gesture: str | None = None, number: int = 1) -> dict[str, Any]:
    """Return the message that sets the length of the stopwatch's kernel."""
    message = {"do": "set", "place": 1, "field": "duration_us", "value": value}
    return {**message, "gesture": gesture, "number": number}


def kinds(explorer: MachineExplorer) -> list[str]:
    """Return the kinds of the operations."""
    return [operation.kind for operation in explorer.program.operations]


def test_a_message_changes_the_program_and_is_answered() -> None:
    """The answer to a message has its number, the changed program, readings, words and code."""
    explorer = machine_explorer("stopwatch")
    widget = explorer.widget
    explorer._receive(longer(300.0, number=7))
    view = widget.view
    assert (view["answer"], view["problem"]) == (7, {})
    assert view["operations"][1]["duration_us"] == 300.0
    assert view["end"] == pytest.approx(307.85)
    assert view["readings"][0]["name"] == "your stopwatch"
    assert view["words"] == list(explorer.words)
    assert view["source"] == "computed: virtual NVIDIA H200"
    assert "torch.cuda" in view["code"]
    assert json.loads(json.dumps(view)) == view  # it is sent as JSON


def names(explorer: MachineExplorer) -> list[str]:
    """Return the names of the readings that the page shows."""
    return [reading["name"] for reading in explorer.widget.view["readings"]]


def test_a_machine_opens_with_the_methods_of_its_lesson() -> None:
    """Lesson 01 has its own stopwatch alone; a button and later challenges bring the others."""
    explorer = machine_explorer("stopwatch", challenge="right stopwatch")
    assert names(explorer) == ["your stopwatch"]
    assert names(machine_explorer("synchronize")) == ["your stopwatch", "naive", "synchronized"]
    assert not explorer.widget.view["has_all_methods"]
    explorer._receive({"do": "show all methods"})
    assert names(explorer) == ["your stopwatch", *READING_NAMES]
    assert explorer.widget.view["has_all_methods"]
    explorer = machine_explorer("stopwatch")
    explorer._receive({"do": "begin", "name": "three times"})
    assert names(explorer) == ["your events", "naive", "synchronized", "events"]
    # A program of one's own is of no lesson.
    assert names(machine_explorer(start("stopwatch"))) == ["your stopwatch", *READING_NAMES]


def test_a_message_sent_only_for_its_acknowledgement_is_not_answered() -> None:
    """The page sends it to get its answer sooner: it changes nothing, and the answer stays."""
    explorer = machine_explorer("stopwatch")
    widget = explorer.widget
    explorer._receive(longer(300.0, number=7))
    view = widget.view
    explorer._receive({"do": "hurry"})
    assert widget.view is view


def test_each_message_is_an_edit_of_the_program() -> None:
    """Messages add, move, set, tune and remove; an added operation gets its event and buffer."""
    explorer = machine_explorer("empty")
    for place, kind in enumerate(("kernel", "record", "wait", "copy in")):
        message = {**SYNCHRONIZE, "kind": kind, "place": place, "stream": int(kind == "wait")}
        explorer._receive(message)
    operations = explorer.program.operations
    assert [each.event for each in operations] == ["", "a", "a", ""]
    assert (operations[3].buffer, explorer.program.n_streams) == ("y", 2)
    explorer._receive({"do": "move", "place": 0, "to": 2, "stream": 1})
    assert kinds(explorer) == ["record", "wait", "kernel", "copy in"]
    assert explorer.program.operations[2].stream == 1
    explorer._receive({"do": "set", "place": 3, "field": "is_pinned", "value": False})
    assert explorer.program.operations[3].duration_us > 40
    explorer._receive({"do": "tune", "field": "repetitions", "value": 5})
    assert explorer.program.repetitions == 5
    explorer._receive({"do": "remove", "place": 0})
    assert kinds(explorer) == ["wait", "kernel", "copy in"]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (longer(0.0), "duration_us=0.0; it must be a number from 0.5 to 10,000 (microseconds)"),
        (longer(-5.0), "duration_us=-5.0; it must be a number from 0.5 to 10,000 (microseconds)"),
        (
            {"do": "set", "place": 1, "field": "event", "value": "a b"},
            "event='a b'; it must be a Python name of at most 12 characters, or empty",
        ),
        (
            {"do": "tune", "field": "repetitions", "value": 5_000},
            "repetitions=5000; it must be a whole number from 1 to 1,000",
        ),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_lost(message: dict[str, Any], text: str) -> None:
    """The program does not change, and the message names the field and its allowed values."""
    explorer = machine_explorer("stopwatch")
    widget = explorer.widget
    explorer._receive(message)
    problem = widget.view["problem"]
    assert (problem["text"], problem["field"]) == (text, message["field"])
    assert explorer.program == start("stopwatch")
    explorer._receive(longer(30.0))
    assert widget.view["problem"] == {}


def test_undo_reverts_a_whole_gesture() -> None:
    """Undo reverts all steps of a drag at once, redo repeats them, and reset can be undone."""
    explorer = machine_explorer("stopwatch")
    for value in (210.0, 220.0, 230.0):
        explorer._receive(longer(value, gesture="1"))
    explorer._receive(SYNCHRONIZE)
    explorer._receive({"do": "undo"})
    explorer._receive({"do": "undo"})
    assert explorer.program == start("stopwatch")
    explorer._receive({"do": "undo"})
    assert explorer.program == start("stopwatch")
    explorer._receive({"do": "redo"})
    assert explorer.program.operations[1].duration_us == 230.0
    explorer.undo()
    explorer.redo()
    explorer.redo()
    assert kinds(explorer) == ["clock", "kernel", "synchronize", "clock"]
    explorer.undo()
    explorer._receive(longer(250.0))
    explorer.redo()  # after another change there is nothing to redo
    assert kinds(explorer) == ["clock", "kernel", "clock"]
    explorer._receive({"do": "reset"})
    assert explorer.program == start("stopwatch")
    explorer.undo()
    assert explorer.program.operations[1].duration_us == 250.0


def test_a_challenge_remembers_the_attempts() -> None:
    """Each changed program is one attempt, and a drag counts as one, by its end."""
    explorer = machine_explorer(challenge="right stopwatch")
    widget = explorer.widget
    assert widget.view["said"] == "The stopwatch reads 5.05 µs and the work takes 200 µs."
    for value in (210.0, 300.0):
        explorer._receive(longer(value, gesture="1"))
    explorer._receive({**SYNCHRONIZE, "gesture": None})
    assert [each.said for each in explorer.tried] == [
        "The stopwatch reads 5.05 µs and the work takes 300 µs.",
        "",
    ]
    assert widget.view["tried"] == [each.said for each in explorer.tried]
    assert (widget.view["goal"][:4], widget.view["said"]) == ("Make", "")
    explorer.begin(None)
    assert (widget.view["goal"], len(explorer.tried)) == ("", 2)


def test_the_program_is_saved_and_restored(tmp_path: Path) -> None:
    """The file and the link restore the program."""
    explorer = machine_explorer(challenge="right stopwatch")
    explorer._receive(SYNCHRONIZE)
    path = explorer.save(tmp_path / "machine.json")
    again = machine_explorer(path.read_text("utf-8"))
    assert again.program == explorer.program
    assert eval(explorer.link, {"gpulab": __import__("gpulab")}).program == explorer.program
    with pytest.raises(InvalidOptionError, match=r"its name must end in \.json$"):
        explorer.save(tmp_path / "machine.txt")
    with pytest.raises(SchemaVersionError, match=r"have the schema 'gpulab.program/0' and this"):
        machine_explorer(path.read_text("utf-8").replace("program/1", "program/0"))


def test_settings_are_those_of_the_program() -> None:
    """Settings of the program can be given; an unknown name and a long program are refused."""
    assert machine_explorer("queue", repetitions=7, queue_depth=8).program.repetitions == 7
    with pytest.raises(
        UnknownNameError, match=r"^unknown setting of the machine 'turns'; Known: "
    ):
        machine_explorer(turns=3)
    with pytest.raises(InvalidOptionError, match=r"^a program of 10,000 operations; the machine"):
        machine_explorer(MachineProgram((ProgramOperation("kernel"),) * 10_000))


def test_without_a_front_end_a_still_picture_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook without a front end gets one output: a picture with its text alternative."""
    shown: list[dict[str, str]] = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    explorer = machine_explorer("streams")
    explorer._ipython_display_()
    (data,) = shown
    assert data["text/plain"] == str(explorer) == "\n".join(explorer.words)
    assert data["text/html"].count('<img src="data:image/svg+xml,') == 1
    assert 'alt="1. copy in of y, pageable on stream 0, 60.0' in data["text/html"]
