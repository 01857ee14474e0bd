"""The sandbox for answers enforces each of its restrictions, tried from inside."""

import math
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpulab import course
from gpulab.core.errors import InvalidOptionError
from gpulab.course import _confine
from gpulab.course._judging import Grader
from gpulab.course._sandbox import Sandbox
from tests.course.conftest import LIMITS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox needs Linux")

_TRIES = """
import os, socket, sys
from pathlib import Path
import gpulab

folder, port = Path(sys.argv[1]), int(sys.argv[2])
tries = {
    "read": lambda: (folder / "secret").read_text(),
    "list": lambda: os.listdir(folder),
    "keys": lambda: (Path(gpulab.__file__).parents[1] / "course" / "timing.py").read_text(),
    "write": lambda: Path(gpulab.__file__).write_text("x"),
    "make": lambda: (Path(gpulab.__file__).parent / "new").touch(),
    "connect": lambda: socket.create_connection(("127.0.0.1", port), timeout=5),
    "kill": lambda: os.kill(int(sys.argv[3]), 0),
}
for name, attempt in tries.items():
    try:
        attempt()
        print(name)
    except OSError as error:
        pass
print("end")
"""


@pytest.mark.skipif(not _confine.bubblewrap(), reason="bubblewrap is missing or cannot run here")
def test_bubblewrap_hides_files_network_and_processes(tmp_path: Path) -> None:
    """A program in it imports gpulab, but can neither read, write, connect nor send signals."""
    (tmp_path / "secret").write_text("x")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = [tmp_path, listener.getsockname()[1], os.getpid()]
        done = subprocess.run(
            [*_confine.bubblewrap(), sys.executable, "-c", _TRIES, *map(str, arguments)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONPATH": str(Path(_confine.__file__).parents[2])},
        )
    assert done.stdout.split() == ["end"], done.stderr


def test_the_instructor_is_told_if_bubblewrap_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, the first answer gives a warning, and the report says the same."""
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    _confine.bubblewrap.cache_clear()
    try:
        with pytest.warns(UserWarning, match="can read your files: install bubblewrap"):
            Sandbox(LIMITS)._start()
        assert _confine.confinement().startswith("only limits on time")
    finally:
        _confine.bubblewrap.cache_clear()


@pytest.mark.parametrize(
    ("name", "value"),
    [("cpu_s", -1), ("cpu_s", 1.5), ("wall_s", math.nan), ("memory_bytes", "x")],
)
def test_limits_are_checked_when_they_are_made(name: str, value: object) -> None:
    """Limits of a sandbox that mean nothing are refused with name and value."""
    assert Sandbox().limits == course.AnswerLimits()
    limits: dict[str, Any] = {name: value}
    with pytest.raises(InvalidOptionError, match=f"{name}={value!r}; it must be a"):
        course.AnswerLimits(**limits)


_ANSWER = """
import os
from contextlib import suppress
def forge(line):
    for pipe in range(3, 99):
        with suppress(OSError): os.write(pipe, line)
def tail(work, n_calls):
    {}
    return 1.0, 1.0
"""


@pytest.fixture
def sandbox(grader: Grader) -> Sandbox:
    """Return a process for answers, without the check that reads their source first."""
    return grader.sandbox


def flag_of(sandbox: Sandbox, source: str) -> str:
    """Return why an answer to timing.tail could not be judged; empty if it ran."""
    outcome = sandbox.run("tail", "tail", source, ["draw"])
    return "" if isinstance(outcome, dict) else outcome.flag


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flag", "attempt"),
    [
        ("ended", "os._exit(0)"),
        ("forged", 'forge(b\'{"facts": {"steady": [1.0]}}\\n\'); os._exit(0)'),
        ("forged", "forge(b'[' * 99)"),
    ],
)
def test_an_answer_is_confined_without_the_source_check(
    sandbox: Sandbox, flag: str, attempt: str
) -> None:
    """What ends the process or writes into its report is flagged also if it can run."""
    assert flag_of(sandbox, _ANSWER.format(attempt)) == flag


@pytest.mark.slow
def test_an_answer_writes_no_long_file(sandbox: Sandbox) -> None:
    """A file ends where the output and the report must end."""
    attempt = "file = os.memfd_create('x'); os.write(file, bytes(2**22)); os.write(file, b'x')"
    outcome = sandbox.run("tail", "tail", _ANSWER.format(attempt), ["draw"])
    assert isinstance(outcome, dict)
    assert outcome["steady"] == "OSError: [Errno 27] File too large"


@pytest.mark.slow
def test_an_answer_that_sleeps_is_ended(sandbox: Sandbox) -> None:
    """A sleeping answer, which uses no CPU time, is ended by the limit on wall time."""
    kept = sandbox.limits
    sandbox.limits = replace(kept, wall_s=0.5)
    try:
        assert flag_of(sandbox, "import time\ntime.sleep(10**6)") == "time"
    finally:
        sandbox.limits = kept


@pytest.mark.slow
def test_a_process_that_was_ended_is_started_again(sandbox: Sandbox) -> None:
    """Only the answer during which the process ended is flagged; the next gets a new process."""
    assert flag_of(sandbox, _ANSWER.format("pass")) == ""
    assert sandbox._process is not None
    sandbox._process.kill()
    assert flag_of(sandbox, _ANSWER.format("pass")) == "ended"
    assert flag_of(sandbox, _ANSWER.format("pass")) == ""
