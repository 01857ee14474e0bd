"""Send Ctrl-C at each line of chosen modules in turn, and see which files are left open."""

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import psutil  # type: ignore[import-untyped]  # psutil ships no types


def interrupted_at_each_line(program: Callable[[], object], *modules: str) -> Iterator[str]:
    """Run a program again and again, each time with Ctrl-C one line later.

    Yields the line after each run, until a run ends before its line comes. It fails if a Ctrl-C is
    lost. ``python -m benchmarks.interrupts files`` does the same at each bytecode.

    Parameters
    ----------
    modules
        Beginnings of the names of the modules whose lines count.
    """
    before = signal.getsignal(signal.SIGINT)
    at = 0
    while True:
        # A notebook keeps the last error, and with it every variable in its traceback.
        place, last_error = _interrupted(program, modules, at)
        if last_error is None:
            break
        assert signal.getsignal(signal.SIGINT) is before, place
        yield place
        at += 1
    assert at, "no line was reached"


def _interrupted(
    program: Callable[[], object], modules: tuple[str, ...], at: int
) -> tuple[str, KeyboardInterrupt | None]:
    """Run a program with Ctrl-C at one line; return the line and the error, if that line comes."""
    n, place = 0, ""

    def trace(frame: FrameType, event: str, _arg: object) -> object:
        nonlocal n, place
        if not str(frame.f_globals.get("__name__")).startswith(modules):
            return None
        if event == "line":
            if n == at:
                sys.settrace(None)
                place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                signal.raise_signal(signal.SIGINT)
            n += 1
        return trace

    collects = gc.isenabled()
    gc.disable()  # it would run at another place each time
    sys.settrace(trace)
    try:
        program()
    except KeyboardInterrupt as error:
        return place, error
    finally:
        sys.settrace(None)
        if collects:
            gc.enable()
    assert not place, f"the Ctrl-C at {place} was lost"
    return "", None


def open_in(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open."""
    opened = [file.path for file in psutil.Process().open_files()]
    return [path for path in opened if Path(path).is_relative_to(folder)]
