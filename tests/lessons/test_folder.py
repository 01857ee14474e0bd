"""Copying never damages the learner's folder, and every lesson runs, shipped and solved."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from benchmarks import lesson_claims
from benchmarks.common.notebooks import client_of, without_gpu
from docs.extensions import executed
from gpulab.core.errors import LessonFolderError, NoJupyterLabError, NotebookError, PortInUseError
from gpulab.lessons import _build as build
from gpulab.lessons import _folder, _server
from tests.support.jupyterlab import CHROMIUM
from tests.support.lessons import (
    CASES,
    ROOT,
    SOURCES,
    USING_ANSWERS,
    answers_in_sight,
    checked,
    raw_in_sight,
    source_of,
    uses_answers_later,
    with_open_cells,
)
from tests.support.ports import PORTS
from tests.support.refusing import refusal

if TYPE_CHECKING:
    from nbformat import NotebookNode

# The learner's folder

LESSONS = ("00_a.ipynb", "01_b.ipynb", "cases/01_c.ipynb", "page.md")


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the shipped lessons by a folder with two lessons, a case and a page."""
    folder = tmp_path / "shipped"
    (folder / "cases").mkdir(parents=True)
    for name in LESSONS:
        (folder / name).write_text(f"{name} v1")
    monkeypatch.setattr(_folder, "notebooks_folder", lambda: folder)
    return folder


def test_first_copy(shipped: Path, tmp_path: Path) -> None:
    """A new folder gets every lesson and its record, and no checkpoint of an editor."""
    (shipped / ".ipynb_checkpoints").mkdir()
    (shipped / ".ipynb_checkpoints" / "00_a-checkpoint.ipynb").write_text("v1")
    mine = tmp_path / "deep" / "mine"
    assert _folder.copy_lessons(mine) == _folder.CopiedLessons(written=LESSONS)
    copied = [path.relative_to(mine).as_posix() for path in mine.rglob("*") if path.is_file()]
    assert sorted(copied) == [".gpulab.json", *LESSONS]


@pytest.mark.parametrize("seed", range(8))
def test_the_learners_work_is_kept_and_all_else_is_renewed(
    seed: int, shipped: Path, tmp_path: Path
) -> None:
    """After any edits, deletions and new versions: own work stays, other files are the newest.

    A new version of an edited lesson is offered beside it, once.
    """
    random, mine = Random(seed), tmp_path / "mine"
    own: dict[str, str] = {}  # what the learner wrote, by file
    current: dict[str, str] = {}  # the version that each edited lesson was offered last
    _folder.copy_lessons(mine)
    for step in range(40):
        name = random.choice(LESSONS)
        beside = name.replace(".ipynb", ".new.ipynb").replace(".md", ".new.md")
        match random.choice(("edit", "edit beside", "delete", "delete beside", "ship")):
            case "edit":
                current.setdefault(name, (shipped / name).read_text())
                own[name] = f"my work {step}"
                (mine / name).write_text(own[name])
            case "edit beside" if (mine / beside).exists():
                own[beside] = f"my work {step}"
                (mine / beside).write_text(own[beside])
            case "delete":
                (mine / name).unlink()
                own.pop(name, None)
                current.pop(name, None)
            case "delete beside":
                (mine / beside).unlink(missing_ok=True)
                own.pop(beside, None)
            case "ship":
                (shipped / name).write_text(f"version {step}")
        copied = _folder.copy_lessons(mine)
        assert copied.kept == tuple(each for each in LESSONS if each in own)
        assert all((mine / each).read_text() == text for each, text in own.items())
        for each in LESSONS:
            newest, lesson = (shipped / each).read_text(), Path(each)
            offered = lesson.with_suffix(f".new{lesson.suffix}").as_posix()
            if each not in own:
                assert (mine / each).read_text() == newest
            elif current[each] != newest and offered not in own:
                assert offered in copied.beside
                assert (mine / offered).read_text() == newest
                current[each] = newest
            else:
                assert offered not in copied.beside
        assert _folder.copy_lessons(mine) == _folder.CopiedLessons(kept=copied.kept)


