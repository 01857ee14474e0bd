"""The event queue: order, ties and the clock."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.errors import VirtualGpuError
from gpulab.virtual.simulator._event_queue import Engine


@given(st.lists(st.integers(0, 1_000), max_size=30))
def test_actions_run_in_order_of_time_then_of_insertion(times_ns: list[int]) -> None:
    """Whatever the order of insertion, time decides, and the older of two equals goes first."""
    engine = Engine()
    ran: list[tuple[int, int]] = []
    for i, time_ns in enumerate(times_ns):
        engine.at(time_ns, lambda i=i, time_ns=time_ns: ran.append((time_ns, i)))
    engine.advance(1_000)
    assert ran == sorted(ran)
    assert len(ran) == len(times_ns)


def test_advance_stops_at_its_time() -> None:
    """What is due later stays in the queue."""
    engine = Engine()
    ran: list[int] = []
    engine.at(10, lambda: ran.append(10))
    engine.at(11, lambda: ran.append(11))
    engine.advance(10)
    assert (ran, engine.now_ns) == ([10], 10)


def test_an_action_in_the_past_runs_now() -> None:
    """The clock never goes back."""
    engine = Engine()
    engine.advance(100)
    seen: list[int] = []
    engine.at(5, lambda: seen.append(engine.now_ns))
    engine.advance(100)
    assert seen == [100]


def test_waiting_for_nothing_is_refused() -> None:
    """A condition that no action can bring about is an error, not an endless loop."""
    with pytest.raises(VirtualGpuError) as error:
        Engine().run_until(lambda: False)
    assert str(error.value) == (
        "the virtual GPU waits for work that can never run; "
        "look for a stream that waits for itself"
    )
