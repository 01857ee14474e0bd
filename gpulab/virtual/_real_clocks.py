"""Notice reads of clocks that show real time while the program runs on the virtual clock."""

import datetime as dt
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from gpulab.virtual._clock import CLOCKS, VIRTUAL_CLOCK, is_library

_OF_DATES = ("now", "utcnow", "today")
# A clock of ``time`` itself, and not its virtual stand-in, is one that a module of the program
# imported by name before the virtual GPU was entered.
_OF_TIME = tuple(f"{name}{unit}" for name in CLOCKS for unit in ("", "_ns"))


@dataclass(slots=True)
class ClocksRead:
    """The names of the real clocks that a program has read, and how often it read virtual ones."""

    real: list[str] = field(default_factory=list)
    n_virtual: int = 0


@contextmanager
def watch_clocks() -> Iterator[ClocksRead]:
    """Yield a record that counts which clocks the program reads inside the block.

    The virtual clock does not reach ``datetime``, ``os.times`` and clocks that a module imported
    by name earlier. Reads by libraries do not count. Each call of a function takes longer inside
    the block. If Python's profiler is in use, nothing is counted.
    """
    clocks = ClocksRead()

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            name = _real_clock(called)
            if name and not is_library(frame.f_code.co_filename):
                clocks.real.append(name)
        elif event == "call" and frame.f_code is VIRTUAL_CLOCK and frame.f_back is not None:
            clocks.n_virtual += not is_library(frame.f_back.f_code.co_filename)

    if sys.getprofile() is not None:  # one of the program, such as cProfile, goes on
        yield clocks
        return
    sys.setprofile(watch)
    try:
        yield clocks
    finally:
        sys.setprofile(None)


def _real_clock(called: Any) -> str:
    """Return the name of the clock that a builtin function reads, or an empty text."""
    name, owner = getattr(called, "__name__", ""), getattr(called, "__self__", None)
    if name in _OF_DATES and isinstance(owner, type) and issubclass(owner, dt.date):
        return f"{owner.__name__}.{name}()"
    if owner is time and name in _OF_TIME:
        return f"{name}() from an earlier import"
    return "os.times()" if called is os.times else ""
