"""Which flush makes a GPU's cache cold and clean? Take times and counters, and write them up.

    python -m benchmarks.cold_cache time FOLDER
    ncu ... python -m benchmarks.cold_cache count FOLDER
    ncu ... python -m benchmarks.cold_cache halves FOLDER
    python -m benchmarks.cold_cache gather FOLDER
    python -m benchmarks.cold_cache table --write docs/cold-cache.md

time    reads the durations of kernels from CUPTI's records; --virtual tries it without a GPU.
count   runs the kernels whose bytes to and from memory ncu counts: see the page for its options.
halves  runs the kernels for which ncu counts requests from one half of the cache to the other.
gather  joins times and counters in the file of results.
table   prints the tables, or puts them and the figure into the page.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.environment import gpu_in_use
from benchmarks.common.folders import RESULTS

# The results are in the repository, so that the page can be made again without a GPU.
_RESULTS = RESULTS / "cold-cache-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.cold_cache", __doc__)
    commands = made.add_subparsers(required=True)
    times = commands.add_parser("time", help="read the durations of kernels")
    times.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    times.add_argument(
        "--samples", type=int, default=15, help="samples of each kernel, size and way"
    )
    times.add_argument("--works", nargs="*", default=[], help="only these kernels")
    times.set_defaults(command=_time)
    count = commands.add_parser("count", help="run what ncu counts")
    count.add_argument("--ways", nargs="*", default=[], help="only these ways to flush")
    count.add_argument("--name", default="main", help="name of ncu's report")
    count.add_argument("--budget", type=float, default=60.0, help="time limit in seconds")
    count.add_argument("--rounds", type=int, default=2, help="how often to run everything")
    count.set_defaults(command=_count)
    halves = commands.add_parser("halves", help="run what ncu counts between the halves")
    halves.set_defaults(command=_halves)
    gather = commands.add_parser("gather", help="join times and counters")
    gather.add_argument("--reports", nargs="*", default=["main"], help="names of the reports")
    gather.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    gather.set_defaults(command=_gather)
    for command in (times, count, halves, gather):
        command.add_argument("folder", type=Path, help="folder of the times and counters")
    table = commands.add_parser("table", help="make the tables and the figure")
    table.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    table.add_argument("--write", type=Path, default=None, help="page to update")
    table.set_defaults(command=_table)
    return made


def _time(options: argparse.Namespace) -> None:
    from benchmarks.cold_cache.take import take_times

    with gpu_in_use(virtual=options.virtual):
        take_times(options.folder, options.samples, options.works, virtual=options.virtual)


def _count(options: argparse.Namespace) -> None:
    from benchmarks.cold_cache.take import take_counts

    take_counts(options.folder, options.name, options.budget, options.rounds, options.ways)


def _halves(options: argparse.Namespace) -> None:
    from benchmarks.cold_cache.take import take_halves

    take_halves(options.folder)


def _gather(options: argparse.Namespace) -> None:
    from benchmarks.cold_cache.take import gather

    gather(options.folder, options.reports, options.out)


def _table(options: argparse.Namespace) -> None:
    from benchmarks.cold_cache.page import renew

    renew(options.results, options.write)


if __name__ == "__main__":
    main()
