"""What C++ code writes to stderr, caught: the profiler reports there, and nowhere else."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

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
