"""Measure how smooth the pictures are: frame times in a real, headless Chromium.

    python -m benchmarks.browser explorers
    python -m benchmarks.browser machine [--steps 40] [--widgets 10]

explorers  prints how soon an explorer answers on its page: drag, keys, hover, zoom, first picture.
machine    prints how soon the machine answers: a drag, its sliders, keys, and the view alone.

The headless browser draws on the CPU, so with a GPU the pictures are at least as smooth as this.
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
    made = parser_of("benchmarks.browser", __doc__)
    commands = made.add_subparsers(required=True)
    explorers = commands.add_parser("explorers", help="time the explorers' answers")
    explorers.set_defaults(command=_explorers)
    machine = commands.add_parser("machine", help="time the machine's answers")
    machine.add_argument("--steps", type=int, default=40, help="steps of each kind")
    machine.add_argument("--widgets", type=int, default=1, help="machines in the notebook")
    machine.set_defaults(command=_machine)
    return made


def _explorers(_: argparse.Namespace) -> None:
    from benchmarks.browser.explorer_frames import run

    run()


def _machine(options: argparse.Namespace) -> None:
    from benchmarks.browser.machine_frames import run

    run(options.steps, options.widgets)


if __name__ == "__main__":
    main()
