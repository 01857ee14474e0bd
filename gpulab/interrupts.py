"""Let Ctrl-C wait until a step is over: what is half done would stay half done.

A *step* is a function that must finish, such as the end of a ``with`` block, and everything that
it calls. While a context of gpulab is open on the main thread, Python's signal handlers are
wrapped: a wrapped handler looks at the frames that it interrupts, and inside a step it has itself
called again a moment later. So a step costs nothing while no signal comes, and what a handler
raises, ``KeyboardInterrupt`` or anything else, arrives between two steps.

Errors that no handler raises, such as ``MemoryError``, can come in the middle of a step. For them
:class:`Undo` runs each of its actions to its end, once more if the first try failed, and an
:func:`ending` runs once more as a whole.
"""

import _signal  # type: ignore[import-not-found] # typeshed's gap; signal's own are 20 times slower
import _thread
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial, wraps
from signal import valid_signals
from types import FrameType, TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
Value = TypeVar("Value")

# A signal in a step is tried again at once, which ends the wait for most steps within
# microseconds. A long step, such as an import, would be slowed down by that: there it pauses.
_N_AT_ONCE = 5_000
_PAUSE_S = 0.005

_SIGNALS = sorted(int(number) for number in valid_signals())

# By identity: comparing two code objects compares all of their instructions.
_steps: set[int] = set()
_openings: set[int] = set()
_packages: list[str] = []


def step(function: AnyFunction) -> AnyFunction:
    """Let no signal handler run inside ``function``, nor inside what it calls."""
    _steps.add(id(function.__code__))
    return function


def opening(function: AnyFunction) -> AnyFunction:
    """Let signal handlers run inside ``function`` although a step calls it.

    What it calls is not in a step either, up to the next function that is one.
    """
    _openings.add(id(function.__code__))
    return function


