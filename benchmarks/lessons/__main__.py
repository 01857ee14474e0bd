"""Measure the main figures of lessons 04 to 08 on the GPU of this machine and the virtual H200.

    python -m benchmarks.lessons run
    python -m benchmarks.lessons report --write docs/both-worlds.md
    python -m benchmarks.lessons answers --lessons 01 02 --show
    python -m benchmarks.lessons minutes
    python -m benchmarks.lessons gallery --pictures

run     measures the virtual figures, and those of a CUDA GPU where there is one, in 20 to 60
        seconds. Without a CUDA GPU, its figures in the file stay as they are.
report  prints the table or puts it into the page.
answers gives each exercise right, wrong and senseless answers in JupyterLab in Chromium, and
        counts the wrong verdicts. It takes about half a minute for each lesson.
minutes prints how long the core of each lesson takes a learner, and what it consists of.
gallery writes the questions and minutes of the lessons into README, the page of lessons and the
        instructor's plans. With --pictures it first runs the lessons, for some minutes, and takes
        a picture of each.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RESULTS, ROOT

_RESULTS = RESULTS / "both-worlds-h200.json"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.lessons", __doc__)
    commands = made.add_subparsers(required=True)
    run = commands.add_parser("run", help="measure the figures")
    run.add_argument("--out", type=Path, default=_RESULTS, help="file of results")
    run.set_defaults(command=_run)
    report = commands.add_parser("report", help="make the table")
    report.add_argument("--results", type=Path, default=_RESULTS, help="file of results")
    report.add_argument("--write", type=Path, default=None, help="page to update")
    report.set_defaults(command=_report)
    answers = commands.add_parser("answers", help="answer each exercise in many ways")
    answers.add_argument(
        "--lessons", nargs="*", default=(), help="such as 03 or 08_streams; default: all"
    )
    answers.add_argument("--show", action="store_true", help="print every verdict")
    answers.set_defaults(command=_answers)
    minutes = commands.add_parser("minutes", help="estimate how long each lesson takes")
    minutes.set_defaults(command=_minutes)
    gallery = commands.add_parser("gallery", help="write what the pages say of the lessons")
    gallery.add_argument("--pictures", action="store_true", help="take the pictures anew")
    gallery.set_defaults(command=_gallery)
    return made


def _answers(options: argparse.Namespace) -> None:
    from benchmarks.lessons.answers import run

    if any(each.faults for each in run(options.lessons, show=options.show)):
        raise SystemExit(1)


def _minutes(_options: argparse.Namespace) -> None:
    from benchmarks.lessons.minutes import report

    print(*report(sorted((ROOT / "notebooks" / "source").glob("*.py"))), sep="\n")


def _gallery(options: argparse.Namespace) -> None:
    from benchmarks.lessons.gallery import write

    write(pictures=options.pictures)


def _run(options: argparse.Namespace) -> None:
    from benchmarks.lessons.both_worlds import run

    run(options.out)


def _report(options: argparse.Namespace) -> None:
    from benchmarks.lessons.both_worlds import write

    write(options.results, options.write)


if __name__ == "__main__":
    main()
