"""CUPTI in this process: collect its error messages, and detach it after a profiler session.

While it is attached every launch takes longer, and PyTorch leaves it attached. On an H200's host
a launch took 9.9 µs before the first session, 14.5 after it, and 9.9 after CUPTI was detached, in
ten of ten trials. CUDA graphs, captures and later sessions of ``torch.profiler`` worked as before,
and another thread could launch meanwhile. PyTorch reports CUPTI's errors on stderr and nowhere
else.
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

from gpulab.core.interrupts import contextmanager

_STDERR = 2
_MAPPED = Path("/proc/self/maps")
# If this is "1", PyTorch detaches CUPTI itself, in some later call of the program.
_TEARDOWN = "TEARDOWN_CUPTI"
# Lines of the profiler's log, such as "WARNING:2026-01-31 10:00:00 1:1 init.cpp:116] ...", and the
# profiler's lines in PyTorch's own log.
_PROFILERS = re.compile(r"[A-Z]+:\d{4}-\d\d-\d\d |\[W\d+ .*profiler_kineto\.cpp")


@contextmanager
def collect_complaints(lines: list[str]) -> Iterator[None]:
    """Append the profiler's lines about CUPTI to ``lines``, and hide its other lines on stderr.

    Some versions of the profiler write two lines for each session, which would fill a notebook.
    Lines that do not come from the profiler appear on stderr when the block ends.
    """
    # The file descriptor is replaced, and not sys.stderr, because the lines come from C++.
    try:
        original = os.dup(_STDERR)
    except OSError:  # a program that runs as a service may have no stderr
        yield
        return
    if sys.stderr is not None:
        sys.stderr.flush()
    # A file and not a pipe: a pipe that nobody reads meanwhile would block a long message.
    with tempfile.TemporaryFile() as caught:
        try:
            os.dup2(caught.fileno(), _STDERR)
            yield
        finally:
            os.dup2(original, _STDERR)
            os.close(original)
            caught.seek(0)
            written = caught.read().decode(errors="replace").splitlines(keepends=True)
            lines += [
                line.rstrip() for line in written if _PROFILERS.match(line) and "CUPTI" in line
            ]
            others = "".join(line for line in written if not _PROFILERS.match(line))
            if others:
                os.write(_STDERR, others.encode())


def is_detachable() -> bool:
    """Return whether CUPTI can be detached in this process, because only PyTorch uses it."""
    # NVIDIA's own Python package of CUPTI: detaching would end its sessions, too.
    # CUPTI has one client per process, and cuptiFinalize ends the sessions of all of them.
    is_shared = "cupti" in sys.modules
    return not is_shared and os.environ.get(_TEARDOWN) != "1" and _library() is not None


def detach() -> None:
    """Detach CUPTI if :func:`is_detachable`; the next session attaches it again."""
    library = _library()
    if library is not None and is_detachable():
        library.cuptiFinalize()


@contextmanager
def leave_teardown_to_us() -> Iterator[None]:
    """Prevent PyTorch from detaching CUPTI inside the block, unless the user asked for it.

    If PyTorch and gpulab both detach it, the process hangs when it exits.
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
    """Return the CUPTI library that PyTorch has loaded, or None if it is not found.

    It is found in the list of mapped files, which only Linux has. The file may also have been
    replaced since it was loaded.
    """
    with suppress(OSError):
        lines = _MAPPED.read_text("utf-8", errors="surrogateescape").splitlines()
        paths = {line.split(maxsplit=5)[-1] for line in lines if "/libcupti.so" in line}
        # PyDLL, unlike CDLL, holds the interpreter's lock during a call, so that no other Python
        # thread launches while CUPTI is being detached.
        return ctypes.PyDLL(paths.pop()) if paths else None
    return None