def ending(function: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Make a step of ``function`` that runs once more if a MemoryError breaks it off.

    It must do no harm when it runs twice.
    """

    @step
    @wraps(function)
    def ends(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Value:
        try:
            return function(*args, **kwargs)
        except MemoryError:
            function(*args, **kwargs)
            raise

    return ends


def all_are_steps(package: str) -> None:
    """Make steps of all functions in the modules of ``package``."""
    _packages.append(f"{package}.")


def in_step(frame: FrameType | None) -> bool:
    """Tell whether ``frame``, or what has called it, is inside a step."""
    packages = tuple(_packages)
    while frame is not None:
        code = id(frame.f_code)
        if code in _openings:
            return False
        if code in _steps or str(frame.f_globals.get("__name__")).startswith(packages):
            return True
        frame = frame.f_back
    return False


class _Waiting:
    """A signal handler that waits for the end of the step that it interrupts."""

    def __init__(self, handler: Callable[[int, FrameType | None], Any]) -> None:
        self.handler = handler
        self.n_waits = 0

    def __call__(self, number: int, frame: FrameType | None) -> object:
        __tracebackhide__ = True  # IPython and pytest leave such a frame out of tracebacks
        if not in_step(frame):
            self.n_waits = 0
            return self.handler(number, frame)
        self.n_waits += 1
        if self.n_waits < _N_AT_ONCE:
            return _again(number)()
        # Not a thread of threading: the step may hold a lock of that module.
        _thread.start_new_thread(_interrupt_later, (number,))
        return None


@cache
def _again(number: int) -> type:
    """Return a class whose objects send a signal when they go.

    Python drops what a handler returns after its frame has ended. A signal from inside the frame
    would be heard there, by the same handler, and so on without an end.
    """
    send = partial(_thread.interrupt_main, number)  # type: ignore[arg-type] # any number will do
    return type("_Again", (), {"__del__": staticmethod(send)})


def _interrupt_later(number: int) -> None:
    held = _thread.allocate_lock()
    held.acquire()
    held.acquire(timeout=_PAUSE_S)  # not time.sleep, behind which a virtual clock may stand
    _thread.interrupt_main(number)  # type: ignore[arg-type] # any number will do


# What is open on the main thread, by identity; handlers are wrapped while there is anything.
_open: set[int] = set()


@step
def hold(context: object) -> None:
    """Have signal handlers wait for the ends of steps until :func:`let_go`."""
    try:
        _wrap_handlers(context)
    except BaseException:
        let_go(context)
        raise


def _wrap_handlers(context: object) -> None:
    if threading.get_ident() != threading.main_thread().ident:
        return  # signal handlers run on the main thread alone
    _open.add(id(context))
    for number in _SIGNALS:
        handler = _signal.getsignal(number)
        if callable(handler) and type(handler) is not _Waiting:
            _signal.signal(number, _Waiting(handler))


@ending
def let_go(context: object) -> None:
    """Undo :func:`hold`: after the last one the handlers are the program's own again."""
    if threading.get_ident() != threading.main_thread().ident:
        return
    _open.discard(id(context))
    if _open:
        return
    found = [(number, _signal.getsignal(number)) for number in _SIGNALS]
    wrapped = [(number, handler) for number, handler in found if type(handler) is _Waiting]
    # What waits comes last, as it is heard at once; and all in one call, which nothing divides.
    wrapped.sort(key=lambda pair: pair[1].n_waits)
    numbers = [number for number, _ in wrapped]
    deque(map(_signal.signal, numbers, [handler.handler for _, handler in wrapped]), maxlen=0)


@step
def exchange_handler(
    number: int, handler: Callable[[int, FrameType | None], Any]
) -> Callable[[int, FrameType | None], Any]:
    """Set a signal's handler while a context is open, and return the one before."""
    before = _signal.signal(number, _Waiting(handler))
    return before.handler if type(before) is _Waiting else before


class Undo:
    """Actions that give back what was taken, run in reverse order at the end.

    Register each one before its deed, so that nothing comes between. An action may run twice, or
    before its deed, and must do no harm then.
    """

    def __init__(self) -> None:
        self._actions: list[Callable[[], object]] = []

    def callback(
        self,
        action: Callable[Arguments, object],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> None:
        """Call ``action`` at the end."""
        self._actions.append(partial(action, *args, **kwargs))

    @step
    def close(self) -> None:
        """Run every action, each of them even if others fail; raise what the first one raised."""
        try:
            while self._actions:
                self._actions[-1]()
                self._actions.pop()
        except BaseException:
            self._run_the_rest()
            raise

    def _run_the_rest(self) -> None:
        while self._actions:
            try:
                self._actions.pop()()
            except BaseException:
                self._run_the_rest()
                raise


class _Context(Generic[Value]):
    """A context made of a generator, whose beginning and end are steps."""

    def __init__(self, inner: "contextlib._GeneratorContextManager[Value]") -> None:
        self._inner = inner
        self._stack = ExitStack()

    @step
    def __enter__(self) -> Value:
        try:
            self._stack.callback(self._inner.gen.close)  # where it has begun, it ends
            return self._stack.enter_context(self._inner)
        except BaseException:
            self._stack.close()
            raise

    @ending
    def __exit__(self, *error: Any) -> bool | None:  # noqa: ANN401, PYI036 # contextlib wants three
        return self._stack.__exit__(*error)


def contextmanager(
    function: Callable[Arguments, Iterator[Value]],
) -> Callable[Arguments, AbstractContextManager[Value]]:
    """Make a context of a generator, as contextlib does; its beginning and its end are steps."""
    make = contextlib.contextmanager(function)

    @wraps(function)
    def context(
        *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> AbstractContextManager[Value]:
        return _Context(make(*args, **kwargs))

    return context


class ExitStack(contextlib.ExitStack):
    """A stack of contexts, as contextlib's: to enter one of them and to leave all are steps."""

    @step
    def enter_context(self, cm: AbstractContextManager[Value]) -> Value:
        """Enter a context, which is left at the end."""
        hold(self)
        return super().enter_context(cm)

    @ending
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
