"""Send a signal at a counted call of a program; the program's handlers decide what happens."""

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from benchmarks.common import real_clocks

_PATIENCE_S = 5.0


class HandlerError(Exception):
    """The exception that the program's own signal handler raises."""


_SIGNALS: dict[str, tuple[signal.Signals, type[BaseException]]] = {
    "interrupt": (signal.SIGINT, KeyboardInterrupt),
    "exit": (signal.SIGTERM, SystemExit),
    "handler": (signal.SIGUSR1, HandlerError),
}
KINDS = tuple(_SIGNALS)
INJECTED = (KeyboardInterrupt, SystemExit, HandlerError)


class Injector:
    """Interrupts once ("strikes"), with one kind of interrupt.

    Attributes
    ----------
    is_done
        Whether it has interrupted.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.is_done = False
        self._is_pending = False  # whether the signal's handler is still to run

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Install the program's signal handler in the block, which raises the kind's exception."""
        number, error = _SIGNALS[self.kind]

        def hear(_number: int, _frame: FrameType | None) -> None:
            self._is_pending = False
            raise error

        before = signal.signal(number, hear)
        try:
            yield
        finally:
            signal.signal(number, before)

    def strike(self) -> None:
        """Send the signal."""
        sys.settrace(None)
        # Tracing has ended: handler and clean-up run as they do without a tracer.
        self.is_done = True
        self._is_pending = True
        signal.raise_signal(_SIGNALS[self.kind][0])

    def settle(self) -> bool:
        """Wait until the signal's handler has run, and return whether it has."""
        deadline_s = real_clocks.monotonic() + _PATIENCE_S
        while self._is_pending and real_clocks.monotonic() < deadline_s:
            pass
        is_heard, self._is_pending = not self._is_pending, False
        return is_heard


class Tracer:
    """Counts the calls of functions while a program runs, and interrupts at one of them.

    Attributes
    ----------
    n
        Number of calls so far.
    """

    def __init__(self, injector: Injector | None = None, *, at: int = -1) -> None:
        self.n = 0
        self._injector = injector
        self._at = at

    def run(self, program: Callable[[], Any]) -> None:
        """Run a program under the tracer."""
        collects = gc.isenabled()
        gc.disable()  # it would run at another place each time
        sys.settrace(self._called)
        try:
            program()
        finally:
            sys.settrace(None)
            if collects:
                gc.enable()

    def _called(self, _frame: FrameType, _event: str, _arg: object) -> None:
        self.n += 1
        if self.n - 1 == self._at and self._injector is not None:
            self._injector.strike()
