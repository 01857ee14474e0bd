"""A replacement for the Python command that starts in milliseconds, as a fork of a warm process.

``python -I -S warm_python.py NAME -m module ...`` does what ``python -m module ...`` does, with
the caller's environment, folder and streams. ``warm_server`` forks the process; it has imported
the heavy packages and used none. Signals are passed on, and the exit status comes back.
"""

import json
import os
import signal
import socket
import sys
from types import FrameType

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(name: str, *arguments: str) -> int:
    """Run a program in a fork of the server, and return its exit status as ``subprocess`` does."""
    with socket.socket(socket.AF_UNIX) as server:

        def forward(number: int, _frame: FrameType | None) -> None:
            server.sendall(bytes([number]))

        server.connect(f"\0{name}")
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 # pathlib takes longer to import than all of this
        text = json.dumps(request).encode()
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(text)
        for number in FORWARDED:
            signal.signal(number, forward)
        answer = server.recv(16)
    return int(answer or b"1")


def end(status: int) -> None:
    """End this process as the other one ended, by the same signal if it was one."""
    if status < 0:
        if -status in FORWARDED:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    end(main(*sys.argv[1:]))
