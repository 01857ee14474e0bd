"""Fit the host's costs to recorded times of whole programs, and compare the virtual GPU with them.

    python -m benchmarks.host_time fit --write
    python -m benchmarks.host_time judge

fit     fits the costs that the virtual GPU charges the host between launches to the programs of
        one or more files, prints the costs before and after, and writes them to gpulab/data with
        --write.
judge   runs the same programs on the virtual H200 and prints the errors.

Without a file, fit and judge take the recording of the repository. Give several files to use the
median of each program's readings: such hosts change.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RECORDINGS

_RECORDED = [RECORDINGS / "h200-host-time.json"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.host_time", __doc__)
    commands = made.add_subparsers(required=True)
    files = "files of recorded times"
    fit = commands.add_parser("fit", help="fit the host's costs")
    fit.add_argument("times", type=Path, nargs="*", default=_RECORDED, help=files)
    fit.add_argument("--write", action="store_true", help="write the costs to gpulab/data")
    fit.set_defaults(command=_fit)
    judge = commands.add_parser("judge", help="compare the virtual GPU with a file of times")
    judge.add_argument("times", type=Path, nargs="*", default=_RECORDED, help=files)
    judge.set_defaults(command=_judge)
    return made


def _fit(options: argparse.Namespace) -> None:
    from benchmarks.host_time.fitting import fit

    print(fit(options.times, is_written=options.write))


def _judge(options: argparse.Namespace) -> None:
    from benchmarks.host_time.judging import judge

    print(judge(options.times))


if __name__ == "__main__":
    main()
