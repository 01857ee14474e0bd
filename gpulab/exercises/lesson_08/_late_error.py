"""Which line of a program raises when a kernel fails: the one that failed, or a later one."""

import linecache
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulab.exercises.machines import throwaway_gpu
from gpulab.foreign_text import visible

if TYPE_CHECKING:
    import pandas as pd


def line_that_raises(program: Callable[..., object], **given: object) -> "pd.Series[str]":
    """Run a program on a virtual GPU of its own, and return its line that raised.

    Parameters
    ----------
    program
        The comment at the end of each of its lines names the line.
    **given
        Its arguments.

    Returns
    -------
    pandas.Series
        ``line``, as its comment calls it (or the code), and ``error``. The line is ``"no line"``
        for a program that runs through.
    """
    import pandas as pd

    found = {"line": "no line", "error": ""}
    with throwaway_gpu():
        try:
            program(**given)
        except (IndexError, RuntimeError) as error:
            frames = traceback.extract_tb(error.__traceback__)
            names = {getattr(program, "__name__", "")}
            inside = next((frame for frame in reversed(frames) if frame.name in names), frames[-1])
            code = linecache.getline(inside.filename, inside.lineno or 0)
            found["line"] = _before_it(inside.filename, inside.lineno or 0, code)
            found["error"] = visible(f"{type(error).__name__}: {error}")
    return pd.Series(found)


def _before_it(filename: str, number: int, code: str) -> str:
    """Return the comment of a line; a line without one belongs to the last that has one."""
    while "#" not in code and number > 1 and code.strip():
        number -= 1
        code = linecache.getline(filename, number)
    return code.rpartition("#")[2].strip()
