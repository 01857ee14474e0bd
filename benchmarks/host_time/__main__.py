"""Fit the host's costs to recorded times of whole programs, and compare the virtual GPU with them.

    python -m benchmarks.host_time fit --write
    python -m benchmarks.host_time judge

fit     fits the costs that the virtual GPU charges the host between launches to the programs of
        one or more files, prints the costs before and after, and writes them to gpulab/data with
        --write. Each file has a host of its own; how much slower the others are than the first
        is fitted, too.
judge   runs the programs of a file on the virtual H200 and prints the errors.

Without a file, fit takes the recordings of the repository, and judge the H200's. The programs of
the H100's need torchvision and transformers.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import RECORDINGS

_H200, _H100 = (RECORDINGS / f"{gpu}-host-time.json" for gpu in ("h200", "h100"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.host_time", __doc__)
    commands = made.add_subparsers(required=True)
    fit = commands.add_parser("fit", help="fit the host's costs")
    fit.add_argument("times", type=Path, nargs="*", default=[_H200, _H100], help="files of times")
    fit.add_argument("--write", action="store_true", help="write the costs to gpulab/data")
    fit.set_defaults(command=_fit)
    judge = commands.add_parser("judge", help="compare the virtual GPU with a file of times")
    judge.add_argument("times", type=Path, nargs="?", default=_H200, help="file of times")
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
