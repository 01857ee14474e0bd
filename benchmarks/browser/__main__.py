"""Measure how smooth the pictures are: frame times in a real, headless Chromium.

    python -m benchmarks.browser explorers
    python -m benchmarks.browser machine [--steps 40] [--widgets 10]
    python -m benchmarks.browser pictures [NAME ...] [--out docs/images]

explorers  prints how soon an explorer answers on its page: drag, keys, hover, zoom, first picture.
machine    prints how soon the machine answers: a drag, its sliders, keys, and the view alone.
pictures   takes the pictures of JupyterLab that README and docs show; look at them afterwards.

The headless browser draws on the CPU, so with a GPU the pictures are at least as smooth as this.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common.command_line import parser_of
from benchmarks.common.folders import IMAGES


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
    pictures = commands.add_parser("pictures", help="take the pictures of README and docs")
    pictures.add_argument("names", nargs="*", help="only these, such as timeline or machine")
    pictures.add_argument("--out", type=Path, default=IMAGES, help="where they go")
    pictures.set_defaults(command=_pictures)
    return made


def _explorers(_: argparse.Namespace) -> None:
    from benchmarks.browser.explorer_frames import run

    run()


def _machine(options: argparse.Namespace) -> None:
    from benchmarks.browser.machine_frames import run

    run(options.steps, options.widgets)


def _pictures(options: argparse.Namespace) -> None:
    from benchmarks.browser.pictures import run

    run(options.names, options.out)


if __name__ == "__main__":
    main()
