"""Start JupyterLab with the lessons, reachable from this machine only, and stop it at the end."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from gpulab.core.errors import NoJupyterLabError, PortInUseError
from gpulab.lessons._folder import FIRST_LESSON

LOOPBACK = "127.0.0.1"
FIRST_PORT = 8888  # JupyterLab's own default
STOP_TIMEOUT_S = 15
# Windows has process groups instead of sessions.
NEW_GROUP: int = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
# A service manager sends SIGTERM and a closed terminal SIGHUP; both stop the server like Ctrl-C.
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def usable_port(asked: int | None = None) -> int:
    """Return the port for JupyterLab: the requested one, or the first free one from 8888 on.

    A requested port that cannot be used raises `PortInUseError`, which names a free one.
    """
    if asked is None:
        return next(port for port in count(FIRST_PORT) if _port_problem(port) is None)
    problem = _port_problem(asked)
    if problem is not None:
        raise PortInUseError(
            f"port {asked} cannot be used ({problem}); try a free one: --port {usable_port()}"
        )
    return asked


def _port_problem(port: int) -> str | None:
    with socket.socket() as probe:
        # A port that was closed a moment ago can be used again with this option. On Windows the
        # option would also accept a port that another program is using.
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.strerror
    return None


def serve(folder: Path, *, port: int, browser: bool, say: Callable[[str], object]) -> None:
    """Run JupyterLab on a folder until it ends or you press Ctrl-C; no process is left behind.

    It listens on the loopback address, so other machines cannot connect. ``say`` is called with
    its address, which contains a token, when it answers. Raises `NoJupyterLabError` if it is not
    installed, or ends before it answers.
    """
    if find_spec("jupyterlab") is None:
        raise NoJupyterLabError("JupyterLab is not installed; install it: pip install jupyterlab")
    token = secrets.token_hex(24)
    for name in STOP_SIGNALS:
        signal.signal(name, signal.default_int_handler)
    server = subprocess.Popen(  # noqa: S603 # our own interpreter, and arguments made here
        lab_command(folder, port=port, browser=browser),
        env=_lab_environment(token),
        # Otherwise Ctrl-C would reach JupyterLab too, which asks for a confirmation.
        start_new_session=True,
        creationflags=NEW_GROUP,
    )
    try:
        _wait_for(server, port)
        say(f"http://{LOOPBACK}:{port}/lab/tree/{FIRST_LESSON}?token={token}")
        server.wait()
    finally:
        _stop(server)


def lab_command(folder: Path, *, port: int, browser: bool) -> list[str]:
    """Return the command that starts JupyterLab at the first lesson, on the loopback address."""
    options = {
        "ServerApp.log_level": "ERROR",
        "LabApp.log_level": "ERROR",
        "ServerApp.ip": LOOPBACK,
        "ServerApp.port": port,
        # JupyterLab must not choose another port than the one whose address is printed.
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder.resolve(),
        "ServerApp.open_browser": browser,
        "LabApp.default_url": f"/lab/tree/{FIRST_LESSON}",
    }
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # In a container the user is often root, whom JupyterLab refuses by default. Here that is safe:
    # the server listens on the loopback address and asks for a token.
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*command, "--allow-root"] if is_root else command


def _lab_environment(token: str) -> dict[str, str]:
    # Our settings turn off JupyterLab's announcements, which would ask the learner about news and
    # connect to the network.
    settings = [str(files("gpulab") / "data" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    return os.environ | {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, settings)),
        "JUPYTER_TOKEN": token,  # not in the command line, which other users can read
    }


def _wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
    # Without a limit of time, because a slow machine may need long; Ctrl-C ends the wait.
    while server.poll() is None:
        with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1):
            return
        time.sleep(0.1)
    raise NoJupyterLabError(
        f"JupyterLab ended with exit code {server.returncode} before it answered; "
        "see its message above"
    )


def _stop(server: "subprocess.Popen[bytes]") -> None:
    server.terminate()
    try:
        server.wait(timeout=STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
