"""Kill a sweep at random moments, resume it, and count lost and duplicated points.

    python -m benchmarks.kills --minutes 5 --device cuda
    python -m benchmarks.kills --minutes 1 --seed 7

Half of the kills come at a random time between the start of the process and the end of the sweep.
The others come while a line is being written, so that a part of it is on disk.
"""

import argparse
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.forked_sweeps import (
    DEVICES,
    ForkedSweep,
    kill_while_writing,
    nothing,
    rows_by_key,
    tasks,
    warm_up,
    whole_lines,
)

_N_POINTS = 40


class Campaign:
    """Kills sweeps until the time is over, and counts what it found."""

    def __init__(self, folder: Path, device: str, n_points: int, seed: int) -> None:
        self.folder, self.device, self.todo = folder, device, tasks(n_points)
        self.random = random.Random(seed)  # noqa: S311  # no secret
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.longest_s = 0.0

    def run(self, end_s: float) -> None:
        """Kill and resume, sweep after sweep."""
        while time.monotonic() < end_s or not self.counts["sweeps"]:
            self.sweep(self.folder / f"sweep-{self.counts['sweeps']}.jsonl", end_s)
            self.counts["sweeps"] += 1

    def sweep(self, out: Path, end_s: float) -> None:
        """Run one sweep to its end, killed and resumed many times."""
        kept: Counter[str] = Counter()
        ended = (
            self.counts["sweeps"] == 0
        )  # the first sweep is not killed, to see how long one takes
        while not ended and time.monotonic() < end_s:
            before = whole_lines(out)
            run = self._killed(out)
            self._check(out, run, before)
            kept += run.kept
            ended = run.outcome == "done"
        if not ended or self.counts["sweeps"] == 0:
            start_s = time.monotonic()
            run = ForkedSweep.start(out, self.todo, self.device)
            before = whole_lines(out)
            run.wait()
            self._check(out, run, before)
            kept += run.kept
            self.longest_s = max(self.longest_s, time.monotonic() - start_s)
        rows = rows_by_key(out)
        self.counts["points"] += len(rows)
        # Two kinds of loss: a task that no line has, and a point that a sweep reported as saved
        # and whose line is gone.
        self.counts["lost"] += len({task.key for task in self.todo} - rows.keys())
        self.counts["lost"] += len(kept - rows)
        self.counts["doubled"] += rows.total() - len(rows)

    def _killed(self, out: Path) -> ForkedSweep:
        if self.random.random() < 0.5:  # noqa: PLR2004  # half of them
            trap = partial(
                kill_while_writing, self.random.randrange(len(self.todo)), self.random.random()
            )
            run = ForkedSweep.start(out, self.todo, self.device, trap)
            kind = "killed while writing"
        else:
            run = ForkedSweep.start(out, self.todo, self.device, nothing)
            # Up to the duration of a whole sweep, so that kills come at every stage of it.
            time.sleep(self.random.uniform(0, self.longest_s))
            run.signal(signal.SIGKILL)
            kind = "killed by the clock"
        run.wait()
        if not run.outcome:
            self.counts[kind] += 1
        return run

    def _check(self, out: Path, run: ForkedSweep, before: bytes) -> None:
        """Count lost lines of earlier runs, lines cut off, and runs that failed."""
        if not whole_lines(out).startswith(before):
            self.counts["lost"] += 1
        if out.exists() and out.stat().st_size > len(whole_lines(out)):
            self.counts["lines cut off"] += 1
        if run.outcome in {"refused", "failed"}:
            self.counts[run.outcome] += 1
            self.failures.append(run.message)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.kills", __doc__)
    made.add_argument("--minutes", type=float, default=1.0, help="duration (default: 1)")
    made.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    made.add_argument("--device", choices=DEVICES, default="virtual", help="default: virtual")
    made.add_argument(
        "--points", type=int, default=_N_POINTS, help="points of a sweep (default: 40)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print how many sweeps were killed, and what was lost or duplicated."""
    given = parser().parse_args(arguments)
    warm_up(given.device)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(Path(folder), given.device, given.points, given.seed)
        campaign.run(time.monotonic() + 60 * given.minutes)
    for name in (
        *("killed by the clock", "killed while writing", "lines cut off", "sweeps", "points"),
        *("lost", "doubled", "refused", "failed"),
    ):
        print(f"{name:22} {campaign.counts[name]:8,}")
    for message in campaign.failures[:3]:
        print(message)
    if any(campaign.counts[name] for name in ("lost", "doubled", "refused", "failed")):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
