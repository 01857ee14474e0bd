"""End what takes too long."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_most(limit_s: float, error: type[BaseException] = TimeoutError) -> Iterator[None]:
    """Raise an error in the block if it takes more of the processor's time than a limit.

    The processor's time, so that results do not depend on what else the machine does, nor on the
    virtual clock.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise error(f"it took longer than {limit_s:.0f} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
