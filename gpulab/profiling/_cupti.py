"""What C++ code writes to stderr, caught: the profiler reports there, and nowhere else.

Takes CUPTI out of the process again: while it is in, every launch takes longer.

PyTorch leaves it in behind a session of its profiler. On an H200's host a launch took 9.9 µs
before the first session, 14.5 behind it, and 9.9 when CUPTI had been told to go, ten times of ten;
graphs, captures and sessions of ``torch.profiler`` were as before, and launches of another thread
went on meanwhile.
"""

import ctypes
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

_STDERR = 2
# The profiler's log, as "WARNING:2026-01-31 10:00:00 1:1 init.cpp:116] ...", and PyTorch's own.
_PROFILERS = re.compile(r"[A-Z]+:\d{4}-\d\d-\d\d |\[W\d+ .*profiler_kineto\.cpp")


@contextmanager
def heard(lines: list[str]) -> Iterator[None]:
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
        os.dup2(caught.fileno(), _STDERR)
        try:
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


_MAPPED = Path("/proc/self/maps")
# With "1" PyTorch takes it out itself, at some later call of the program's.
_TEARDOWN = "TEARDOWN_CUPTI"


def is_detachable() -> bool:
    """Tell whether CUPTI can be taken out here and is nobody's but PyTorch's."""
    is_shared = "cupti" in sys.modules  # NVIDIA's own package for Python
    return not is_shared and os.environ.get(_TEARDOWN) != "1" and _library() is not None


def detach() -> None:
    """Take CUPTI out, if that is possible; the next session brings it back."""
    library = _library()
    if library is not None and is_detachable():
        library.cuptiFinalize()


@contextmanager
def left_to_us() -> Iterator[None]:
    """Keep PyTorch from taking CUPTI out itself inside the block, unless a user asked for it.

    Done by both, the end of the process waits for the second for ever.
    """
    if _TEARDOWN in os.environ:
        yield
        return
    os.environ[_TEARDOWN] = "0"
    try:
        yield
    finally:
        del os.environ[_TEARDOWN]


@cache
def _library() -> ctypes.PyDLL | None:
    """Return the CUPTI that PyTorch has loaded; None where there is none, or it cannot be had.

    As where a system has no list of what is mapped, or its file was replaced meanwhile.
    """
    with suppress(OSError):
        lines = _MAPPED.read_text("utf-8", errors="surrogateescape").splitlines()
        paths = {line.split(maxsplit=5)[-1] for line in lines if "/libcupti.so" in line}
        # With the interpreter's lock held, so that no other thread of Python launches meanwhile.
        return ctypes.PyDLL(paths.pop()) if paths else None
    return None
