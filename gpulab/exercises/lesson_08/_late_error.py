"""Find the line of a program that raises an error when a kernel fails."""

import linecache
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulab.core.foreign_text import visible
from gpulab.exercises.answers import fresh_gpu

if TYPE_CHECKING:
    import pandas as pd


def line_that_raises(program: Callable[..., object], **arguments: object) -> "pd.Series[str]":
    """Run a program on a new virtual GPU, and return the ``line`` that raised an ``error``.

    An error in a kernel is raised by a later call, so this is often not the line that failed. A
    line is named by the comment at its end, or its code; it is ``"no line"`` if nothing was
    raised.
    """
    import pandas as pd

    outcome = {"line": "no line", "error": ""}
    with fresh_gpu():  # on a CUDA GPU the process could not use it any more
        try:
            program(**arguments)
        except (IndexError, RuntimeError) as error:
            frames = traceback.extract_tb(error.__traceback__)
            names = {getattr(program, "__name__", "")}
            raising = next(
                (frame for frame in reversed(frames) if frame.name in names), frames[-1]
            )
            outcome["line"] = _comment_at(raising.filename, raising.lineno or 0)
            outcome["error"] = visible(f"{type(error).__name__}: {error}")
    return pd.Series(outcome)


def _comment_at(filename: str, number: int) -> str:
    """Return the comment of a line, or that of the nearest line above that has one."""
    code = linecache.getline(filename, number)
    while "#" not in code and number > 1 and code.strip():
        number -= 1
        code = linecache.getline(filename, number)
    return code.rpartition("#")[2].strip()
