"""The learner's folder of lessons: refreshed where untouched, never overwritten, and served."""

import hashlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from importlib.util import find_spec
from itertools import count
from pathlib import Path

from gpulab import _notebook_build
from gpulab.errors import LessonFolderError, NoJupyterLabError, NotebookError, PortInUseError

MANIFEST = ".gpulab.json"
FIRST_LESSON = "00_start_here.ipynb"
LOOPBACK = "127.0.0.1"
FIRST_PORT = 8888
STOP_TIMEOUT_S = 15
# a closed terminal and a service manager stop the server as Ctrl-C does
STOP_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


@dataclass(frozen=True, slots=True)
class Copies:
    """What :func:`copy_lessons` did, as file names.

    Attributes
    ----------
    written
        New in the folder, or refreshed because the learner had not touched them.
    kept
        Changed by the learner, and left as they are.
    beside
        New versions of kept files, put next to them as ``NAME.new.ipynb``.
    """

    written: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def notebooks_folder() -> Path:
    """Return where the built lessons are: inside the installed package, or in the clone.

    Raises
    ------
    NotebookError
        If there are none, as in an incomplete installation.
    """
    package = Path(str(files("gpulab")))
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if any(folder.glob("*.ipynb")):
            return folder
    raise NotebookError(
        f"{package / 'notebooks'} has no lessons; install gpulab again, "
        "or run this in a clone: gpulab build-notebooks"
    )


