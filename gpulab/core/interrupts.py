"""Delay Ctrl-C until the current step is complete, so that nothing is left half done.

A *step* is a function that must finish, such as the end of a ``with`` block, and everything that
it calls. While a context of gpulab is open on the main thread, Python's signal handlers are
wrapped: a wrapped handler looks at the frames that it interrupts, and inside a step it has itself
called again a moment later. So a step costs nothing while no signal comes, and what a handler
raises, ``KeyboardInterrupt`` or anything else, arrives between two steps.

An error that no handler raises, such as a ``MemoryError``, can come in the middle of a step. After
one, restart the kernel.
"""

import _signal  # type: ignore[import-not-found] # typeshed's gap; signal's own are 20 times slower
import _thread
import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial, wraps
from signal import SIGINT, valid_signals
from types import CodeType, FrameType, TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

Arguments = ParamSpec("Arguments")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Value = TypeVar("Value")

# A signal inside a step is sent again at once; most steps end within microseconds. To send it
# again and again would slow down a long step, such as an import, so after 5,000 times there are
# pauses. Between two pauses it is sent often enough to find the gap between two short steps: a
# single time after each pause would nearly always find a step of a loop.
_N_AT_ONCE = 5_000
_N_BETWEEN_PAUSES = 500
_PAUSE_S = 0.005

_SIGNALS = sorted(int(number) for number in valid_signals())

# By id, because two code objects are compared instruction by instruction. The objects are kept, so
# that no other function gets the id of one that is gone.
_steps: dict[int, CodeType] = {}
_openings: dict[int, CodeType] = {}
_packages: list[str] = []


def step(function: AnyFunction) -> AnyFunction:
    """Make ``function`` a step: no signal handler runs inside it or inside what it calls."""
    _steps[id(function.__code__)] = function.__code__
    return function


def opening(function: AnyFunction) -> AnyFunction:
    """Make ``function`` an opening: signal handlers run inside it although a step calls it.

    They also run inside what it calls, except in functions that are steps themselves.
    """
    _openings[id(function.__code__)] = function.__code__
    return function


def all_are_steps(package: str) -> None:
    """Make every function in the modules of a package, such as ``"gpulab.virtual"``, a step."""
    _packages.append(f"{package}.")


def in_step(frame: FrameType | None) -> bool:
    """Return whether ``frame`` or one of its callers is a step, up to the nearest opening."""
    packages = tuple(_packages)
    while frame is not None:
        code = id(frame.f_code)
        # Before the steps: a package may be a step as a whole and contain an opening.
        if code in _openings:
            return False
        if code in _steps or str(frame.f_globals.get("__name__")).startswith(packages):
            return True
        frame = frame.f_back
    return False


