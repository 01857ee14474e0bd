"""Take the main figures of lessons 04 to 08 on the GPU of this machine and on the virtual H200.

    python -m benchmarks.lessons run
    python -m benchmarks.lessons report --write docs/lessons.md

run     takes 20 to 60 seconds. It takes the virtual figures anywhere, and those of a CUDA GPU
        where there is one; what the file contains of the other is kept.
report  prints the table or puts it into the page.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RESULTS

_RESULTS = RESULTS / "both-worlds-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.lessons", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="take the figures")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="make the table")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page with the two markers")
    report.set_defaults(command=_report)
    return made


def _run(options: argparse.Namespace) -> None:
    from benchmarks.lessons.both_worlds import run

    run(options.out)


def _report(options: argparse.Namespace) -> None:
    from benchmarks.lessons.both_worlds import write

    write(options.results, options.write)


if __name__ == "__main__":
    main()
