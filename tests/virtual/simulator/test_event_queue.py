"""The event queue runs actions in the order of their times, and keeps the clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.core.errors import VirtualGpuError
from gpulab.virtual.simulator._event_queue import EventQueue


@given(st.lists(st.integers(0, 1_000), max_size=30))
def test_actions_run_in_order_of_time_then_of_insertion(times_ns: list[int]) -> None:
    """Actions run in the order of their times; equal times run in the order of insertion."""
    event_queue = EventQueue()
    ran: list[tuple[int, int]] = []
    for i, time_ns in enumerate(times_ns):
        event_queue.at(time_ns, lambda i=i, time_ns=time_ns: ran.append((time_ns, i)))
    event_queue.advance(1_000)
    assert ran == sorted(ran)
    assert len(ran) == len(times_ns)


def test_advance_stops_at_its_time() -> None:
    """``advance`` runs actions up to its time and leaves later ones in the queue."""
    event_queue = EventQueue()
    ran: list[int] = []
    event_queue.at(10, lambda: ran.append(10))
    event_queue.at(11, lambda: ran.append(11))
    event_queue.advance(10)
    assert (ran, event_queue.now_ns) == ([10], 10)


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


def test_an_action_in_the_past_runs_now() -> None:
    """An action for a time in the past runs at the present time."""
    event_queue = EventQueue()
    event_queue.advance(100)
    seen: list[int] = []
    event_queue.at(5, lambda: seen.append(event_queue.now_ns))
    event_queue.advance(100)
    assert seen == [100]


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