class _Waiting:
    """Wraps a signal handler, and delays it until the step that it interrupts is complete."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.n_waits = 0

    def __call__(self, number: int, frame: FrameType | None) -> object:
        __tracebackhide__ = True  # IPython and pytest hide such a frame in tracebacks
        if not in_step(frame):
            self.n_waits = 0
            return self.handler(number, frame)
        self.n_waits += 1
        if self.n_waits < _N_AT_ONCE or self.n_waits % _N_BETWEEN_PAUSES:
            return _again(number)()
        # Not threading.Thread: the interrupted step may have a lock of that module.
        _thread.start_new_thread(_interrupt_later, (number,))
        return None


@cache
def _again(number: int) -> type:
    """Return a class whose instances send a signal when they are deleted.

    A handler returns such an instance, which Python deletes after the handler's frame has ended.
    If the handler sent the signal from inside its frame, it would interrupt itself without end.
    """
    send = partial(_thread.interrupt_main, number)  # type: ignore[arg-type] # any number will do
    return type("_Again", (), {"__del__": staticmethod(send)})


class _Rescue:
    """Sends Ctrl-C again if it came inside a ``__del__``, where Python drops its exception."""

    def __init__(self, hook: Callable[["sys.UnraisableHookArgs"], Any]) -> None:
        self.hook = hook

    def __call__(self, unraisable: "sys.UnraisableHookArgs", /) -> object:
        is_main = threading.get_ident() == threading.main_thread().ident
        if is_main and unraisable.exc_type is KeyboardInterrupt:
            return _again(SIGINT)()
        return self.hook(unraisable)


def _interrupt_later(number: int) -> None:
    lock = _thread.allocate_lock()
    lock.acquire()
    lock.acquire(timeout=_PAUSE_S)  # not time.sleep, which a virtual GPU replaces
    _thread.interrupt_main(number)  # type: ignore[arg-type] # any number will do


# Ids of the contexts that are open on the main thread; handlers are wrapped while there are any.
_open: set[int] = set()


@step
def hold(context: object) -> None:
    """Delay signal handlers until steps are complete, from now until :func:`let_go`.

    Handlers stay wrapped until the last context that is open is let go.
    """
    try:
        _wrap_handlers(context)
    except BaseException:
        let_go(context)
        raise


def _wrap_handlers(context: object) -> None:
    if threading.get_ident() != threading.main_thread().ident:
        return  # Python runs signal handlers on the main thread only
    if not isinstance(sys.unraisablehook, _Rescue):
        # It stays after the last context, because objects are deleted after it, too.
        sys.unraisablehook = _Rescue(sys.unraisablehook)
    _open.add(id(context))
    for number in _SIGNALS:
        handler = _signal.getsignal(number)
        # Not callable are SIG_DFL and SIG_IGN, and handlers that C code has set (None).
        if callable(handler) and type(handler) is not _Waiting:
            _signal.signal(number, _Waiting(handler))


@step
def let_go(context: object) -> None:
    """End :func:`hold` for a context; after the last one the program's own handlers are back."""
    if threading.get_ident() != threading.main_thread().ident:
        return
    _open.discard(id(context))
    if _open:
        return
    handlers = [(number, _signal.getsignal(number)) for number in _SIGNALS]
    wrapped = [(number, handler) for number, handler in handlers if type(handler) is _Waiting]
    # A handler that is waiting comes last, because it may run as soon as it is set. One call from
    # C sets all of them: a signal cannot arrive between two.
    wrapped.sort(key=lambda pair: pair[1].n_waits)
    numbers = [number for number, _ in wrapped]
    deque(map(_signal.signal, numbers, [handler.handler for _, handler in wrapped]), maxlen=0)


@step
def exchange_handler(
    number: int, handler: Callable[[int, FrameType | None], Any]
) -> Callable[[int, FrameType | None], Any]:
    """Set a signal's handler while a context is open, and return the handler before it.

    The new one is called between two steps.
    """
    before = _signal.signal(number, _Waiting(handler))
    return before.handler if type(before) is _Waiting else before


class Undo(contextlib.ExitStack):
    """Actions that undo what was done; :meth:`close` runs them in reverse order, in one step.

    Register each action by :meth:`callback` before you do what it undoes, so that an interrupt
    cannot come between the two. An action may run although nothing was done, and must be safe
    then.
    """

    @step
    def close(self) -> None:
        """Run every action even if others fail, and then raise the error."""
        super().close()


class _Context(Generic[Value]):
    """A context manager from a generator; entering and leaving it are steps."""

    def __init__(self, inner: "contextlib._GeneratorContextManager[Value]") -> None:
        self._inner = inner
        self._stack = ExitStack()

    @step
    def __enter__(self) -> Value:
        try:
            return self._stack.enter_context(self._inner)
        except BaseException:
            self._stack.close()
            raise

    @step
    def __exit__(self, *error: Any) -> bool | None:  # noqa: ANN401, PYI036 # contextlib wants three
        return self._stack.__exit__(*error)


def contextmanager(
    function: Callable[Arguments, Iterator[Value]],
) -> Callable[Arguments, AbstractContextManager[Value]]:
    """Like ``contextlib.contextmanager``, but entering and leaving the context are steps."""
    make = contextlib.contextmanager(function)

    @wraps(function)
    def context(
        *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> AbstractContextManager[Value]:
        return _Context(make(*args, **kwargs))

    return context


class ExitStack(contextlib.ExitStack):
    """Like ``contextlib.ExitStack``, but entering a context and leaving all of them are steps."""

    @step
    def __enter__(self) -> Self:
        hold(self)
        return self

    @step
    def enter_context(self, cm: AbstractContextManager[Value]) -> Value:
        """Enter a context, and leave it at the end of the stack."""
        hold(self)
        return super().enter_context(cm)

    @step
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> bool | None:
        try:
            return super().__exit__(kind, error, traceback)
        finally:
            let_go(self)
