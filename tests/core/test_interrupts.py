"""Ctrl-C waits for the end of a step; a step that failed halfway is undone or repeated."""

import signal
import weakref
from collections.abc import Iterator
from types import FrameType

import pytest

from gpulab.core import interrupts


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


def test_an_undo_runs_all_of_its_actions_whatever_they_raise() -> None:
    """If an action fails, the others run all the same, and its error is raised."""
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
    assert ran == ["last taken", "ZeroDivisionError", "first taken"]
    undo.close()
    assert len(ran) == 3


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
