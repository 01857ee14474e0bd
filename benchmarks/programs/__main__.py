"""Run other people's unmodified programs on the virtual GPU and on the CPU, and compare.

    python -m benchmarks.programs run FOLDER --out programs.json
    python -m benchmarks.programs run FOLDER --names MNIST "GPT from the video" --show
    python -m benchmarks.programs report programs.json --write docs/virtual-gpu.md

FOLDER contains the repositories of catalogue.py, each in a folder owner+name, at the commit that
is given there. Do not add their files to this project. Programs that need torchvision or another
package are left out where it is not installed.

run     starts each program in its own processes and folders, and compares the values that it
        calls backward() on.
report  prints the table, or puts it into a page.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.programs", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="run the programs")
    run.add_argument("folder", type=Path, help="folder of the repositories")
    run.add_argument("--names", nargs="+", default=[], help="programs; default: all")
    run.add_argument("--workers", type=int, default=2, help="programs at once")
    run.add_argument("--limit", type=float, default=180, help="seconds for one program")
    run.add_argument("--out", type=Path, default=None, help="file of outcomes")
    run.add_argument("--alone", action="store_true", help="run on the virtual GPU only")
    run.add_argument("--show", action="store_true", help="print what the programs print")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="print the table")
    report.add_argument("outcomes", type=Path, help="file that run has written")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.set_defaults(command=_report)
    return made


def _run(options: argparse.Namespace) -> None:
    from benchmarks.programs.run import run

    run(
        options.folder,
        options.names,
        n_workers=options.workers,
        limit_s=options.limit,
        out=options.out,
        is_alone=options.alone,
        is_shown=options.show,
    )


def _report(options: argparse.Namespace) -> None:
    from benchmarks.programs.report import report

    report(options.outcomes, options.write)


if __name__ == "__main__":
    main()
