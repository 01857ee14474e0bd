"""Ctrl-C waits for the end of a step; a step that failed halfway is undone or repeated."""

import signal
import threading
import time
import weakref
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Any

import pytest

from gpulab.core import interrupts
from tests.support.strikes import struck


class HandlerError(Exception):
    """The exception that the program's own handler raises."""


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Let SIGUSR1 raise, as a handler of the program may do, and restore the handler after it."""

    def hear(_number: int, _frame: FrameType | None) -> None:
        raise HandlerError

    before = signal.signal(signal.SIGUSR1, hear)
    yield
    signal.signal(signal.SIGUSR1, before)


@interrupts.contextmanager
def noting(done: list[str]) -> Iterator[None]:
    """Send a signal in the middle of entering and of leaving."""
    done.append("begin")
    signal.raise_signal(signal.SIGUSR1)
    done.append("begun")
    try:
        yield
    finally:
        signal.raise_signal(signal.SIGUSR1)
        done.append("ended")


@interrupts.contextmanager
def empty() -> Iterator[None]:
    """Do nothing."""
    yield


def test_a_signal_waits_for_the_end_of_a_beginning_and_of_an_end() -> None:
    """Entering and leaving a context finish first; the exception of the handler comes after."""
    done: list[str] = []
    with pytest.raises(HandlerError) as raised, noting(done):  # the place matters
        done.extend(str(n) for n in range(10))
    assert done == ["begin", "begun", "ended"]
    assert isinstance(raised.value.__context__, HandlerError)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGUSR1])
def test_every_handler_of_the_program_waits_and_is_given_back(number: signal.Signals) -> None:
    """The handlers are wrapped while a context is open, and the same objects as before after."""
    before = signal.getsignal(number)
    done: list[str] = []

    @interrupts.step
    def step() -> None:
        signal.raise_signal(number)
        done.append("whole")

    with pytest.raises((KeyboardInterrupt, HandlerError)), interrupts.ExitStack() as stack:  # noqa: PT012 # the stack must be open
        stack.enter_context(empty())
        step()
        done.extend(str(n) for n in range(10))
    assert done == ["whole"]
    assert signal.getsignal(number) is before


def test_an_opening_lets_a_signal_through() -> None:
    """Inside an opening, a signal handler runs although a step has called it."""
    done: list[str] = []

    @interrupts.opening
    def wait() -> None:
        signal.raise_signal(signal.SIGUSR1)
        done.append("too late")

    @interrupts.step
    def step() -> None:
        wait()

    with pytest.raises(HandlerError), empty():
        step()
    assert done == []


def test_a_long_step_waits_without_calling_the_handler_all_the_time() -> None:
    """After many tries gpulab pauses between them, and the handler runs in the end."""
    n_calls = 0

    @interrupts.step
    def step() -> None:
        nonlocal n_calls
        signal.raise_signal(signal.SIGUSR1)
        for _ in range(100_000):
            n_calls += interrupts.in_step(None)

    context = object()
    interrupts.hold(context)
    try:
        with pytest.raises(HandlerError):  # noqa: PT012 # it comes at any time after the step
            step()
            while True:
                time.monotonic()
    finally:
        interrupts.let_go(context)


def test_other_threads_leave_handlers_alone() -> None:
    """A context on another thread changes no signal handler, because only the main thread may."""
    before = signal.getsignal(signal.SIGUSR1)
    seen: list[object] = []

    def work() -> None:
        with interrupts.ExitStack() as stack:
            stack.enter_context(empty())
            seen.append(signal.getsignal(signal.SIGUSR1))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


def test_an_undo_runs_all_of_its_actions_whatever_they_raise() -> None:
    """An action that fails is repeated once, the others run, and the first error is raised."""
    ran: list[str] = []
    undo = interrupts.Undo()

    def fail(error: Exception) -> None:
        ran.append(type(error).__name__)
        raise error

    undo.callback(ran.append, "first taken")
    undo.callback(fail, ZeroDivisionError())
    undo.callback(ran.append, "last taken")
    with pytest.raises(ZeroDivisionError):
        undo.close()
    assert ran == ["last taken", "ZeroDivisionError", "ZeroDivisionError", "first taken"]
    undo.close()
    assert len(ran) == 4


class OutOfMemory:
    """A context of contextlib that fails after its generator has begun."""

    def __init__(self, gen: Generator[None, None, None]) -> None:
        self.gen = gen

    def __enter__(self) -> None:
        next(self.gen)
        raise MemoryError

    def __exit__(self, *_error: object) -> None:
        """Do nothing; it is never called."""


def test_a_context_whose_beginning_fails_ends_what_it_has_begun() -> None:
    """If entering fails after the generator has begun, the generator still runs its end."""
    ended: list[bool] = []

    def program() -> Generator[None, None, None]:
        try:
            yield
        finally:
            ended.append(True)

    context: Any = interrupts.contextmanager(program)()
    context._inner = OutOfMemory(program())
    with pytest.raises(MemoryError), context:
        pass
    assert ended == [True]


def test_an_ending_runs_once_more_after_a_memory_error() -> None:
    """After a MemoryError an ending runs a second time, and the error is raised."""
    ran: list[int] = []

    @interrupts.ending
    def end(value: int) -> None:
        ran.append(value)
        if len(ran) == 1:
            raise MemoryError

    with pytest.raises(MemoryError):
        end(7)
    assert ran == [7, 7]
    end(8)
    assert ran == [7, 7, 8]


def test_handlers_are_given_back_whatever_line_of_the_end_fails() -> None:
    """A MemoryError in the middle of a context's end leaves no handler wrapped."""
    before = signal.getsignal(signal.SIGUSR1)
    n_struck, was_struck = 0, True
    while was_struck:
        context = empty()
        context.__enter__()
        was_struck = struck(
            n_struck + 1, lambda context=context: context.__exit__(None, None, None), "gpulab."
        )
        assert signal.getsignal(signal.SIGUSR1) is before
        n_struck += was_struck
    assert n_struck > 5


