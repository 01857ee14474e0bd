"""A script that unlocks a GPU's clock after the process that locked it was killed.

That process has the other end of this script's standard input. However it ends, the system closes
that end, and the script can read no more.
"""

import importlib
import shutil
import signal
import subprocess
import sys

READY, DONE = "ready", "done"
_PATIENCE_S = 60.0  # a driver needs seconds to wake a sleeping GPU


def nvidia_smi(index: int, *options: str) -> str | None:
    """Run nvidia-smi for the GPU with NVML's ``index``; return None, or why it failed."""
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
    output = " ".join((done.stdout + done.stderr).split())
    return f"nvidia-smi answers: {output or f'exit status {done.returncode}'}"


def _reset_through_nvml(index: int) -> None:
    pynvml = importlib.import_module("pynvml")  # need not be installed
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
    # nvidia-smi first: it comes with every driver, and NVML's package may be missing. Some
    # containers have only the latter.
    if sys.stdin.read().strip() != DONE and nvidia_smi(index, "-rgc") is not None:
        _reset_through_nvml(index)


if __name__ == "__main__":
    main()
