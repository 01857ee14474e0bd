"""Command lines of the benchmarks: a parser for each, and how to start one in a new process."""

import argparse
import sys
from collections.abc import Callable

Command = Callable[[argparse.Namespace], None]


def parser_of(module: str, about: str | None) -> argparse.ArgumentParser:
    """Return an empty parser for ``python -m module``, described by the module's docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m {module}",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def python_command(module: str, *arguments: str) -> list[str]:
    """Return the command that starts a module with this Python, in the repository's root."""
    return [sys.executable, "-m", module, *arguments]