def test_handlers_are_given_back_if_python_cannot_call_the_end() -> None:
    """Without memory for the call, Python skips the end of a ``with`` block."""
    before = signal.getsignal(signal.SIGINT)

    @interrupts.contextmanager
    def opened() -> Iterator[None]:
        yield

    context = opened()
    context.__enter__()
    assert signal.getsignal(signal.SIGINT) is not before
    del context
    assert signal.getsignal(signal.SIGINT) is before


def test_a_stack_is_left_if_python_cannot_call_its_end() -> None:
    """The context inside ends, too, as soon as nothing refers to the stack."""
    ended: list[str] = []

    @interrupts.contextmanager
    def opened() -> Iterator[None]:
        yield
        ended.append("left")

    stack = interrupts.ExitStack.entering(opened())
    assert not ended
    del stack
    assert ended == ["left"]


def test_a_stack_is_left_if_its_block_cannot_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without memory at the beginning of the block, the context inside ends all the same."""
    ended: list[str] = []

    @interrupts.contextmanager
    def opened() -> Iterator[None]:
        yield
        ended.append("left")

    def fail(_context: object) -> None:
        raise MemoryError

    stack = interrupts.ExitStack.entering(opened())
    monkeypatch.setattr(interrupts, "_wrap_handlers", fail)
    with pytest.raises(MemoryError), stack:
        pass
    assert ended == ["left"]


def test_a_step_that_is_gone_leaves_its_mark_to_no_other_function() -> None:
    """The code of a step is never freed, so that no new function gets its id."""
    gone = weakref.ref(interrupts.step(lambda: None).__code__)
    assert gone() is not None


class Deleted:
    """An object whose deletion is interrupted."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_inside_the_deletion_of_an_object_is_not_lost() -> None:
    """Python prints an exception of ``__del__`` and drops it; Ctrl-C comes after the deletion."""
    with empty():
        pass
    deleted = [Deleted()]
    with pytest.raises(KeyboardInterrupt):
        deleted.clear()