def copy_lessons(folder: Path) -> Copies:
    """Fill ``folder`` with the lessons, and overwrite nothing that was changed in it.

    A file that is still as it was copied is refreshed. Of a file that the learner changed, a newer
    version is put beside it, once.

    Raises
    ------
    LessonFolderError
        If ``folder`` is a file, or cannot be written to.
    """
    if folder.exists() and not folder.is_dir():
        raise LessonFolderError(
            f"{folder} is a file; name a folder for the lessons: gpulab lab FOLDER"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _fill(folder)
    except OSError as error:
        raise LessonFolderError(
            f"cannot write to {folder} ({error.strerror}); "
            "name a folder that you own: gpulab lab FOLDER"
        ) from error


def _fill(folder: Path) -> Copies:
    copied = _read_manifest(folder)
    done: dict[str, list[str]] = {"written": [], "kept": [], "beside": []}
    for lesson in sorted(notebooks_folder().glob("*.ipynb")):
        content = lesson.read_bytes()
        if _place(folder / lesson.name, content, copied, done["written"]):
            continue
        done["kept"].append(lesson.name)
        # once it was offered, a version is not put beside the learner's again
        if copied.get(lesson.name) != _digest(content):
            beside = lesson.with_suffix(".new.ipynb").name
            if _place(folder / beside, content, copied, done["beside"]):
                copied[lesson.name] = _digest(content)
    _replace(folder / MANIFEST, json.dumps(copied, indent=1, sort_keys=True).encode())
    return Copies(**{name: tuple(names) for name, names in done.items()})


def _place(path: Path, content: bytes, copied: dict[str, str], written: list[str]) -> bool:
    """Write ``content`` unless the learner changed ``path``; return whether it stands there."""
    present = _digest(path.read_bytes()) if path.exists() else None
    # neither as it was copied nor as it would be written: the learner's own work
    if present not in {None, copied.get(path.name), _digest(content)}:
        return False
    if present != _digest(content):
        _replace(path, content)
        written.append(path.name)
    copied[path.name] = _digest(content)
    return True


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_manifest(folder: Path) -> dict[str, str]:
    """Return what was copied before; without a readable record every file counts as changed."""
    try:
        copied = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return copied if isinstance(copied, dict) else {}


def _replace(path: Path, content: bytes) -> None:
    # written whole or not at all: a learner may press Ctrl-C at any time
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.replace(path)


def build_all(notebooks: Path, *, check: bool = False) -> tuple[str, ...]:
    """Build each lesson of ``notebooks/source``; return the names of those that differed.

    Parameters
    ----------
    notebooks
        The clone's folder of notebooks.
    check
        Write nothing, only compare.

    Raises
    ------
    NotebookError
        If there are no sources here, or a lesson breaks a rule of form.
    """
    sources = sorted((notebooks / "source").glob("*.py"))
    if not sources:
        raise NotebookError(
            f"{notebooks / 'source'} has no lessons to build; "
            "install gpulab from a clone: pip install -e ."
        )
    # a notebook whose source was renamed would be shipped as it is, and never checked
    _refuse_orphans(notebooks, {source.stem for source in sources})
    differing = []
    for source in sources:
        target = notebooks / f"{source.stem}.ipynb"
        content = _notebook_build.build(source)
        if not target.exists() or target.read_bytes() != content:
            differing.append(target.name)
            if not check:
                _replace(target, content)
    return tuple(differing)


def _refuse_orphans(notebooks: Path, stems: set[str]) -> None:
    orphans = sorted(path.name for path in notebooks.glob("*.ipynb") if path.stem not in stems)
    if orphans:
        raise NotebookError(
            f"{', '.join(orphans)}: no source in {notebooks / 'source'}; delete the notebook"
        )


def usable_port(asked: int | None = None) -> int:
    """Return the port to serve at: the one asked for, else the first free one from 8888 on.

    Raises
    ------
    PortInUseError
        If the port that was asked for cannot be used; the message names a free one.
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
        # a port that was closed a moment ago is free, on systems where this option says so
        if sys.platform != "win32":
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            return error.strerror
    return None


def serve(folder: Path, *, port: int, browser: bool, say: Callable[[str], object]) -> None:
    """Run JupyterLab over ``folder`` until it ends or Ctrl-C, and leave no process behind.

    Parameters
    ----------
    folder
        Root of what JupyterLab shows.
    port
        Where to listen, on this machine's own loopback address only.
    browser
        Whether to open the page as well.
    say
        Is given the address, with its token, once JupyterLab answers.

    Raises
    ------
    NoJupyterLabError
        If JupyterLab is not installed, or ends before it answers.
    """
    if find_spec("jupyterlab") is None:
        raise NoJupyterLabError("JupyterLab is not installed; install it: pip install jupyterlab")
    token = secrets.token_hex(24)
    for name in STOP_SIGNALS:
        signal.signal(name, signal.default_int_handler)
    server = subprocess.Popen(  # noqa: S603 # our own interpreter, and arguments made here
        lab_command(folder, port=port, browser=browser),
        env=_lab_environment(token),
        start_new_session=True,  # else Ctrl-C reaches JupyterLab too, which then asks back
    )
    try:
        _wait_for(server, port)
        say(f"http://{LOOPBACK}:{port}/lab/tree/{FIRST_LESSON}?token={token}")
        server.wait()
    finally:
        _stop(server)


def lab_command(folder: Path, *, port: int, browser: bool) -> list[str]:
    """Return the command that starts JupyterLab at the first lesson, on loopback only."""
    options = {
        "ServerApp.log_level": "ERROR",
        "LabApp.log_level": "ERROR",
        "ServerApp.ip": LOOPBACK,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder.resolve(),
        "ServerApp.open_browser": browser,
        "LabApp.default_url": f"/lab/tree/{FIRST_LESSON}",
    }
    command = [sys.executable, "-m", "jupyterlab"]
    command += [f"--{name}={value}" for name, value in options.items()]
    # in containers the user is often root; the address is loopback and the token is needed
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return [*command, "--allow-root"] if is_root else command


def _lab_environment(token: str) -> dict[str, str]:
    # our settings turn off the announcements: no question about news, no request to the network
    settings = [str(files("gpulab") / "data" / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    return os.environ | {
        "JUPYTER_CONFIG_PATH": os.pathsep.join(filter(None, settings)),
        "JUPYTER_TOKEN": token,  # not in the command line, which other users can read
    }


def _wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
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
