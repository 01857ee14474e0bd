"""The command: quick, friendly to typos, one clear line for each error."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner, Result

import gpulab
from gpulab import device, lessons
from gpulab.cli import main
from gpulab.device import _report
from gpulab.lessons import _folder
from tests.support.packages import STAND_INS
from tests.support.ports import PORTS

ROOT = Path(__file__).parents[1]


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def test_version() -> None:
    """The version is printed alone, so that scripts can read it."""
    assert _run("version").output == f"{gpulab.__version__}\n"


@pytest.mark.parametrize("arguments", [["version"], ["--help"], ["lab", "--help"]])
def test_small_answers_are_quick(arguments: list[str]) -> None:
    """`version` and `--help` import no heavy package."""
    code = (
        "import sys; from gpulab.cli import main; main(sys.argv[1:], standalone_mode=False); "
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert {"torch", "IPython", "nbformat", "numpy"}.isdisjoint(done.stderr.split())


@pytest.mark.parametrize(
    "command",
    ["doctor", "lab", "version", "build-notebooks", "record", "progress", "course"],
)
def test_help_has_an_example(command: str) -> None:
    """Each command says what it does, and shows one call of itself."""
    shown = _run(command, "--help").output
    assert f"\n  Example: gpulab {command}" in shown
    assert ">>>" not in shown  # the doctests of the source are for its readers


@pytest.mark.parametrize(
    ("typo", "hint"),
    [
        ("docter", "did you mean 'doctor'?"),
        ("build", "did you mean 'build-notebooks'?"),
        (
            "xyz",
            "the commands are build-notebooks, course, doctor, lab, progress, record, version",
        ),
    ],
)
def test_unknown_command(typo: str, hint: str) -> None:
    """A typo is answered with the nearest command."""
    result = _run(typo)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: there is no command {typo!r}; {hint}\n")


def test_unknown_option() -> None:
    """A mistyped option is answered with the nearest one."""
    result = _run("lab", "--no-browsr")
    assert result.exit_code == 2
    assert "--no-browser" in result.stderr


def test_port_out_of_range() -> None:
    """A port that cannot exist is refused with the range, before anything is done."""
    result = _run("lab", "--port", "70000")
    assert result.exit_code == 2
    assert "70000 is not in the range 1<=x<=65535" in result.stderr


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is printed as it is, or as JSON."""
    report = _report.Report((_report.DiagnosisRow("GPU", "none", "no driver", "a virtual one"),))
    monkeypatch.setattr(device, "doctor", lambda: report)
    assert _run("doctor").output == f"{report}\n"
    assert json.loads(_run("doctor", "--json").output) == report.to_dict()


def test_doctor_on_this_machine() -> None:
    """On any machine the report is printed and the exit code is 0."""
    result = _run("doctor", "--json")
    assert result.exit_code == 0
    assert len(json.loads(result.output)["rows"]) == 8


def test_build_notebooks_names_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook that is out of date is named, with the command that cures it."""
    asked = []

    def build_all(folder: Path, *, check: bool) -> tuple[str, ...]:
        asked.append((folder, check))
        return ("01_a.ipynb", "02_b.ipynb")

    monkeypatch.setattr(lessons, "build_all", build_all)
    result = _run("build-notebooks", "--check")
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: 01_a.ipynb, 02_b.ipynb: not as built from source; run: gpulab build-notebooks\n"
    )
    assert _run("build-notebooks").output == "2 written\n"
    assert asked == [(ROOT / "notebooks", True), (ROOT / "notebooks", False)]


def test_build_notebooks_has_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """If every notebook is up to date, the command says so."""
    monkeypatch.setattr(lessons, "build_all", lambda _folder, **_options: ())
    assert _run("build-notebooks", "--check").output == "all notebooks are up to date\n"


def test_folder_is_a_file(tmp_path: Path) -> None:
    """The error is one line with the cure, the exit code is 1, and the file stays."""
    taken = tmp_path / "notes"
    taken.write_text("mine")
    result = _run("lab", str(taken))
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: {taken} is a file; name a folder for the lessons: gpulab lab FOLDER\n"
    )
    assert taken.read_text() == "mine"


def test_port_in_use(tmp_path: Path) -> None:
    """A port in use is named with a free one, and no lesson has been copied."""
    folder = tmp_path / "lessons"
    with PORTS, closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        result = _run("lab", str(folder), "--port", str(port))
        free = lessons.usable_port()
    assert result.exit_code == 1
    assert result.stderr == (
        f"Error: port {port} cannot be used (Address already in use); "
        f"try a free one: --port {free}\n"
    )
    assert not folder.exists()


def test_lab_says_what_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The output names the files copied, kept and added, then the address, then the end."""
    copies = _folder.CopiedLessons(("00.ipynb",), ("01.ipynb",), ("01.new.ipynb",))
    monkeypatch.setattr(lessons, "copy_lessons", lambda _folder: copies)

    def serve(folder: Path, *, port: int, browser: bool, say: object) -> None:
        assert (folder, port, browser) == (tmp_path, 9, True)
        say("http://x/?token=1")  # type: ignore[operator] # the command gives a function
        raise KeyboardInterrupt

    monkeypatch.setattr(lessons, "usable_port", lambda _asked: 9)
    monkeypatch.setattr(lessons, "serve", serve)
    result = _run("lab", str(tmp_path))
    assert result.output == (
        f"Lessons: {tmp_path}\n"
        "  copied: 00.ipynb\n"
        "  kept as you changed them: 01.ipynb\n"
        "  newer versions put beside yours: 01.new.ipynb\n"
        "JupyterLab: http://x/?token=1\n"
        "Stop it with Ctrl-C.\n"
        "JupyterLab has stopped.\n"
    )
    assert result.exit_code == 0


@contextmanager
def _lab(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the real command outside the clone, and yield its process and address."""
    with PORTS:
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "gpulab.cli", "lab", "--no-browser"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([STAND_INS, str(ROOT)])},
            stdout=subprocess.PIPE,
            text=True,
        )
        address = _address(process.stdout)
    with process:
        try:
            yield process, address
        finally:
            process.terminate()


def _address(lines: IO[str] | None) -> str:
    for line in lines or ():
        if line.startswith("JupyterLab: "):
            return line.split()[1]
    pytest.fail("JupyterLab never answered")


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_lab_serves_and_stops(stop: signal.Signals, tmp_path: Path) -> None:
    """The real server answers on loopback to its token only, and ends cleanly when stopped."""
    with _lab(tmp_path) as (process, url):
        page, token = url.split("?token=")
        status = page.replace("lab/tree/00_start_here.ipynb", "api/status")
        assert page.startswith("http://127.0.0.1:")
        assert _status(f"{status}?token={token}") == 200
        assert _status(status) == 403
        process.send_signal(stop)
        rest = process.stdout.read() if process.stdout else ""
    assert rest == "Stop it with Ctrl-C.\nJupyterLab has stopped.\n"
    assert process.returncode == 0
    with pytest.raises(urllib.error.URLError):
        _status(f"{status}?token={token}")
    assert (tmp_path / "gpulab-lessons" / "00_start_here.ipynb").is_file()
