"""Start two sweeps with the same file, and count lost and duplicated points.

    python -m benchmarks.two_at_once --staged 60 --paused 60 --pairs 60

First one sweep begins the file and measures a quarter of the points. Then come two processes.
``staged``: the first is stopped as soon as it has read the file, the second one runs, then the
first continues. ``paused``: the same, but the first is stopped at a random moment. ``pairs``: both
start at once and run side by side. A last sweep measures what is missing. Every point that a sweep
reported as saved must be in the file at the end, and each task once.
"""

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.forked_sweeps import (
    DEVICES,
    ForkedSweep,
    nothing,
    rows_by_key,
    stop_after_reading,
    tasks,
    warm_up,
)
from gpulab.workloads.sweeps import Task

_N_POINTS, _N_STARTS = 24, 20
KINDS = ("staged", "paused", "pairs")


@dataclass
class Tally:
    """What happened in all starts of a kind."""

    n_starts: int = 0
    with_losses: int = 0
    lost: int = 0
    doubled: int = 0
    refused: int = 0
    unnamed: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, out: Path, *runs: ForkedSweep) -> None:
        """Count one start: the sweep that began the file, the two at once, and the last one."""
        _, first, second, _ = runs
        kept = sum((run.kept for run in runs), Counter[str]())
        try:
            rows = rows_by_key(out)
        except ValueError as error:
            rows = Counter()
            self.failures.append(f"the file cannot be read: {error}")
        # A point is lost if a sweep reported it as saved and the file does not have it.
        n_lost = (kept - rows).total()
        self.n_starts += 1
        self.lost += n_lost
        self.with_losses += n_lost > 0
        self.doubled += rows.total() - len(rows)
        self.failures += [run.message for run in runs if run.outcome not in {"done", "refused"}]
        for run, other in ((first, second), (second, first)):
            if run.outcome == "refused":
                self.refused += 1
                self.unnamed += f"process {other.process.pid};" not in run.message


class Pairs:
    """Starts two sweeps with one file, in one of three ways."""

    def __init__(self, folder: Path, device: str, n_points: int, seed: int) -> None:
        self.folder, self.device, self.todo = folder, device, tasks(n_points)
        self.random = random.Random(seed)  # noqa: S311  # no secret
        start_s = time.monotonic()
        self._start(folder / "alone.jsonl").wait()
        self.alone_s = time.monotonic() - start_s

    def tally(self, kind: str, n_starts: int) -> Tally:
        """Start ``n_starts`` pairs of one kind, and return the counts."""
        found = Tally()
        for number in range(n_starts):
            out = self.folder / f"{kind}-{number}.jsonl"
            begun = self._start(out, self.todo[: len(self.todo) // 4])
            begun.wait()
            first = self._start(out, stopped=kind == "staged")
            if kind == "paused":
                time.sleep(self.random.uniform(0, self.alone_s))
                first.signal(signal.SIGSTOP)
            elif kind == "staged":
                # The first sweep stops itself after it has read the file; only then may the second
                # one start.
                while not _is_stopped(first):
                    time.sleep(0.01)
            second = self._start(out)
            if kind != "pairs":
                second.wait()
                first.signal(signal.SIGCONT)
            first.wait()
            if kind == "pairs":
                second.wait()
            last = self._start(out)
            last.wait()
            found.add(out, begun, first, second, last)
        return found

    def _start(
        self, out: Path, todo: tuple[Task, ...] | None = None, *, stopped: bool = False
    ) -> ForkedSweep:
        trap = stop_after_reading if stopped else nothing
        return ForkedSweep.start(out, todo or self.todo, self.device, trap)


def _is_stopped(run: ForkedSweep) -> bool:
    import psutil

    try:
        return psutil.Process(run.process.pid).status() in {
            psutil.STATUS_STOPPED,
            psutil.STATUS_ZOMBIE,
        }
    except psutil.NoSuchProcess:
        return True


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.two_at_once", __doc__)
    for kind in KINDS:
        made.add_argument(f"--{kind}", type=int, default=_N_STARTS, help="starts (default: 20)")
    made.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    made.add_argument("--device", choices=DEVICES, default="virtual", help="default: virtual")
    made.add_argument(
        "--points", type=int, default=_N_POINTS, help="points of a sweep (default: 24)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each kind of start."""
    given = parser().parse_args(arguments)
    wrong = 0
    print(f"{'':8} {'starts':>7} {'with losses':>12} {'lost':>6} {'doubled':>8} {'refused':>8}")
    warm_up(given.device)
    with tempfile.TemporaryDirectory() as folder:
        pairs = Pairs(Path(folder), given.device, given.points, given.seed)
        for kind in KINDS:
            found = pairs.tally(kind, getattr(given, kind))
            wrong += found.lost + found.doubled + found.unnamed + len(found.failures)
            print(
                f"{kind:8} {found.n_starts:>7} {found.with_losses:>12} {found.lost:>6} "
                f"{found.doubled:>8} {found.refused:>8}"
            )
            for message in found.failures[:3]:
                print(f"  failed: {message}")
            if found.unnamed:
                print(f"  {found.unnamed} refusals do not name the other process")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
