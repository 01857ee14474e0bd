"""A piece of work: a function without arguments that enqueues work on the GPU."""

import gc
from collections.abc import Callable, Iterator

from gpulab.interrupts import contextmanager

Work = Callable[[], object]


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's garbage collector out of the block, and leave it as it was."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()
