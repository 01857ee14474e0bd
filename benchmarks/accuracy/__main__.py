"""Compare gpulab and other people's tools with the driver's own records.

    python -m benchmarks.accuracy run
    python -m benchmarks.accuracy summary
    python -m benchmarks.accuracy report --write docs/accuracy.md

run      times some sixty cases with every tool that can be found, on the GPU in use, and reads
         the driver's records before and after each answer in the same state of the cache. It takes
         about six minutes and changes no setting of the GPU. --deadline 300 ends it within 300 s;
         --virtual tries the program on the virtual GPU, and its figures mean nothing.
summary  prints the goals of gpulab.measure beside what a run measured.
report   makes the tables and the figure from the results of a run.
"""

import argparse
import warnings
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RESULTS

# The default, so that `report` makes the page again from the results in the repository, without a
# GPU.
_RESULTS = RESULTS / "accuracy-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    made = parser_of("benchmarks.accuracy", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="compare every tool with the driver's records")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.add_argument("--virtual", action="store_true", help="run on the virtual H200")
    run.add_argument("--deadline", type=float, default=600.0, help="time limit in seconds")
    run.add_argument("--cases", type=int, default=None, help="number of cases; default: all")
    run.add_argument("--processes", type=int, default=20, help="number of fresh processes")
    run.add_argument(
        "--tools", nargs="+", default=("",), help="only tools whose names begin with one of these"
    )
    run.set_defaults(command=_run)
    summary = commands.add_parser("summary", help="print the goals and what was measured")
    summary.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    summary.set_defaults(command=_summary)
    report = commands.add_parser("report", help="make the tables and the figure")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.add_argument("--image", type=Path, default=None, help="file of the figure")
    report.set_defaults(command=_report)
    options = made.parse_args(arguments)
    warnings.simplefilter("ignore")  # the tools warn of conditions that this creates on purpose
    options.command(options)


def _run(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.report import print_goals
    from benchmarks.accuracy.run import run

    run(
        options.out,
        virtual=options.virtual,
        limit_s=options.deadline,
        n_cases=options.cases,
        n_processes=options.processes,
        beginnings=tuple(options.tools),
    )
    print_goals(options.out)


def _summary(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.report import print_goals

    print_goals(options.results)


def _report(options: argparse.Namespace) -> None:
    from benchmarks.accuracy.report import write

    write(options.results, options.write, options.image)


if __name__ == "__main__":
    main()
