"""A piece of work: a function without arguments that enqueues work on the GPU."""

import gc
import inspect
from collections.abc import Callable, Iterator
from fractions import Fraction

from gpulab.core.errors import InvalidOptionError, NotCallableError, shown
from gpulab.core.interrupts import contextmanager
from gpulab.core.units import format_time

Work = Callable[[], object]

# Every launch from Python takes the host at least this long, so the estimate is never too high.
_LEAST_CALL_S = 5e-6
_LONGEST_S = 3600  # an hour; refuse_endless refuses more
_NEVER_TOO_MANY = int(_LONGEST_S / _LEAST_CALL_S)
_COUNTED_HOURS = 1_000_000  # a century; a larger number of hours would tell a reader nothing


@contextmanager
def collector_paused() -> Iterator[None]:
    """Turn Python's garbage collector off inside the block, and restore it at the end.

    A collection inside a timed interval would add milliseconds to one sample.
    """
    # Read first: if the program runs without the collector, it must stay off afterwards.
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        (gc.enable if was_enabled else gc.disable)()


def check_callable(name: str, work: object, cure: str) -> None:
    """Raise `NotCallableError` unless ``work`` is a function that runs when it is called.

    A coroutine or a generator function does not. ``cure`` ends the message: what to pass instead.
    """
    # A message of its own: timeit accepts code as text, and gpulab does not.
    if isinstance(work, str):
        raise NotCallableError(f"{name} is the text {shown(work)}; {cure}")
    if not callable(work):
        raise NotCallableError(
            f"{name} is of type {type(work).__name__} and cannot be called; {cure}"
        )
    # Both are callable, and would be timed as very fast work.
    if inspect.iscoroutinefunction(work) or inspect.isgeneratorfunction(work):
        raise NotCallableError(
            f"{name} is a coroutine or a generator function, and calling it runs nothing; {cure}"
        )


def refuse_endless(n_calls: int, call_s: float | None = None, **counts: int | None) -> None:
    """Raise `InvalidOptionError` if so many calls of the work would take longer than an hour.

    ``call_s`` is the time of one call on the real clock; None means 5 µs, the least that any
    launch takes. ``counts`` are the arguments that ask for so many calls, by their names, for the
    message.
    """
    if n_calls <= _NEVER_TOO_MANY and call_s is None:  # the fast way: every measurement calls this
        return
    # Fractions, because n_calls comes from the user and may be too large for a float.
    total_s = int(n_calls) * Fraction(call_s or _LEAST_CALL_S)
    if total_s <= _LONGEST_S:
        return
    counts_text = ", ".join(
        f"{name}={shown(n)}" for name, n in counts.items() if n is not None and n > 1
    )
    how = "even at 5 µs each" if call_s is None else f"at {format_time(call_s)} each, as now,"
    hours = total_s / 3600
    about = f"{float(hours):,.1f} hours" if hours < _COUNTED_HOURS else "longer than anybody waits"
    raise InvalidOptionError(
        f"{counts_text} calls the work {shown(n_calls)} times, which {how} takes {about}; more "
        "than an hour is refused: ask for fewer, or leave n_samples out to stop when the answer "
        "is precise"
    )
