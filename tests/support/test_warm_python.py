"""The warm Python behaves like the Python command, and has imported torch already."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.warm_server import ROOT

pytestmark = pytest.mark.slow

PROGRAMS = {
    "output": "print('said')",
    "arguments": "import sys; print(sys.argv)",
    "folder": "import os; print(os.getcwd())",
    "environment": "import os; print(sorted(os.environ.items()))",
    "input": "print(input())",
    "main": "import __main__; mine = 1; print(__name__, __main__.mine)",
    "exit": "raise SystemExit(7)",
    "abrupt exit": "import os; os._exit(5)",
    "message": "raise SystemExit('no')",
    "error": "1 / 0",
    "at exit": "import atexit; atexit.register(print, 'bye')",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "terminated": "import os; os.kill(os.getpid(), 15)",
}


@pytest.mark.parametrize("what", PROGRAMS)
def test_as_the_python_command(
    what: str, warm_python: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, output and the last line of the error are the same."""
    monkeypatch.setenv("MINE", "yes")
    found = []
    for python in ([sys.executable], warm_python):
        done = subprocess.run(
            [*python, "-c", PROGRAMS[what], "one", "two"],
            cwd=tmp_path,
            input="typed\n",
            capture_output=True,
            text=True,
            check=False,
        )
        found.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_signals_reach_it(name: str, warm_python: list[str]) -> None:
    """A signal to the command reaches the program, even SIGKILL, which no process can forward."""
    code = "import signal; print(flush=True); signal.pause()"
    with subprocess.Popen(
        [*warm_python, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(getattr(signal, name))
        assert process.stdout.read() == ""  # the stream ends when the program itself has ended
    assert process.returncode == -getattr(signal, name)


def test_modules_are_run(warm_python: list[str]) -> None:
    """``-m`` runs a module."""
    done = subprocess.run(
        [*warm_python, "-m", "json.tool", "--compact"],
        input='{"a":\n1}',
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == '{"a":1}\n'


def test_torch_is_there_and_unused(warm_python: list[str]) -> None:
    """It has torch imported, and computes on the CPU without initializing CUDA."""
    code = (
        "import sys; print({'torch', 'gpulab.virtual'} <= set(sys.modules));import torch; x = "
        "torch.ones(512, 512);print(torch.cuda.is_initialized(), (x @ x).sum().item())"
    )
    done = subprocess.run([*warm_python, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\nFalse 134217728.0\n"


@pytest.mark.skipif(
    sys.platform != "linux" or os.getuid() != 0, reason="only root can become another user"
)
def test_other_users_get_no_process(warm_python: list[str]) -> None:
    """The address has no permissions, so the server looks at who connects."""
    ask = (
        "import json, os, sys; from tests.support import warm_python; os.setuid(int(sys.argv[2]));"
        "sys.exit(warm_python.main(sys.argv[1], '-c', 'print(\"served\")'))"
    )
    found = []
    for user in (0, 65534):
        command = [sys.executable, "-c", ask, warm_python[-1], str(user)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        found.append((done.returncode == 0, done.stdout))
    assert found == [(True, "served\n"), (False, "")]
