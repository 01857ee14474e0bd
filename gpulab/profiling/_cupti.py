"""CUPTI in this process: collect its complaints, and detach it after a session of the profiler.

While it is attached every launch takes longer, and PyTorch leaves it attached. On an H200's host a
launch took 9.9 µs before the first session, 14.5 after it, and 9.9 when CUPTI was detached, ten
times of ten; graphs, captures and sessions of ``torch.profiler`` were as before, and launches of
another thread went on meanwhile. Complaints have to be read from stderr: CUPTI's errors are
reported there, and nowhere else.
"""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from gpulab.interrupts import contextmanager

_STDERR = 2
_MAPPED = Path("/proc/self/maps")
# With "1" PyTorch detaches CUPTI itself, at some later call of the program's.
_TEARDOWN = "TEARDOWN_CUPTI"
# The profiler's log, as "WARNING:2026-01-31 10:00:00 1:1 init.cpp:116] ...", and PyTorch's own.
_PROFILERS = re.compile(r"[A-Z]+:\d{4}-\d\d-\d\d |\[W\d+ .*profiler_kineto\.cpp")


@contextmanager
def collect_complaints(lines: list[str]) -> Iterator[None]:
    """Add to ``lines`` what the profiler says of CUPTI inside the block; hide the rest of it.

    Some versions write two lines a session there, which would fill a notebook. What others
    write meanwhile is passed on.
    """
    try:
        kept = os.dup(_STDERR)
    except OSError:  # a program without a terminal may have none
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    with tempfile.TemporaryFile() as caught:
        try:
            os.dup2(caught.fileno(), _STDERR)
            yield
        finally:
            os.dup2(kept, _STDERR)
            os.close(kept)
            caught.seek(0)
            said = caught.read().decode(errors="replace").splitlines(keepends=True)
            lines += [line.rstrip() for line in said if _PROFILERS.match(line) and "CUPTI" in line]
            others = "".join(line for line in said if not _PROFILERS.match(line))
            if others:
                os.write(_STDERR, others.encode())


def is_detachable() -> bool:
    """Tell whether CUPTI can be detached here and is used by PyTorch alone."""
    is_shared = "cupti" in sys.modules  # NVIDIA's own package for Python
    return not is_shared and os.environ.get(_TEARDOWN) != "1" and _library() is not None


def detach() -> None:
    """Detach CUPTI, if that is possible; the next session attaches it again."""
    library = _library()
    if library is not None and is_detachable():
        library.cuptiFinalize()


@contextmanager
def leave_teardown_to_us() -> Iterator[None]:
    """Keep PyTorch from detaching CUPTI itself inside the block, unless a user asked for it.

    If both do it, the process hangs at its end.
    """
    if _TEARDOWN in os.environ:
        yield
        return
    try:
        os.environ[_TEARDOWN] = "0"
        yield
    finally:
        os.environ.pop(_TEARDOWN, None)


@cache
def _library() -> ctypes.PyDLL | None:
    """Return the CUPTI that PyTorch has loaded; None if there is none, or it cannot be found.

    It cannot where a system lists no mapped files, or the file was replaced meanwhile.
    """
    with suppress(OSError):
        lines = _MAPPED.read_text("utf-8", errors="surrogateescape").splitlines()
        paths = {line.split(maxsplit=5)[-1] for line in lines if "/libcupti.so" in line}
        # With the interpreter's lock held, so that no other thread of Python launches meanwhile.
        return ctypes.PyDLL(paths.pop()) if paths else None
    return None
