"""A stand-in for the Python command that starts in milliseconds: a fork of one that is warm.

``python -I -S warm_python.py SOCKET -m module ...`` does what ``python -m module ...`` does, in
the environment and the folder of the caller and on its streams. The process is forked by
``warm_server``, which has imported the heavy packages, and used none of them. Signals are passed
on, and the exit status comes back.
"""

import json
import os
import signal
import socket
import sys
from types import FrameType

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(address: str, *arguments: str) -> int:
    """Have a program run, and return its exit status as ``subprocess`` counts it."""
    with socket.socket(socket.AF_UNIX) as server:

        def forward(number: int, _frame: FrameType | None) -> None:
            server.sendall(bytes([number]))

        server.connect(address)
        request = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}  # noqa: PTH109 # pathlib takes longer to import than all of this
        text = json.dumps(request).encode()
        socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(text)
        for number in FORWARDED:
            signal.signal(number, forward)
        answer = server.recv(16)
    return int(answer or b"1")


def end(status: int) -> None:
    """End this process as the other one ended, be it by a signal."""
    if status < 0:
        if -status in FORWARDED:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


if __name__ == "__main__":
    end(main(*sys.argv[1:]))
