"""Command lines of the benchmarks: a parser for each, and how to start one in a new process."""

import argparse
import pkgutil
import sys
from collections.abc import Sequence


def parser_of(module: str, about: str | None) -> argparse.ArgumentParser:
    """Return an empty parser for ``python -m module``, described by the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def call_command(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> None:
    """Call the function of the chosen command with the options by their names.

    A command has the function's place as its default ``command``, such as
    ``"benchmarks.accuracy.run:run"``. It is imported only now, so that ``--help`` needs no torch.
    """
    options = vars(parser.parse_args(arguments))
    pkgutil.resolve_name(options.pop("command"))(**options)


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that starts a module with this Python, in the repository's root."""
    return [sys.executable, "-m", module, *arguments]
