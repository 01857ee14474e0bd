"""The sandbox for answers enforces each of its restrictions, tried from inside."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpulab.course import _confine
from gpulab.course._sandbox import Sandbox
from tests.course.conftest import LIMITS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")

_LANDLOCKED = """
import os, socket, sys
from pathlib import Path
from gpulab.course import _confine

readable, secret = map(Path, sys.argv[1:])
listener = socket.create_server(("127.0.0.1", 0))
_confine.cut_off([readable])
tries = {
    "read what is open": lambda: (readable / "file").read_text(),
    "read": lambda: secret.read_text(),
    "list": lambda: os.listdir(secret.parent),
    "write": lambda: (readable / "file").write_text("x"),
    "make": lambda: (readable / "new").touch(),
    "remove": lambda: (readable / "file").unlink(),
    "connect": lambda: socket.create_connection(listener.getsockname(), timeout=5),
    "kill": lambda: os.kill(os.getppid(), 0),
    "environment": lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes(),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name, "done")
    except OSError as error:
        print(name, "refused")
"""


@pytest.mark.skipif("Landlock" not in _confine.walls(), reason="this kernel has no Landlock")
@pytest.mark.skipif("no Landlock" in _confine.walls(), reason="this kernel has no Landlock")
def test_landlock_refuses_what_python_would_allow(tmp_path: Path) -> None:
    """Landlock refuses other files, writing, network and signals, even without the audit hook."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "file").write_text("x")
    (tmp_path / "secret").write_text("x")
    code = [sys.executable, "-c", _LANDLOCKED, str(tmp_path / "open"), str(tmp_path / "secret")]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    said = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    assert said.pop("read what is open") == "done", done.stderr
    allowed = {name for name, what in said.items() if what == "done"}
    assert allowed <= (set() if "signals" in _confine.walls() else {"kill"}), said
    assert len(said) == 8


_ANSWER = "import os, socket, ctypes\ndef tail(work, n_calls):\n    {}\n    return 1.0, 1.0"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Yield a process for answers, without the check that reads their source first."""
    with Sandbox(LIMITS) as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "attempt"),
    [
        ("misuse", "os.open('file', os.O_CREAT)"),
        ("misuse", "os.fork()"),
        ("misuse", "os.kill(os.getppid(), 9)"),
        ("misuse", "socket.socket()"),
        ("misuse", "ctypes.CDLL(None)"),
        ("misuse", "os.listdir('/')"),
        ("ended", "os._exit(0)"),
        ("forged", 'os.write(3, b\'{"facts": {"steady": [1.0]}}\\n\'); os._exit(0)'),
        ("forged", "os.write(3, b'[' * 99)"),
    ],
)
def test_an_answer_is_confined_without_the_source_check(
    sandbox: Sandbox, flag: str, attempt: str
) -> None:
    """An attempt that the source check would miss is refused and flagged at run time."""
    assert sandbox.run("tail", "tail", _ANSWER.format(attempt), ["draw"]).flag == flag


@pytest.mark.slow
def test_an_answer_cannot_read_the_graders_files(sandbox: Sandbox, tmp_path: Path) -> None:
    """Reading any other file, such as keys or the checker, is refused, and the flag names it."""
    (tmp_path / "secret").write_text("x")
    for path in (tmp_path / "secret", Path(_confine.__file__), Path(__file__)):
        source = _ANSWER.format(f"os.open({str(path)!r}, 0)")
        outcome = sandbox.run("tail", "tail", source, ["draw"])
        assert outcome.text == f"It tried what no answer may: read {path.name}."


@pytest.mark.slow
def test_an_answer_that_sleeps_is_ended(sandbox: Sandbox) -> None:
    """A sleeping answer, which uses no CPU time, is ended by the limit on wall time."""
    kept = sandbox.limits
    sandbox.limits = replace(kept, wall_s=0.5)
    try:
        outcome = sandbox.run("tail", "tail", "import time\ntime.sleep(10**6)", ["draw"])
    finally:
        sandbox.limits = kept
    assert outcome.flag == "time"


@pytest.mark.slow
def test_a_process_that_was_ended_is_started_again(sandbox: Sandbox) -> None:
    """Only the answer during which the process ended is flagged; the next gets a new process."""
    assert sandbox.run("tail", "tail", _ANSWER.format("pass"), ["draw"]).flag == ""
    assert sandbox._process is not None
    sandbox._process.kill()
    assert sandbox.run("tail", "tail", _ANSWER.format("pass"), ["draw"]).flag == "ended"
    assert sandbox.run("tail", "tail", _ANSWER.format("pass"), ["draw"]).flag == ""
