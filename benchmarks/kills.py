"""Kill a sweep at random moments, resume it, and count lost and duplicated points.

    python -m benchmarks.kills --minutes 5 --device cuda
    python -m benchmarks.kills --minutes 1 --seed 7

Half of the kills come at a random time between the start of the process and the end of the sweep.
The others come while a line is being written, so that a part of it is on disk. Each sweep runs in
a fork, which starts in milliseconds. This process uses no GPU, so that each fork may make a CUDA
context of its own.
"""

import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import gpulab
from benchmarks.common.command_line import parser_of
from gpulab.workloads.sweeps import Task, sweep, tasks_of

# A spread of costs; all of them take less than a millisecond on an H200.
WORKLOADS = ("add", "exp", "copy", "sum", "softmax", "matmul")
SIZES = (2**10, 2**12, 2**14, 2**16)
# Quick and imprecise: only the lines of the file count.
EFFORT = {"precision": 0.05, "max_time_s": 0.02, "progress": False}
_FORK = multiprocessing.get_context("fork")
_BAD = ("lost", "doubled", "failed")


def kill_while_writing(n_writes: int, seed: float) -> None:
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


def _sweep(out: Path, todo: tuple[Task, ...], device: str, trap: Callable[[], None]) -> None:
    """Sweep in the fork; its exit code says whether the sweep is whole."""
    if device == "cuda":
        gpulab.use("cuda")
    trap()
    code = 1
    try:
        with gpulab.virtual_gpu("H200") if device == "virtual" else nullcontext():
            found = sweep(todo, out=out, **EFFORT)
        if found.missing or found.failures():
            print(found, flush=True)
        else:
            code = 0
    except Exception as error:  # noqa: BLE001  # it is counted and shown
        print(f"{type(error).__name__}: {error}", flush=True)
    finally:
        os._exit(code)  # a fork would also run what its parent has registered for the end


class Campaign:
    """Kills sweeps until the time is over, and counts what it found."""

    def __init__(self, folder: Path, device: str, n_points: int, seed: int) -> None:
        sizes = [size + 64 * step for step in range(n_points) for size in SIZES]
        self.todo = tasks_of(WORKLOADS, sizes, caches=["hot"])[:n_points]
        self.folder, self.device = folder, device
        self.random = random.Random(seed)  # noqa: S311  # no secret
        self.counts: Counter[str] = Counter()
        self.longest_s = 0.0

    def run(self, end_s: float) -> None:
        """Kill and resume, sweep after sweep."""
        while time.monotonic() < end_s or not self.counts["sweeps"]:
            out = self.folder / f"sweep-{self.counts['sweeps']}.jsonl"
            # The first sweep is not killed, to see how long one takes.
            ended = False
            while self.counts["sweeps"] and not ended and time.monotonic() < end_s:
                ended = self._process(out, is_killed=True)
            if not ended:
                start_s = time.monotonic()
                self._process(out, is_killed=False)
                self.longest_s = max(self.longest_s, time.monotonic() - start_s)
            self.counts["sweeps"] += 1
            lines = whole_lines(out).splitlines()[1:]
            rows = Counter(Task(**json.loads(line)["task"]).key for line in lines)
            self.counts["points"] += len(rows)
            self.counts["lost"] += len({task.key for task in self.todo} - rows.keys())
            self.counts["doubled"] += rows.total() - len(rows)

    def _process(self, out: Path, *, is_killed: bool) -> bool:
        """Run the sweep in a fork, killed or not; return whether it came to its end."""
        in_a_line = is_killed and self.random.random() < 0.5  # noqa: PLR2004  # half of them
        trap: Callable[[], None] = lambda: None  # noqa: E731  # the default
        if in_a_line:
            n_lines = self.random.randrange(len(self.todo))
            trap = partial(kill_while_writing, n_lines, self.random.random())
        before = whole_lines(out)
        process = _FORK.Process(target=_sweep, args=(out, self.todo, self.device, trap))
        process.start()
        if is_killed and not in_a_line:
            # Up to the duration of a whole sweep, so that kills come at every stage of it.
            process.join(self.random.uniform(0, self.longest_s))
            process.kill()
        process.join()
        if process.exitcode == -signal.SIGKILL:
            self.counts["killed while writing" if in_a_line else "killed by the clock"] += 1
        # A line that an earlier process has finished must still be there.
        self.counts["lost"] += not whole_lines(out).startswith(before)
        self.counts["lines cut off"] += out.exists() and out.stat().st_size > len(whole_lines(out))
        self.counts["failed"] += process.exitcode not in {0, -signal.SIGKILL}
        return process.exitcode == 0


def whole_lines(out: Path) -> bytes:
    """Return the file without a last line that was cut off."""
    content = out.read_bytes() if out.exists() else b""
    return content[: content.rfind(b"\n") + 1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how many sweeps were killed, and what was lost or duplicated."""
    made = parser_of("benchmarks.kills", __doc__)
    made.add_argument("--minutes", type=float, default=1.0, help="duration (default: 1)")
    made.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    made.add_argument("--device", choices=("virtual", "cuda"), default="virtual")
    made.add_argument("--points", type=int, default=40, help="points of a sweep (default: 40)")
    given = made.parse_args(arguments)
    if given.device == "virtual":  # import what it needs before forking
        with gpulab.virtual_gpu("H200"):
            sweep(tasks_of(["add"], [64]), **EFFORT)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), given.device, given.points, given.seed)
        campaign.run(time.monotonic() + 60 * given.minutes)
    for name in (
        *("killed by the clock", "killed while writing", "lines cut off", "sweeps", "points"),
        *_BAD,
    ):
        print(f"{name:22} {campaign.counts[name]:8,}")
    if any(campaign.counts[name] for name in _BAD):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
