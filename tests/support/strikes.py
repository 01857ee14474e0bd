"""Raise a MemoryError in the middle of chosen modules, as a system without memory would."""

import linecache
import sys
from collections.abc import Callable
from types import FrameType


def struck(at: int, work: Callable[[], object], modules: str | tuple[str, ...]) -> bool:
    """Raise a MemoryError at a line of some modules; tell whether it came through.

    Parameters
    ----------
    at
        Which of their lines, counted as they run.
    modules
        How the names of the modules begin.
    """
    n = 0

    def trace(frame: FrameType, event: str, _arg: object) -> object:
        nonlocal n
        if not str(frame.f_globals.get("__name__")).startswith(modules):
            return None
        n += event == "line" and not _begins_a_try(frame)
        if n == at:
            n += 1
            raise MemoryError
        return trace

    sys.settrace(trace)
    try:
        work()
    except MemoryError:
        return True
    finally:
        sys.settrace(None)
    return False


def _begins_a_try(frame: FrameType) -> bool:
    """Tell whether the line does nothing that could fail."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "try:"
