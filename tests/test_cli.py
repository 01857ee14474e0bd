"""The command: quick, friendly to typos, one clear line for each error."""

import json
import os
import re
import shlex
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
from gpulab.timing import Comparison
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
    ["doctor", "lab", "version", "build-notebooks", "record", "progress", "course", "time"],
)
def test_help_has_an_example(command: str) -> None:
    """Each command says what it does, and shows one call of itself."""
    shown = _run(command, "--help").output
    assert f"\n  Example: gpulab {command}" in shown


@pytest.mark.parametrize(
    ("typo", "hint"),
    [
        ("docter", "did you mean 'doctor'?"),
        ("build", "did you mean 'build-notebooks'?"),
        (
            "xyz",
            (
                "the commands are build-notebooks, course, doctor, lab, progress, record, time, "
                "version"
            ),
        ),
    ],
)
def test_unknown_command(typo: str, hint: str) -> None:
    """A typo is answered with the nearest command."""
    result = _run(typo)
    assert result.exit_code == 2
    assert result.stderr.endswith(f"Error: there is no command {typo!r}; {hint}\n")


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is printed as it is, or as JSON."""
    report = _report.Report((_report.DiagnosisRow("GPU", "none", "no driver", "a virtual one"),))
    monkeypatch.setattr(device, "doctor", lambda: report)
    assert _run("doctor").output == f"{report}\n"
    assert json.loads(_run("doctor", "--json").output) == report.to_dict()


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


SETUP = ("--gpu", "H200", "-s", "a = torch.ones(1 << 16, device='cuda')", "-s", "b = a + 1")


def _time(*arguments: str) -> Result:
    return _run("time", *SETUP, *arguments)


def test_the_command_is_a_module() -> None:
    """`python -m gpulab` is the command."""
    done = subprocess.run(
        [sys.executable, "-m", "gpulab", "version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{gpulab.__version__}\n"


def test_statements_are_timed_after_their_setup() -> None:
    """Several setups and statements are lines, and the answer is one line with its label."""
    done = _time("-r", "6", "-n", "2", "c = a + b", "c * b")
    assert done.exit_code == 0
    assert done.stdout.startswith("c = a + b c * b: ")  # a bar would be on stderr
    assert "virtual NVIDIA H200" in done.stdout


def test_a_baseline_decides_the_exit_code(tmp_path: Path) -> None:
    """Equal work passes with 0; slower work fails with 1 and a sentence, also with --json."""
    base = str(tmp_path / "base.json")
    assert _time("a + b", "--save", base).exit_code == 0
    assert gpulab.Measurement.load(base).label == "a + b"
    same = _time("a + b", "--of", base, "--at-most", "1.05")
    assert (same.exit_code, "no difference seen: a + b / a + b" in same.output) == (0, True)
    slower = _time("a + b", "a + b", "--of", base, "--at-most", "1.05", "--json")
    assert slower.exit_code == 1
    assert slower.stderr.startswith("Error: at most 1.05 times is allowed, and a + b")
    assert Comparison.from_json(slower.stdout).ratio > 1.05
    other = _run("time", "--gpu", "A100", *SETUP[2:], "a + b", "--of", base, "--at-most", "9")
    assert other.exit_code == 1
    assert "not comparable, because the GPU was NVIDIA H200, and then" in other.stderr
    assert "measure both on one machine and in the same way" in other.stderr
    assert "clocks.lock" not in other.stderr


def test_two_statements_are_timed_in_turns() -> None:
    """--vs divides the time of the statement by that of the other."""
    done = _time("-r", "10", "b = a + b; b = a + b", "--vs", "a + b", "--at-most", "1.5")
    assert "b = a + b; b = a + b takes longer: b = a + b; b = a + b / a + b = " in done.stdout
    assert done.exit_code == 1


SCRIPT = """
import helper_of_script
import torch
A = torch.ones(64, device="cuda")
def add(): return A + A
def needs(x): return x
def fails(): return A @ A[:3]
if __name__ == "__main__":
    raise SystemExit("it ran as a program")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a script and a module beside it, and restore the search path after the test."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "helper_of_script.py").touch()
    path = tmp_path / "bench_of_user.py"
    path.write_text(SCRIPT)
    return path


