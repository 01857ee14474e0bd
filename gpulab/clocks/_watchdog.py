"""Unlock a GPU's clock after the process that locked it has died; run as a script of its own.

The process holds the other end of standard input. However it dies, the system closes that end.
"""

import importlib
import shutil
import signal
import subprocess
import sys

READY, DONE = "ready", "done"
_PATIENCE_S = 60.0  # a driver that wakes a sleeping GPU takes seconds


def nvidia_smi(index: int, *options: str) -> str | None:
    """Run nvidia-smi for the GPU of NVML's ``index``; return None, or why it did not work."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "nvidia-smi is not on the path"
    command = [program, "-i", str(index), *options]
    try:
        done = subprocess.run(  # noqa: S603 # its arguments are numbers and literals
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"nvidia-smi failed: {error}"
    if done.returncode == 0:
        return None
    said = " ".join((done.stdout + done.stderr).split())
    return f"nvidia-smi answers: {said or f'exit status {done.returncode}'}"


def _reset_through_nvml(index: int) -> None:
    pynvml = importlib.import_module("pynvml")  # need not be installed
    pynvml.nvmlInit()
    pynvml.nvmlDeviceResetGpuLockedClocks(pynvml.nvmlDeviceGetHandleByIndex(index))


def main() -> None:
    """Wait for the end of the process that locked GPU ``argv[1]``, and unlock it unless told."""
    # A terminal, a batch system or a notebook server signals all processes of a session alike,
    # and this one is needed most when the others go.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    index = int(sys.argv[1])
    sys.stdout.write(f"{READY}\n")
    sys.stdout.flush()
    if sys.stdin.read().strip() != DONE and nvidia_smi(index, "-rgc") is not None:
        _reset_through_nvml(index)


if __name__ == "__main__":
    main()
