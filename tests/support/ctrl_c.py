"""Send Ctrl-C at each place of chosen modules in turn, and see which files are left open."""

import _thread
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import psutil  # type: ignore[import-untyped]  # psutil ships no types


class _Sent:
    """Sends Ctrl-C when it is deleted, which is after the function that made it has ended.

    So the signal is handled where Python looks for signals next, and not inside the tracer.
    """

    __del__ = staticmethod(_thread.interrupt_main)


def interrupted_at_each_place(
    program: Callable[[], object], *modules: str, by: str = "line", step: int = 1
) -> Iterator[str]:
    """Run a program again and again, each time with Ctrl-C some places later.

    Yields the place after each run, until a run ends before its place comes. It fails if a Ctrl-C
    is lost.

    Parameters
    ----------
    modules
        Beginnings of the names of the modules whose places count.
    by
        What a place is: a ``"line"`` or an ``"opcode"``.
    step
        How many places later.
    """
    before = signal.getsignal(signal.SIGINT)
    at = 0
    while True:
        # A notebook keeps the last error, and with it every variable in its traceback.
        place, last_error = _interrupted(program, modules, by, at)
        if last_error is None:
            break
        assert signal.getsignal(signal.SIGINT) is before, place
        yield place
        at += step
    assert at, "no place was reached"


def _interrupted(
    program: Callable[[], object], modules: tuple[str, ...], by: str, at: int
) -> tuple[str, KeyboardInterrupt | None]:
    """Run a program with Ctrl-C at one place; return the place and the error, if it comes."""
    n, place = 0, ""

    def trace(frame: FrameType, event: str, _arg: object) -> object:
        nonlocal n, place
        if not str(frame.f_globals.get("__name__")).startswith(modules):
            return None
        frame.f_trace_opcodes = by == "opcode"
        if event == by:
            if n == at:
                sys.settrace(None)
                place = f"{frame.f_code.co_filename}:{frame.f_lineno} [{frame.f_lasti}]"
                sent = _Sent()  # noqa: F841  # it is deleted when this function has ended
            n += 1
        return trace

    collects = gc.isenabled()
    gc.disable()  # it would run at another place each time
    sys.settrace(trace)
    try:
        program()
        # A step that takes long lets a signal wait for some milliseconds.
        if place:
            signal.sigtimedwait([], 5)
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
