"""The command line of a benchmark: its parser, its commands, and processes of its own."""

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
    """Return what starts a module with this Python; its working directory must be the root."""
    return [sys.executable, "-m", module, *arguments]