def test_a_function_of_a_script_is_timed(script: Path) -> None:
    """The script is imported with what stands beside it, and is not run as a program."""
    assert _time(f"{script}:add").stdout.startswith(f"{script}:add: ")
    missing = _time(f"{script.parent}/none.py:add").output
    assert f"there is no script {script.parent}/none.py; name one as script.py:fun" in missing


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("needs", "Error: needs needs the arguments x; name a function without arguments"),
        ("ad", "Error: unknown function of bench_of_user.py 'ad'; did you mean 'add'?"),
        ("fails", "def fails(): return A @ A[:3]"),
    ],
)
def test_a_function_that_cannot_be_timed_says_why(
    function: str, message: str, script: Path
) -> None:
    """A function with arguments, a typo and an error inside show no frame of ours."""
    done = _time(f"{script}:{function}")
    assert done.exit_code == 1
    assert message in done.stderr
    assert str(ROOT / "gpulab") not in done.stderr


@pytest.mark.parametrize(
    ("statement", "line"),
    [
        ("a @", "SyntaxError: invalid syntax"),
        ("a + nobody", "NameError: name 'nobody' is not defined"),
    ],
)
def test_an_error_of_the_statement_is_shown_at_its_line(statement: str, line: str) -> None:
    """The traceback has the user's line and no frame of ours."""
    done = _time(statement)
    assert done.exit_code == 1
    assert line in done.stderr
    assert '  File "<statement>", line 1' in done.stderr
    assert str(ROOT / "gpulab") not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at-most", "1.05"], "--at-most needs something to compare with: --vs STATEMENT or"),
        (["--ladder", "--vs", "a"], "--vs, --of and --ladder cannot be used together; use one"),
        (["-r", "0"], "Invalid value for '-r': 0 is not in the range x>=1."),
        (["--precision", "2"], "precision=2"),
        (["--method", "event"], "did you mean 'events'?"),
        (["--gpu", "H20"], "did you mean 'H200'?"),
        (["--of", "none.json"], "save one first: gpulab time ... --save none.json"),
        (
            ["--flops", "many"],
            "--flops many: NameError: name 'many' is not defined; give a number, or an",
        ),
        (["--bytes", "-1"], "--bytes -1; it must be a finite number, 0 or more"),
        (["--vs", "a +"], "SyntaxError: invalid syntax"),
        (
            ["--vs", "a", "--at-most", "0"],
            "Invalid value for '--at-most': 0.0 is not in the range",
        ),
    ],
)
def test_wrong_options_of_time_are_one_sentence(arguments: list[str], message: str) -> None:
    """Each wrong value is named, with what to do."""
    done = _run("time", *arguments, *(() if "--gpu" in arguments else SETUP), "a + b")
    assert done.exit_code in {1, 2}
    assert message in done.output


def test_the_guide_shows_what_the_command_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line of the guide prints what the page shows, but for the figures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    page = (ROOT / "docs" / "howto" / "command-line.md").read_text("utf-8")
    (script,) = re.findall(r"```python\n# (.*?)\n(.*?)```", page, re.DOTALL)
    Path(script[0]).write_text(script[1])
    sessions = "".join(re.findall(r"```console\n(.*?)```", page, re.DOTALL))
    calls = re.findall(r"^\$ gpulab (.*)\n((?:[^$].*\n)*)", sessions, re.MULTILINE)
    assert len(calls) == sessions.count("$ ")
    for line, shown in calls:
        done = CliRunner().invoke(main, shlex.split(line))
        assert done.exit_code == ("Error: " in shown), done.output
        output = done.stdout + "".join(re.findall("Error: .*\n", done.stderr))
        assert re.sub(r"[0-9.]+", "N", output) == re.sub(r"[0-9.]+", "N", shown)


def test_a_script_alone_and_a_missing_name_get_a_cure(tmp_path: Path) -> None:
    """`gpulab time script.py` says how to name a function; a missing name, where to make it."""
    script = tmp_path / "bench.py"
    script.write_text("")
    assert f"name a function in it: {script}:function" in _run("time", str(script)).output
    assert (
        _run("time", "a @ a").output.splitlines()[-1].startswith("Make it before, untimed: --se")
    )
