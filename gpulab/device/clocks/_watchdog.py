"""A script that unlocks a GPU's clock after the process that locked it was killed.

That process has the other end of this script's standard input. However it ends, the system closes
that end, and the script can read no more.
"""

import importlib
import signal
import sys

READY, DONE = "ready", "done"


def _reset(index: int) -> None:
    pynvml = importlib.import_module("pynvml")
    pynvml.nvmlInit()
    pynvml.nvmlDeviceResetGpuLockedClocks(pynvml.nvmlDeviceGetHandleByIndex(index))


def main() -> None:
    """Wait for the end of the process that locked GPU ``argv[1]``, then unlock the clock.

    If that process has written ``DONE``, it has unlocked the clock itself.
    """
    # A terminal, a batch system or a notebook server may send these signals to all processes of a
    # session, and this one must survive the others.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    index = int(sys.argv[1])
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    if sys.stdin.read().strip() != DONE:
        _reset(index)


if __name__ == "__main__":
    main()
