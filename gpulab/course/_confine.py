"""Confine the processes that run learners' functions: limits on each, bubblewrap around all.

bubblewrap (``bwrap``) gives the processes an empty network and a file system with Python, torch
and gpulab only, all read-only. Where it is missing, they are ordinary processes with limits, and
the instructor is told.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpulab.core.requirements import COUNT, DURATION


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Limits on time, memory and output of one answer.

    ``cpu_s`` is a whole number of seconds of processor time. Allow more for ``wall_s``, because
    the machine may be busy. ``memory_bytes`` is the memory beyond what torch and gpulab already
    use.
    """

    cpu_s: int = 10
    wall_s: float = 60.0
    memory_bytes: int = 2**30
    output_bytes: int = 2**20

    def __post_init__(self) -> None:
        COUNT.check(
            cpu_s=self.cpu_s, memory_bytes=self.memory_bytes, output_bytes=self.output_bytes
        )
        DURATION.check(wall_s=self.wall_s)


@cache
def bubblewrap() -> tuple[str, ...]:
    """Return the beginning of a command line that runs in bubblewrap; empty if it cannot run here.

    Programs in it see Python, torch and gpulab, can write to an empty ``/tmp`` alone, and have no
    network. Neither the clone around gpulab, which has the keys, nor the course's folder is there.
    """
    program = shutil.which("bwrap")
    if program is None:
        return ()
    command = [program, "--unshare-all", "--die-with-parent", "--new-session"]
    # An empty /tmp comes first: gpulab itself may be installed below the real one.
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--chdir", "/tmp"]  # noqa: S108  # a new folder in the mount namespace
    for path in ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys", *_packages()):
        command += ["--ro-bind-try", path, path]
    # A container may forbid it.
    tried = subprocess.run([*command, sys.executable, "-c", ""], capture_output=True, check=False)  # noqa: S603  # our own command
    return () if tried.returncode else tuple(command)


def _packages() -> Iterable[str]:
    """Return the folders of gpulab, Python and torch, with the links to them resolved."""
    # Without importing torch, which the process that grades does not need.
    installed = {Path(path).resolve() for path in sys.path if (Path(path) / "torch").is_dir()}
    folders = (sys.prefix, sys.base_prefix, Path(sys.executable).resolve().parents[1])
    return [str(Path(__file__).parents[1]), *map(str, folders), *map(str, installed)]


def confinement() -> str:
    """Return how answers are confined on this machine, for the instructor."""
    if bubblewrap():
        return "bubblewrap, and limits on time, memory and output"
    return (
        "only limits on time, memory and output. An answer that gets past the reading of its text "
        "can read your files: install bubblewrap, or grade in a container"
    )
