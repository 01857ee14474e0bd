"""Observe which timers a learner's function uses while it times some work."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType

from gpulab.exercises.answers._forms import Diagnosis
from gpulab.virtual import ClocksRead

# Modules that contain finished timers, and the name by which learners know each.
_READY_MADE = {
    "gpulab.timing": "gpulab.measure",
    "torch.utils.benchmark": "torch.utils.benchmark.Timer",
    "triton.testing": "triton.testing.do_bench",
    "timeit": "timeit",
}

_STOPWATCH = 2  # readings of a clock that a stopwatch needs


def ready_made_timer(caller: CodeType) -> str:
    """Return the name of a finished timer that is among the callers, or an empty text.

    Parameters
    ----------
    caller
        Code of our function that called the learner's. The search ends there: what called the
        check does not matter.
    """
    found = ""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not caller:
        module = frame.f_globals.get("__name__", "")
        known = (said for name, said in _READY_MADE.items() if f"{module}.".startswith(f"{name}."))
        found = next(known, found)  # the outermost one: that is the one the learner called
        frame = frame.f_back
    return found


@contextmanager
def elapsed_calls() -> Iterator[list[None]]:
    """Yield a list that gets one entry for each call of ``torch.cuda.Event.elapsed_time``.

    The method is replaced inside the ``with`` block and restored after it.
    """
    import torch

    calls: list[None] = []
    event = torch.cuda.Event
    original = event.elapsed_time

    def elapsed_time(self: torch.cuda.Event, end_event: torch.cuda.Event) -> float:
        calls.append(None)
        elapsed_ms: float = original(self, end_event)
        return elapsed_ms

    # The class is changed, because the learner may make events at any moment and keep them.
    event.elapsed_time = elapsed_time  # type: ignore[method-assign]  # put back below
    try:
        yield calls
    finally:
        event.elapsed_time = original  # type: ignore[method-assign]  # as it was


def other_clock(clocks: ClocksRead) -> Diagnosis | None:
    """Return the diagnosis of a function that timed with a real clock on a virtual GPU, or None.

    A single reading of a real clock may be the date of a log, and so may all of them if the
    function has read virtual clocks twice.
    """
    n_readings = len(clocks.real) + clocks.n_virtual
    is_timed_by_it = clocks.real and clocks.n_virtual < _STOPWATCH <= n_readings
    if not is_timed_by_it:
        return None
    return Diagnosis(
        "other-clock",
        f"It reads {clocks.real[0]}, which shows the real time of this machine. On the virtual "
        "GPU your program runs on a virtual clock: read time.perf_counter(), or record events.",
    )
