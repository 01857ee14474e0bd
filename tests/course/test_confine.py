"""What holds an answer: each wall by itself, tried from inside."""

import subprocess
import sys
from pathlib import Path

import pytest

from gpulab.course import _confine
from gpulab.course._sandbox import Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

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
    """Without the audit hook too: no other file, no writing, no network, no signals."""
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


_ANSWER = "import torch\ndef tail(work, n_calls):\n    {}\n    return 1.0, 1.0"


@pytest.mark.slow
def test_an_answer_cannot_read_the_graders_files(tmp_path: Path) -> None:
    """Keys, other submissions and the checker itself are out of its reach, and are named."""
    (tmp_path / "secret").write_text("x")
    with Sandbox() as sandbox:
        for path in (tmp_path / "secret", Path(_confine.__file__), Path(__file__)):
            source = _ANSWER.format(f"torch.os.open({str(path)!r}, 0)")
            outcome = sandbox.run("tail", "tail", source, ["draw"])
            assert (outcome.flag, outcome.text) == (
                "misuse",
                f"It tried what no answer may: read {path.name}.",
            )
        # what an answer starts ends with it, and the next one finds a fresh process
        stopped = sandbox.run("tail", "tail", _ANSWER.format("torch.os._exit(3)"), ["draw"])
        assert stopped.flag == "ended"
        sandbox._process.kill()
        assert sandbox.run("tail", "tail", _ANSWER.format("pass"), ["draw"]).flag == "ended"
        assert sandbox.run("tail", "tail", _ANSWER.format("pass"), ["draw"]).flag == ""
