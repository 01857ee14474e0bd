"""Fork Python processes in which the heavy packages are imported already; see ``warm_python``."""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support import loopback

ROOT = Path(__file__).parents[2]
STUB = Path(__file__).with_name("warm_python.py")
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>: the signal for a process whose parent has ended
CREDENTIALS = struct.Struct("3i")  # ucred in <sys/socket.h>: process, user and group
HEAVY = (
    *("torch", "pandas", "ipykernel.kernelapp", "ipywidgets", "anywidget"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "matplotlib_inline.backend_inline"),
)
# PyTorch's own database of operators and modules. To import it changes settings of PyTorch.
DATABASE = (
    "torch.testing._internal.common_methods_invocations",
    "torch.testing._internal.common_modules",
)


@contextmanager
def warm_python(packages: Sequence[str] = HEAVY) -> Iterator[list[str]]:
    """Yield the command of a Python that starts at once; except on Linux, the usual Python.

    Parameters
    ----------
    packages
        The packages that it has imported, besides gpulab.
    """
    if sys.platform != "linux":  # only there are forks of a process with torch safe
        yield [sys.executable]
        return
    with socket.socket(socket.AF_UNIX) as listener:
        # An abstract address, chosen by the kernel: no file is left if this process is killed.
        listener.bind("")
        address = listener.getsockname().decode().removeprefix("\0")
        listener.listen(64)
        with subprocess.Popen(
            [sys.executable, "-m", "tests.support.warm_server", str(listener.fileno()), *packages],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            # matplotlib reads the backend when it is imported; a kernel needs this one
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"},
        ) as server:
            yield [sys.executable, "-I", "-S", str(STUB), address]
            assert server.stdin is not None
            server.stdin.close()  # the server ends at the end of its input


def warm_kernel(folder: Path, command: list[str]) -> Path:
    """Write the specification of a kernel that ``command`` starts; return the Jupyter folder."""
    from ipykernel.kernelspec import get_kernel_dict

    described = folder / "kernels" / "python3"
    described.mkdir(parents=True)
    specification = get_kernel_dict() | {
        "argv": [*command, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    }
    (described / "kernel.json").write_text(json.dumps(specification))
    return folder


def serve(listener: socket.socket, packages: Sequence[str]) -> None:
    """Fork a keeper for each request, until the standard input ends."""
    if is_asked(listener):  # some runs of the tests need no warm process
        warm_up(packages)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while is_asked(listener):
        connection, _ = listener.accept()
        if not is_of_this_user(connection):  # an abstract address has no permissions
            connection.close()
            continue
        if not os.fork():
            listener.close()
            keep(connection)
            return
        connection.close()


def is_asked(listener: socket.socket) -> bool:
    """Wait for a request, or for the end of the standard input; return whether it is a request."""
    ready, _, _ = select.select([0, listener], [], [])
    return 0 not in ready


def is_of_this_user(connection: socket.socket) -> bool:
    """Return whether a process of the same user is at the other end."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    _, user, _ = CREDENTIALS.unpack(credentials)
    return bool(user == os.getuid())


def keep(connection: socket.socket) -> None:
    """Fork the requested process, pass signals to it, and send its exit status back."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    size = int.from_bytes(head, "big")
    request = json.loads(connection.recv(size, socket.MSG_WAITALL))
    children: list[int] = []

    def ended(*_: object) -> None:
        _, status = os.waitpid(children[0], 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)

    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, ended)
    if child := os.fork():
        for stream in (0, 1, 2, *streams):  # or a reader would wait for this process, too
            os.close(stream)
        children.append(child)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        while number := connection.recv(1):
            os.kill(child, number[0])
        os.kill(child, signal.SIGKILL)  # the caller was killed
        signal.pause()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # if the keeper itself is killed
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    connection.close()
    become(request, streams)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Run a program as the Python command does."""
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = ["", *filter(None, given), *(path for path in sys.path if path not in given)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kind, program, *rest = request["arguments"]
    sys.argv[:] = [kind, *rest]
    main = sys.modules["__main__"] = ModuleType("__main__")
    if kind == "-m":
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        exec(program, vars(main))  # this is what -c does


def warm_up(packages: Sequence[str]) -> None:
    """Import the slow packages and all of gpulab, without calling anything; stay offline."""
    for name in packages:
        importlib.import_module(name)
    package = importlib.import_module("gpulab")
    for module in pkgutil.walk_packages(package.__path__, "gpulab."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # so that forks share the memory
    loopback.refuse_others()  # the forks inherit it


if __name__ == "__main__":
    listening = socket.socket(fileno=int(sys.argv[1]))
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    serve(listening, sys.argv[2:])
