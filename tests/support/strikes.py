"""Raise a MemoryError in the middle of chosen modules, as a system without memory would."""

import gc
import linecache
import sys
from collections.abc import Callable
from types import FrameType


def struck(at: int, work: Callable[[], object], modules: str | tuple[str, ...]) -> bool:
    """Raise a MemoryError at a line of some modules; return whether it reached the caller.

    Parameters
    ----------
    at
        Number of the line, counted over all lines of these modules that run.
    modules
        Prefixes of the modules' names.
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

    # Garbage of earlier tests would be freed inside the work, at a place that differs each time,
    # and Python ignores an error there.
    collects = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        work()
    except MemoryError:
        return True
    finally:
        sys.settrace(None)
        if collects:
            gc.enable()
    return False


def _begins_a_try(frame: FrameType) -> bool:
    """Return whether the line is ``try:``, which cannot fail."""
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "try:"
