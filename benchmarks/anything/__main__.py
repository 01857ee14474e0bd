"""Measure the examples of docs/measuring-anything.md beside the driver's own records.

    python -m benchmarks.anything run
    python -m benchmarks.anything report --write docs/measuring-anything.md

run     measures each example and reads the driver's records before and after; --virtual tries
        the examples that can run on the virtual GPU.
report  puts the results of the last run into the page.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RESULTS

_RESULTS = RESULTS / "accuracy-anything-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.anything", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="measure every example")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="make the table")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.set_defaults(command=_report)
    return made


def _run(options: argparse.Namespace) -> None:
    from benchmarks.anything.results import run

    run(options.out, virtual=options.virtual)


def _report(options: argparse.Namespace) -> None:
    from benchmarks.anything.results import report

    report(options.results, options.write)


if __name__ == "__main__":
    main()