@pytest.mark.parametrize(
    "record", ["", "{", "[]", None, '{"00_a.ipynb": ["x"]}', "[" * 200_000, '{"a": 1e400}']
)
def test_without_its_record_nothing_is_overwritten(
    record: str | None, shipped: Path, tmp_path: Path
) -> None:
    """If the record of copies is lost or damaged, every file that differs is kept."""
    mine = tmp_path / "mine"
    _folder.copy_lessons(mine)
    (mine / "00_a.ipynb").write_text("my work")
    (mine / _folder.MANIFEST).unlink()
    if record is not None:
        (mine / _folder.MANIFEST).write_text(record)
    (shipped / "01_b.ipynb").write_text("01_b.ipynb v1")
    assert _folder.copy_lessons(mine).kept == ("00_a.ipynb",)
    assert (mine / "00_a.ipynb").read_text() == "my work"
    assert sorted(json.loads((mine / _folder.MANIFEST).read_text())) == [
        *["00_a.ipynb", "00_a.new.ipynb", *LESSONS[1:]],
    ]


def test_a_full_disk_keeps_the_lessons(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk is full, no lesson changes, and the message says why."""
    mine = tmp_path / "mine"
    _folder.copy_lessons(mine)
    before = {path: path.read_bytes() for path in mine.rglob("*.*") if path.is_file()}
    (shipped / "00_a.ipynb").write_text("00_a.ipynb v2")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refusal(errno.ENOSPC))
        with pytest.raises(LessonFolderError) as error:
            _folder.copy_lessons(mine)
    assert str(error.value) == (
        f"cannot write to {mine} (No space left on device); "
        "name a folder that you own: gpulab lab FOLDER"
    )
    assert {path: path.read_bytes() for path in mine.rglob("*.*") if path.is_file()} == before


def test_folder_that_cannot_be_written(shipped: Path, tmp_path: Path) -> None:
    """The message names a folder that cannot be written, the reason and the cure."""
    assert shipped.is_dir()
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "sub"
    with pytest.raises(LessonFolderError) as error:
        _folder.copy_lessons(folder)
    assert str(error.value) == (
        f"cannot write to {folder} (Not a directory); "
        "name a folder that you own: gpulab lab FOLDER"
    )


def test_installation_without_lessons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message for an installation without lessons says how to repair it."""
    monkeypatch.setattr(_folder, "files", lambda _package: tmp_path / "gpulab")
    with pytest.raises(NotebookError) as error:
        _folder.notebooks_folder()
    assert str(error.value) == (
        f"{tmp_path / 'gpulab' / 'notebooks'} has no lessons; install gpulab again, "
        "or run this in a clone: gpulab build-notebooks"
    )


@pytest.mark.parametrize("folder", ["gpulab/notebooks", "notebooks"])
def test_lessons_of_wheel_and_clone(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lessons are found inside the package of a wheel and beside the package of a clone."""
    expected = tmp_path / folder
    expected.mkdir(parents=True)
    (expected / "00_a.ipynb").touch()
    monkeypatch.setattr(_folder, "files", lambda _package: tmp_path / "gpulab")
    assert _folder.notebooks_folder() == expected


# The notebooks of the clone


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return the source of a small lesson."""
    path = tmp_path / "source" / "00_sample.py"
    path.parent.mkdir()
    path.write_text("# %% [markdown]\n# # A title\n")
    return path


@pytest.mark.slow
def test_build_all_writes_what_has_changed(source: Path) -> None:
    """It returns what changed, also in subfolders; a notebook without a source is refused."""
    notebooks, case = source.parents[1], source.parent / "cases" / "01_case.py"
    case.parent.mkdir()
    case.write_text("# %% [markdown]\n# # A case\n#\n# It uses a GPU.\n")
    names = ("00_sample.ipynb", "cases/01_case.ipynb", "glossary.md")
    assert build.build_all(notebooks, check=True) == names
    assert not (notebooks / "00_sample.ipynb").exists()
    assert build.build_all(notebooks) == names
    assert build.build_all(notebooks) == ()
    built = (notebooks / "cases" / "01_case.ipynb").read_bytes()
    assert built == build.build(case)
    assert b"[GPU](../glossary.md#gpu)" in built
    (notebooks / "00_sample.ipynb").write_bytes(build.build(source) + b"\n")
    assert build.build_all(notebooks, check=True) == ("00_sample.ipynb",)
    # It would be shipped unchecked.
    case.unlink()
    with pytest.raises(NotebookError, match=r"^cases/01_case.ipynb: no source in .*; delete the"):
        build.build_all(notebooks)


def test_build_all_without_sources(tmp_path: Path) -> None:
    """The message for a folder without sources says how to get them."""
    with pytest.raises(NotebookError) as error:
        build.build_all(tmp_path)
    assert str(error.value) == (
        f"{tmp_path / 'source'} has no lessons to build; "
        "install gpulab from a clone: pip install -e ."
    )


# The server


def test_ports() -> None:
    """A given port is used or refused; without one, the first free port is used."""
    with PORTS:
        first = _server.usable_port()
        assert _server.usable_port(first) == first
        listening = socket.create_server((_server.LOOPBACK, first))
    with closing(listening):
        assert _server.usable_port() > first
        with pytest.raises(PortInUseError, match=rf"^port {first} cannot be used \(Address "):
            _server.usable_port(first)


def test_command_keeps_to_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JupyterLab listens on loopback only, and may run as root only if the user is root."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command = _server.lab_command(tmp_path, port=9000, browser=False)
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert set(command[3:]) == {
        "--ServerApp.log_level=ERROR",
        "--LabApp.log_level=ERROR",
        "--ServerApp.ip=127.0.0.1",
        "--ServerApp.port=9000",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={tmp_path}",
        "--ServerApp.open_browser=False",
        "--LabApp.default_url=/lab/tree/00_start_here.ipynb",
    }
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert _server.lab_command(tmp_path, port=9000, browser=True)[-1] == "--allow-root"


def test_environment_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """JupyterLab fetches no news, and the user's own configuration still applies."""
    ours = str(ROOT / "gpulab" / "data" / "jupyter")
    monkeypatch.delenv("JUPYTER_CONFIG_PATH", raising=False)
    assert _server._lab_environment("t")["JUPYTER_CONFIG_PATH"] == ours
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "mine")
    environment = _server._lab_environment("t")
    assert environment["JUPYTER_CONFIG_PATH"] == f"{ours}{os.pathsep}mine"
    assert environment["JUPYTER_TOKEN"] == "t"
    page_config = json.loads((Path(ours) / "labconfig" / "page_config.json").read_text())
    assert page_config == {
        "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}
    }


@pytest.fixture
def _signals() -> Iterator[None]:
    """Restore the signal handlers that serving replaces."""
    before = {number: signal.getsignal(number) for number in _server.STOP_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_missing_jupyterlab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message without JupyterLab has the command that installs it."""
    monkeypatch.setattr(_server, "find_spec", lambda _name: None)
    with pytest.raises(NoJupyterLabError) as error:
        _server.serve(tmp_path, port=1, browser=False, say=print)
    assert str(error.value) == ("JupyterLab is not installed; install it: pip install jupyterlab")


@pytest.mark.usefixtures("_signals")
def test_server_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends before it answers is reported with its exit code."""
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    monkeypatch.setattr(_server, "lab_command", lambda *_args, **_kwargs: command)
    with pytest.raises(NoJupyterLabError) as error:
        _server.serve(tmp_path, port=_server.usable_port(), browser=False, say=print)
    assert str(error.value) == (
        "JupyterLab ended with exit code 3 before it answered; see its message above"
    )
    # A service manager and a closed terminal stop it as Ctrl-C does.
    handlers = [signal.getsignal(number) for number in _server.STOP_SIGNALS]
    assert handlers == [signal.default_int_handler] * 2


@pytest.mark.usefixtures("_signals")
def test_ctrl_c_does_not_reach_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has its own session, and on Windows its own process group."""
    options: dict[str, object] = {}

    def refuse(_command: object, **named: object) -> None:
        options.update(named)
        raise OSError("not started")

    monkeypatch.setattr(_server, "NEW_GROUP", 512)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(OSError, match="not started"):
        _server.serve(tmp_path, port=1, browser=False, say=print)
    assert (options["start_new_session"], options["creationflags"]) == (True, 512)


@pytest.mark.parametrize(
    ("handler", "timeout_s", "ended_by"),
    [("SIG_DFL", _server.STOP_TIMEOUT_S, signal.SIGTERM), ("SIG_IGN", 0.1, signal.SIGKILL)],
)
def test_server_is_stopped(
    handler: str, timeout_s: float, ended_by: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends by SIGTERM; one that ignores it is killed after the time limit."""
    code = f"import signal; signal.signal(signal.SIGTERM, signal.{handler}); print(flush=True); "
    code += "signal.pause()"
    monkeypatch.setattr(_server, "STOP_TIMEOUT_S", timeout_s)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        _server._stop(server)
    assert server.returncode == -ended_by


# The lessons themselves


def test_notebooks_are_as_built() -> None:
    """All notebooks and the glossary in the checkout are what the sources give, byte for byte."""
    assert build.build_all(ROOT / "notebooks", check=True) == ()


def test_an_answer_that_is_in_sight_is_found() -> None:
    """An outcome must not be on the screen before its question; one word or digit may be."""

    def cell(source: str, shown: str = "") -> SimpleNamespace:
        outputs = [{"text": shown}]
        return SimpleNamespace(cell_type="code", source=source, outputs=outputs)

    def asked(before: str, outcome: str) -> list[str]:
        text = SimpleNamespace(cell_type="markdown", source="It takes time.")
        answered = f"No guess. It was {outcome}. Give your guess"
        questions = (
            cell('exercises.predict("01.a")'),
            cell('exercises.compare("01.a", x)', answered),
        )
        return answers_in_sight([text, cell("x", before), *questions])

    assert asked("It took 9.95 µs.", "9.95 µs (virtual NVIDIA H200)") == ["01.a: 9.95 µs"]
    assert asked("They jump once.", "jump once") == ["01.a: jump once"]
    assert asked("It took 9.95 µs.", "95 µs") == []
    assert asked("It took 1 time, yes.", "yes") == []
    assert asked("It took 3 µs.", "3 µs") == []


@pytest.mark.parametrize(
    ("shown", "is_raw"),
    [
        ("'a text'", True),
        ("['250 ms', '301 µs']", True),
        ("{'exp': 1}", True),
        ("took 9.894000e+14 FLOP", True),
        ("2.5e9", False),
        ("1000011.084512", True),
        ("Reading(at_s=1.5)", True),
        ("tensor(12., grad_fn=<SumBackward0>)", True),
        ("a  0.5\nb  12.25\ndtype: float64", True),
        ("one of 'yes', 'no'", False),
        ("a  0.5\nb  12.25", False),
        ("96% off", True),
        ("96 % off", False),
        ("-0.0  0.5", True),
        ("-0.05", False),
        ("word " * 19, False),
        ("word " * 20, True),
    ],
)
def test_values_as_python_writes_them_are_found(shown: str, *, is_raw: bool) -> None:
    """A cell shows texts without quotes, and numbers that people can read."""
    cells = [SimpleNamespace(cell_type="code", outputs=[{"text": shown}])]
    assert raw_in_sight(cells) == ([shown] if is_raw else [])


@pytest.mark.slow
def test_lessons_that_use_answers_are_known() -> None:
    """In all other lessons, no cell reads a name that a learner's cell assigns."""
    assert [source.stem for source in SOURCES if uses_answers_later(source)] == [*USING_ANSWERS]


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is not None, reason="the browser runs these lessons as shipped")
@pytest.mark.parametrize("lesson", USING_ANSWERS)
def test_lesson_runs_unanswered(lesson: str, tmp_path: Path, warm_kernel: Path) -> None:
    """A shipped lesson whose cells use the learner's answers runs without any."""
    import nbformat

    notebook = nbformat.reads(build.build(source_of(lesson)).decode(), as_version=4)
    _execute(checked(notebook, "not tried"), tmp_path, warm_kernel)


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_lesson_runs_solved(source: Path, tmp_path: Path, warm_kernel: Path) -> None:
    """A solved lesson runs, every exercise is right, and every claim has its saved value.

    The learner's cells run as shipped, too. The book reuses the run.
    """
    notebook = build.solved(source)
    n_cells = len(notebook.cells)
    notebook = with_open_cells(checked(notebook, "right"), source)
    _execute_with_claims(notebook, tmp_path, warm_kernel)
    notebook.cells = notebook.cells[1 : 1 + n_cells]
    assert answers_in_sight(notebook.cells) == []
    assert raw_in_sight(notebook.cells) == []
    executed.keep(source, notebook)


@pytest.mark.slow
def test_the_cases_run_in_one_kernel(tmp_path: Path, warm_kernel: Path) -> None:
    """All cases run in one kernel, as shipped and then solved, and give what they gave before."""
    notebooks = [build.clear_solutions(build.read_source(source)) for source in CASES]
    solved = [build.solved(source) for source in CASES]
    notebooks[0].cells = [cell for each in (*notebooks, *solved) for cell in each.cells]
    _execute_with_claims(checked(notebooks[0], "right"), tmp_path, warm_kernel)
    for source, notebook in zip(CASES, solved, strict=True):
        assert raw_in_sight(notebook.cells) == []
        executed.keep(source, notebook)


def _execute_with_claims(notebook: "NotebookNode", folder: Path, kernels: Path) -> None:
    """Run a solved notebook; expect the saved value of each claim, or run lesson_claims again."""
    import nbformat

    notebook.cells.append(nbformat.v4.new_code_cell(lesson_claims.LAST_CELL))
    _execute(notebook, folder, kernels)
    saved = json.loads((ROOT / "gpulab" / "data" / "lesson_claims.json").read_text("utf-8"))
    values = lesson_claims.values_in(notebook)["values"]
    assert lesson_claims.changed(values, saved["claims"]) == []


def _execute(notebook: "NotebookNode", folder: Path, kernels: Path) -> None:
    """Run a notebook in a new kernel, without a time limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(kernels))
        client_of(notebook, folder).execute(env=without_gpu())


@pytest.mark.parametrize("name", [".gpulab.json", "00_start_here.ipynb", "cases"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_out_of_the_folder_is_not_followed(
    shipped: Path, tmp_path: Path, name: str, *, exists: bool
) -> None:
    """What a link in a folder from somebody else points to is neither read nor written."""
    (shipped / "00_start_here.ipynb").touch()
    folder, outside = tmp_path / "lessons", tmp_path / "outside"
    folder.mkdir()
    if exists:
        outside.mkdir() if name == "cases" else outside.write_text("precious")
    (folder / name).symlink_to(outside)
    with pytest.raises(LessonFolderError, match=f"{name}.* is a link to .*outside") as error:
        _folder.copy_lessons(folder)
    assert "\n" not in str(error.value)
    assert outside.exists() == exists
    assert not outside.is_file() or outside.read_text() == "precious"
    assert not outside.is_dir() or not [*outside.iterdir()]
