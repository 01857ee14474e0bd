"""The event queue runs actions in the order of their times, and keeps the clock."""

import pytest

from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator._event_queue import EventQueue


def test_nothing_runs_in_the_middle_of_an_action() -> None:
    """An ``advance`` inside an action does nothing; the outer one continues as planned."""
    event_queue = EventQueue()
    ran: list[str] = []

    def first() -> None:
        # The garbage collector may run here and free a tensor, which reads the clock.
        event_queue.advance(20)
        ran.append("first")

    event_queue.at(10, first)
    event_queue.at(15, lambda: ran.append("second"))
    event_queue.advance(12)
    assert (ran, event_queue.now_ns) == (["first"], 12)
    event_queue.advance(20)
    assert ran == ["first", "second"]


def test_waiting_for_nothing_is_refused() -> None:
    """Waiting for a condition with an empty queue raises an error instead of looping."""
    with pytest.raises(VirtualGpuError, match="this waits for work that can never run: "):
        EventQueue().run_until(lambda: False)


def test_a_queue_that_an_error_stopped_asks_for_a_restart() -> None:
    """After an error in the middle of an action every use says that the state is unknown."""
    event_queue = EventQueue()

    def fail() -> None:
        raise MemoryError

    event_queue.at(1, fail)
    with pytest.raises(MemoryError):
        event_queue.advance(10)
    for use in (lambda: event_queue.advance(10), lambda: event_queue.run_until(lambda: True)):
        with pytest.raises(VirtualGpuError, match=r"its state is unknown; restart the kernel$"):
            use()


def test_the_first_failure_is_raised_once() -> None:
    """Of several stored failures the first one is raised, once."""
    event_queue = EventQueue()
    event_queue.keep_failure(ZeroDivisionError())
    event_queue.keep_failure(ValueError())
    with pytest.raises(ZeroDivisionError):
        event_queue.raise_failure()
    event_queue.raise_failure()
