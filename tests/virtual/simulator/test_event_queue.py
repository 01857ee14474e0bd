"""The event queue: order, ties and the clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.errors import VirtualGpuError
from gpulab.virtual.simulator._event_queue import EventQueue


@given(st.lists(st.integers(0, 1_000), max_size=30))
def test_actions_run_in_order_of_time_then_of_insertion(times_ns: list[int]) -> None:
    """Time decides, independent of insertion; the older of two equal times goes first."""
    event_queue = EventQueue()
    ran: list[tuple[int, int]] = []
    for i, time_ns in enumerate(times_ns):
        event_queue.at(time_ns, lambda i=i, time_ns=time_ns: ran.append((time_ns, i)))
    event_queue.advance(1_000)
    assert ran == sorted(ran)
    assert len(ran) == len(times_ns)


def test_advance_stops_at_its_time() -> None:
    """What is due later stays in the queue."""
    event_queue = EventQueue()
    ran: list[int] = []
    event_queue.at(10, lambda: ran.append(10))
    event_queue.at(11, lambda: ran.append(11))
    event_queue.advance(10)
    assert (ran, event_queue.now_ns) == ([10], 10)


def test_nothing_runs_in_the_middle_of_an_action() -> None:
    """As when the garbage collector strikes there, and what it frees looks at the clock."""
    event_queue = EventQueue()
    ran: list[str] = []

    def first() -> None:
        event_queue.advance(20)
        ran.append("first")

    event_queue.at(10, first)
    event_queue.at(15, lambda: ran.append("second"))
    event_queue.advance(12)
    assert (ran, event_queue.now_ns) == (["first"], 12)
    event_queue.advance(20)
    assert ran == ["first", "second"]


def test_an_action_in_the_past_runs_now() -> None:
    """The clock never goes back."""
    event_queue = EventQueue()
    event_queue.advance(100)
    seen: list[int] = []
    event_queue.at(5, lambda: seen.append(event_queue.now_ns))
    event_queue.advance(100)
    assert seen == [100]


def test_waiting_for_nothing_is_refused() -> None:
    """A condition that no action can bring about is an error, not an endless loop."""
    with pytest.raises(VirtualGpuError) as error:
        EventQueue().run_until(lambda: False)
    assert str(error.value) == (
        "this waits for work that was never launched; launch it before you wait"
    )


def test_a_torn_queue_is_filled_anew() -> None:
    """After an error inside an action nothing of the old plan runs, and the rest does."""
    event_queue = EventQueue()
    ran: list[str] = []

    def fail() -> None:
        raise MemoryError

    event_queue.on_restart(lambda: event_queue.at(5, lambda: ran.append("anew")))
    event_queue.at(1, fail)
    event_queue.at(2, lambda: ran.append("old plan"))
    with pytest.raises(MemoryError):
        event_queue.advance(10)
    event_queue.advance(10)
    assert ran == ["anew"]


def test_a_kept_failure_is_raised_once_and_is_the_first() -> None:
    """Later failures are consequences as often as not."""
    event_queue = EventQueue()
    event_queue.keep_failure(ZeroDivisionError())
    event_queue.keep_failure(ValueError())
    with pytest.raises(ZeroDivisionError):
        event_queue.raise_failure()
    event_queue.raise_failure()
