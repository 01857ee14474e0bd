"""Inject an interrupt at a counted place of a program: at a bytecode, or at a call of a function.

A signal is sent at that place, and the program's handlers decide what happens. A ``MemoryError``
is raised directly, because no handler could defer it.
"""

import dis
import gc
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from benchmarks.common import real_clocks

KINDS = ("interrupt", "exit", "handler", "memory")

# These bytecodes cannot raise a MemoryError: they only move references, and jump.
_CANNOT_FAIL = {
    *("RESUME", "NOP", "CACHE", "POP_TOP", "COPY", "SWAP", "PUSH_NULL", "PRECALL", "KW_NAMES"),
    *("LOAD_FAST", "LOAD_CONST", "STORE_FAST", "RETURN_VALUE", "RETURN_CONST", "EXTENDED_ARG"),
    *("PUSH_EXC_INFO", "POP_EXCEPT", "RERAISE", "MAKE_CELL", "COPY_FREE_VARS", "LOAD_CLOSURE"),
    *("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_FORWARD_IF_TRUE", "JUMP_FORWARD", "JUMP_BACKWARD"),
    *("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_IF_FALSE"),
    *("POP_JUMP_IF_TRUE", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE", "IS_OP", "CHECK_EXC_MATCH"),
    *(
        "LOAD_FAST_AND_CLEAR",
        "LOAD_FAST_CHECK",
        "END_FOR",
        "LOAD_DEREF",
        "STORE_DEREF",
        "NOT_TAKEN",
    ),
    *("LOAD_FAST_LOAD_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_LOAD_FAST", "RETURN_GENERATOR"),
}
_PATIENCE_S = 5.0


class HandlerError(Exception):
    """The exception that the program's own signal handler raises."""


_SIGNALS: dict[str, tuple[signal.Signals, type[BaseException]]] = {
    "interrupt": (signal.SIGINT, KeyboardInterrupt),
    "exit": (signal.SIGTERM, SystemExit),
    "handler": (signal.SIGUSR1, HandlerError),
}
INJECTED = (KeyboardInterrupt, SystemExit, HandlerError, MemoryError)


class Injector:
    """Interrupts once ("strikes"), with one kind of interrupt.

    Attributes
    ----------
    is_done
        Whether it has interrupted.
    waits_s
        For each signal, the time from sending it to its handler.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.is_done = False
        self.waits_s: list[float] = []
        self._sent_s: float | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Install the program's signal handler in the block, which raises the kind's exception."""
        if self.kind == "memory":
            yield
            return
        number, error = _SIGNALS[self.kind]

        def hear(_number: int, _frame: FrameType | None) -> None:
            if self._sent_s is not None:
                self.waits_s.append(real_clocks.monotonic() - self._sent_s)
                self._sent_s = None
            raise error

        before = signal.signal(number, hear)
        try:
            yield
        finally:
            signal.signal(number, before)

    def strike(self) -> None:
        """Send the signal, or raise the ``MemoryError``."""
        sys.settrace(None)
        # Tracing has ended: handler and clean-up run as they do without a tracer.
        self.is_done = True
        if self.kind == "memory":
            raise MemoryError
        self._sent_s = real_clocks.monotonic()
        signal.raise_signal(_SIGNALS[self.kind][0])

    def settle(self) -> bool:
        """Wait until the signal's handler has run, and return whether it has."""
        deadline_s = real_clocks.monotonic() + _PATIENCE_S
        while self._sent_s is not None and real_clocks.monotonic() < deadline_s:
            pass
        is_heard, self._sent_s = self._sent_s is None, None
        return is_heard


Place = tuple[CodeType, int]


class Tracer:
    """Counts places (bytecodes or calls) while a program runs, and interrupts at one of them.

    Attributes
    ----------
    n
        Number of places so far, or how often ``place`` has been reached.
    places
        All bytecodes, if there is no injector.
    """

    def __init__(
        self,
        injector: Injector | None,
        *,
        at: int = -1,
        place: Place | None = None,
        by: str,
        only_ours: bool = False,
    ) -> None:
        self.n = 0
        self.places: list[Place] = []
        self._injector = injector
        self._at, self._place = at, place
        self._by_calls = by == "calls"
        self._keeps = injector is None and not self._by_calls
        self._only_ours = only_ours

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

    def _called(self, frame: FrameType, _event: str, _arg: object) -> object:
        if self._only_ours and not str(frame.f_globals.get("__name__")).startswith("gpulab."):
            return None
        if self._by_calls:
            self._count(frame)
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, _arg: object) -> object:
        if event == "opcode":
            self._count(frame)
        return self._stepped

    def _count(self, frame: FrameType) -> None:
        place = self._place
        if place is not None and (frame.f_lasti != place[1] or frame.f_code is not place[0]):
            return
        if self._keeps:
            self.places.append((frame.f_code, frame.f_lasti))
        self.n += 1
        if self.n - 1 == self._at and self._injector is not None:
            self._injector.strike()


def can_fail(place: Place) -> bool:
    """Return whether the instruction at a place can raise a ``MemoryError``."""
    code, index = place
    return dis.opname[code.co_code[index]] not in _CANNOT_FAIL
