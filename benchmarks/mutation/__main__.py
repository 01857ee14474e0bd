"""Mutate the most critical code, and count the mutants that its tests do not notice.

    python -m benchmarks.mutation --workers 16
    python -m benchmarks.mutation --rooms stopping stats --sample 60 --seed 1

Each mutant changes one operator, number, condition or statement. It survives if all fast tests of
its room still pass. Mutants without any visible effect are listed with the reason in
``equivalent.toml`` beside this file, by the text of their line; they are not run.
"""

import argparse
import random
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT
from benchmarks.mutation.mutants import Mutant, mutants_of
from benchmarks.mutation.run import Limits, run, warm_up

_EQUIVALENT = Path(__file__).with_name("equivalent.toml")
# For the run without a mutant: no room's tests take longer than this.
_FIRST_LIMITS = Limits(cpu_s=600, wall_s=3600)


@dataclass(frozen=True, slots=True)
class Room:
    """Files to mutate, and their tests; those that fail soonest come first, to save time."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


_SIMULATOR = "gpulab/virtual/simulator"
ROOMS = {
    "stopping": Room(
        ("gpulab/timing/_stopping.py",),
        ("tests/timing/test_stopping.py", "tests/timing/test_measure.py",
         "tests/timing/test_compare.py"),
    ),
    "stats": Room(
        ("gpulab/stats.py", "gpulab/device/measurement/_measurement.py",
         "gpulab/device/measurement/_conditions.py"),
        ("tests/test_stats.py", "tests/device/measurement", "gpulab/stats.py", "gpulab/device/measurement"),
    ),
    "findings": Room(
        ("gpulab/timing/_findings.py",),
        ("tests/timing/test_findings.py", "tests/timing/test_findings_on_work.py",
         "tests/timing/test_measure.py"),
    ),
    "races": Room(
        ("gpulab/happens_before",),
        ("tests/happens_before", "gpulab/happens_before", "tests/virtual/test_order.py",
         "tests/tracing/sanitizer/test_hazards.py"),
    ),
    "engine": Room(
        tuple(f"{_SIMULATOR}/_{name}.py" for name in (
            "device", "event_queue", "graphs", "host", "machine", "scheduler", "task")),
        ("tests/virtual/simulator", "gpulab/virtual/simulator", "tests/virtual/test_order.py",
         "tests/tracing/sanitizer/test_hazards.py", "tests/virtual/patches", "tests/virtual"),
    ),
}  # fmt: skip


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.mutation", __doc__)
    made.add_argument("--rooms", nargs="+", choices=ROOMS, default=list(ROOMS), metavar="ROOM",
                      help=f"some of {', '.join(ROOMS)}; default: all")  # fmt: skip
    made.add_argument("--files", nargs="+", default=(), help="only files whose name contains this")
    made.add_argument("--workers", type=int, default=1, help="number of forks at a time")
    made.add_argument("--sample", type=int, help="number of random mutants of each room")
    made.add_argument("--seed", type=int, default=0, help="seed of the sample")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    """Print each survivor when it is found, then the table."""
    options = parser().parse_args(arguments)
    known = equivalent_mutants()
    warm_up()
    rows = []
    for name in options.rooms:
        mutants = [
            mutant
            for mutant in mutants_in(ROOMS[name])
            if not options.files or any(part in mutant.path.name for part in options.files)
        ]
        if options.sample is not None and options.sample < len(mutants):
            mutants = random.Random(options.seed).sample(mutants, options.sample)  # noqa: S311 # no secret
        tried = [mutant for mutant in mutants if key_of(mutant) not in known]
        survivors = _survivors(tried, ROOMS[name].tests, options.workers)
        rows.append((name, len(mutants), len(mutants) - len(tried), survivors))
    print(f"\n{'room':<10} {'mutants':>8} {'equivalent':>11} {'survived':>9} {'share':>7}")
    for name, n_mutants, n_equivalent, survivors in rows:
        share = 100 * survivors / max(n_mutants - n_equivalent, 1)
        print(f"{name:<10} {n_mutants:>8} {n_equivalent:>11} {survivors:>9} {share:>6.1f}%")


def mutants_in(room: Room) -> list[Mutant]:
    """Return the mutants of all files of a room, with paths relative to the project."""
    found: list[Mutant] = []
    for name in room.files:
        path = Path(name)
        files = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        for file in files:
            found += mutants_of(file.relative_to(ROOT))
    return found


def key_of(mutant: Mutant) -> tuple[str, str, str]:
    """Return the key of a mutant in equivalent.toml, valid while its line keeps its text."""
    return mutant.path.as_posix(), mutant.line, mutant.change


def equivalent_mutants() -> set[tuple[str, str, str]]:
    """Return the keys of the mutants that equivalent.toml lists, each with a reason."""
    listed = tomllib.loads(_EQUIVALENT.read_text("utf-8")).get("mutant", [])
    return {(each["file"], each["line"], each["change"]) for each in listed if each["reason"]}


def _survivors(mutants: Sequence[Mutant], tests: Sequence[str], workers: int) -> int:
    """Print each mutant that the tests do not notice, and return their number."""
    ((_, passed, cpu_s),) = run([None], tests, workers=1, limits=_FIRST_LIMITS)
    if not passed:
        raise SystemExit(
            f"the tests fail without any mutant; run: python -m pytest {' '.join(tests)}"
        )
    # Generous, because a mutant that is only slower must not count as noticed.
    limits = Limits(cpu_s=10 + 3 * cpu_s, wall_s=60 + 20 * cpu_s * max(workers, 2))
    print(f"{len(mutants)} mutants; the tests take {cpu_s:.1f} s of CPU time", flush=True)
    n_survivors = 0
    for mutant, survived, _ in run(mutants, tests, workers=workers, limits=limits):
        if survived:
            n_survivors += 1
            print(mutant, flush=True)
    return n_survivors


if __name__ == "__main__":
    main()
