"""Load a machine as a class of learners does, and print the memory and the time that it takes.

    python -m benchmarks.load kernels 30
    python -m benchmarks.load lessons
    python -m benchmarks.load rounds 10
    python -m benchmarks.load rounds 10 --lessons 03 11b
    python -m benchmarks.load first-entry
    python -m benchmarks.load timeline-age

kernels       runs one lesson in N Jupyter kernels at once, and prints how many failed, how long
              the lesson took, and the memory of each kernel while all of them still exist. On two
              cores 30 kernels take about 4 minutes and 8 GiB.
lessons       runs each lesson, or those that you name, in its own kernel, and prints the processor
              time and the memory that one learner needs for it. All take about 3 minutes.
rounds        runs all lessons, or those that you name, in one kernel repeatedly, and prints the
              memory after each round. A round of all takes about 2 minutes of processor time.
first-entry   starts new processes that import torch and enter a virtual GPU, and prints the time
              of both, and how many modules the entry imports.
timeline-age  times timelines on a fresh virtual GPU and on one that has run many operations.

Everything runs on the virtual GPU; times are those of the machine that runs it. RSS is the memory
of a process that is in RAM, with shared libraries; PSS divides shared memory among the processes
that share it, so that the PSS of all kernels add up to what they need; USS is the memory that a
process does not share. All three need Linux.
"""

import argparse
from collections.abc import Sequence

from benchmarks.common.command_line import parser_of


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one of the commands."""
    options = parser().parse_args(arguments)
    options.command(options)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = parser_of("benchmarks.load", __doc__)
    commands = made.add_subparsers(required=True)
    kernels = commands.add_parser("kernels", help="run a lesson in many kernels at once")
    kernels.add_argument("n", type=int, nargs="?", default=8, help="kernels (default: 8)")
    kernels.add_argument("--lesson", default="07", help="number of the lesson (default: 07)")
    kernels.set_defaults(command=_kernels)
    each = commands.add_parser("lessons", help="run each lesson in its own kernel")
    each.add_argument("numbers", nargs="*", help="such as 01 08b (default: all)")
    each.set_defaults(command=_lessons)
    rounds = commands.add_parser("rounds", help="run all lessons in one kernel repeatedly")
    rounds.add_argument("n", type=int, nargs="?", default=3, help="rounds (default: 3)")
    rounds.add_argument("--lessons", nargs="+", default=(), help="such as 03 11b (default: all)")
    rounds.set_defaults(command=_rounds)
    first = commands.add_parser("first-entry", help="time the first entry in new processes")
    first.add_argument("n", type=int, nargs="?", default=5, help="processes (default: 5)")
    first.set_defaults(command=_first_entry)
    age = commands.add_parser("timeline-age", help="time timelines on a used GPU")
    age.add_argument(
        "n", type=int, nargs="?", default=200_000, help="operations before (default: 200,000)"
    )
    age.set_defaults(command=_timeline_age)
    return made


def _kernels(options: argparse.Namespace) -> None:
    from benchmarks.load.notebooks import print_kernels

    print_kernels(options.n, options.lesson)


def _lessons(options: argparse.Namespace) -> None:
    from benchmarks.load.notebooks import print_lessons

    print_lessons(options.numbers)


def _rounds(options: argparse.Namespace) -> None:
    from benchmarks.load.notebooks import print_rounds

    print_rounds(options.n, options.lessons)


def _first_entry(options: argparse.Namespace) -> None:
    from benchmarks.load.processes import print_first_entry

    print_first_entry(options.n)


def _timeline_age(options: argparse.Namespace) -> None:
    from benchmarks.load.processes import print_timeline_age

    print_timeline_age(options.n)


if __name__ == "__main__":
    main()
