"""Write what the pages say of the lessons.

    python -m benchmarks.lessons minutes
    python -m benchmarks.lessons gallery --pictures

minutes prints how long the core of each lesson takes a learner, and what it consists of.
gallery writes the questions and minutes of the lessons into README, the page of lessons and the
        instructor's plans. With --pictures it first runs the lessons, for some minutes, and takes
        a picture of each.
"""

import argparse
from collections.abc import Sequence

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import ROOT


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    made = parser_of("benchmarks.lessons", __doc__)
    commands = made.add_subparsers(required=True)
    minutes = commands.add_parser("minutes", help="estimate how long each lesson takes")
    minutes.set_defaults(command=_minutes)
    gallery = commands.add_parser("gallery", help="write what the pages say of the lessons")
    gallery.add_argument("--pictures", action="store_true", help="take the pictures anew")
    gallery.set_defaults(command=_gallery)
    options = made.parse_args(arguments)
    options.command(options)


def _minutes(_options: argparse.Namespace) -> None:
    from benchmarks.lessons.minutes import report

    print(*report(sorted((ROOT / "notebooks" / "source").glob("*.py"))), sep="\n")


def _gallery(options: argparse.Namespace) -> None:
    from benchmarks.lessons.gallery import write

    write(pictures=options.pictures)


if __name__ == "__main__":
    main()
