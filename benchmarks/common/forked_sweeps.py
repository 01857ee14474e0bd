"""Run sweeps in forks of this process, kill them, and read what is in their file.

A fork starts in milliseconds, because torch is imported already. This process uses no GPU, so that
each fork may make a CUDA context of its own.
"""

import json
import multiprocessing
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import gpulab
from gpulab.core.errors import GpulabError
from gpulab.workloads.sweeps import Task, _sweep, sweep, tasks_of

# A spread of costs; all of them take less than a millisecond on an H200.
WORKLOADS = ("add", "exp", "copy", "sum", "softmax", "matmul")
SIZES = (2**10, 2**12, 2**14, 2**16)
DEVICES = ("virtual", "cuda")
# Quick and imprecise: the campaigns count lines in a file, and their times do not matter.
EFFORT = {"precision": 0.05, "max_time_s": 0.02}

_FORK = multiprocessing.get_context("fork")


def tasks(n_points: int) -> tuple[Task, ...]:
    """Return ``n_points`` tasks for the GPU."""
    sizes = [size + 64 * step for step in range(n_points) for size in SIZES]
    return tasks_of(WORKLOADS, sizes, caches=["hot"])[:n_points]


def warm_up(device: str) -> None:
    """Import what the virtual GPU needs before forking; nothing for CUDA, which forks set up."""
    if device == "virtual":
        with gpulab.virtual_gpu("H200"):
            sweep(tasks(1), progress=False, **EFFORT)


def nothing() -> None:
    """Do nothing; the default trap."""


def kill_while_writing(n_writes: int, seed: int) -> None:
    """Make this process kill itself in the middle of a line, after ``n_writes`` lines."""
    original, n_before, generator = os.write, 0, random.Random(seed)  # noqa: S311  # no secret

    def write(handle: int, content: memoryview | bytes) -> int:
        nonlocal n_before
        n_before += 1
        if n_before > n_writes:
            # So a part of the line is on disk, as after a loss of power.
            original(handle, content[: generator.randint(0, len(content))])
            os.kill(os.getpid(), signal.SIGKILL)
        return original(handle, content)

    os.write = write


@dataclass
class ForkedSweep:
    """A sweep in a process of its own.

    Attributes
    ----------
    kept
        Keys of the points that the fork has reported as saved.
    outcome
        ``"done"``, ``"refused"``, ``"failed"``, or an empty text for a process that died.
    message
        The error's text.
    """

    process: multiprocessing.process.BaseProcess
    reports: Connection
    kept: Counter[str] = field(default_factory=Counter)
    outcome: str = ""
    message: str = ""

    @classmethod
    def start(
        cls,
        out: Path,
        todo: tuple[Task, ...],
        device: str,
        trap: Callable[[], None] = nothing,
    ) -> "ForkedSweep":
        """Start a sweep in a new process, which calls ``trap`` first."""
        receiver, sender = _FORK.Pipe(duplex=False)
        process = _FORK.Process(target=_run, args=(sender, out, todo, device, trap))
        process.start()
        # While this process has its copy open, `wait` would never see the end of the pipe.
        sender.close()
        return cls(process, receiver)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.process.is_alive():
            os.kill(self.process.pid or 0, number)

    def wait(self) -> None:
        """Read all that it reports, until it has ended."""
        while True:
            try:
                kind, text = self.reports.recv()
            except EOFError:
                break
            if kind == "kept":
                self.kept[text] += 1
            else:
                self.outcome, self.message = kind, text
        self.process.join()
        self.reports.close()


def _run(
    sender: Connection,
    out: Path,
    todo: tuple[Task, ...],
    device: str,
    trap: Callable[[], None],
) -> None:
    """Sweep in the new process, and report each point after the sweep has kept it."""
    original = _sweep.RunningSweep.point_measured

    def point_measured(self: _sweep.RunningSweep, point: _sweep.Point) -> None:
        original(self, point)
        sender.send(("kept", point.task.key))

    _sweep.RunningSweep.point_measured = point_measured  # type: ignore[method-assign]  # this fork's
    if device == "cuda":
        gpulab.use("cuda")
    trap()
    try:
        with gpulab.virtual_gpu("H200") if device == "virtual" else nullcontext():
            found = sweep(todo, out=out, progress=False, **EFFORT)
    except GpulabError as error:
        refused = type(error).__name__ == "FileInUseError"
        sender.send(("refused" if refused else "failed", str(error)))
    except Exception as error:  # noqa: BLE001  # it is counted and shown
        sender.send(("failed", f"{type(error).__name__}: {error}"))
    else:
        whole = not found.missing and not found.failures()
        sender.send(("done" if whole else "failed", str(found)))
    # Not sys.exit: a fork would also run what its parent has registered for the end.
    os._exit(0)


def whole_lines(out: Path) -> bytes:
    """Return the file without a last line that was cut off."""
    content = out.read_bytes() if out.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def rows_by_key(out: Path) -> Counter[str]:
    """Return how many points the file has for each task.

    Raises
    ------
    ValueError
        If a line is not a record.
    """
    lines = whole_lines(out).splitlines()[1:]
    return Counter(Task(**json.loads(line)["task"]).key for line in lines)
