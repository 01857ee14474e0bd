"""A piece of work: a function without arguments that enqueues work on the GPU."""

import gc
import inspect
from collections.abc import Callable, Iterator
from fractions import Fraction

from gpulab.errors import InvalidOptionError, NotCallableError, shown
from gpulab.interrupts import contextmanager
from gpulab.units import format_time

Work = Callable[[], object]

# No launch from Python takes the host less, so that fewer seconds are never claimed.
_LEAST_CALL_S = 5e-6
_LONGEST_S = 3600
_NEVER_TOO_MANY = int(_LONGEST_S / _LEAST_CALL_S)
_COUNTED_HOURS = 1_000_000  # a century; more of them say nothing


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep Python's garbage collector out of the block, and leave it as it was."""
    was_enabled = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if was_enabled:
            gc.enable()


def check_callable(name: str, work: object, cure: str) -> None:
    """Refuse what is not a plain function, with what to pass instead.

    Raises
    ------
    NotCallableError
        If it cannot be called, or calling it would run nothing.
    """
    if isinstance(work, str):
        raise NotCallableError(f"{name} is the text {shown(work)}; {cure}")
    if not callable(work):
        raise NotCallableError(
            f"{name} is of type {type(work).__name__} and cannot be called; {cure}"
        )
    if inspect.iscoroutinefunction(work) or inspect.isgeneratorfunction(work):
        raise NotCallableError(
            f"{name} is a coroutine or a generator function, and calling it runs nothing; {cure}"
        )


def refuse_endless(n_calls: int, call_s: float | None = None, **counts: int | None) -> None:
    """Refuse so many calls of the work that they would take longer than an hour.

    Parameters
    ----------
    n_calls
        How often the work would be called.
    call_s
        Seconds of the real clock for a call; None: as few as any launch takes.
    counts
        The arguments that ask for so many, by their names.

    Raises
    ------
    InvalidOptionError
        If they would take longer; the message says how long.
    """
    if n_calls <= _NEVER_TOO_MANY and call_s is None:  # the usual case, as each measurement asks
        return
    # A number of calls may be too large for a float.
    total_s = int(n_calls) * Fraction(call_s or _LEAST_CALL_S)
    if total_s <= _LONGEST_S:
        return
    given = ", ".join(
        f"{name}={shown(n)}" for name, n in counts.items() if n is not None and n > 1
    )
    how = "even at 5 µs each" if call_s is None else f"at {format_time(call_s)} each, as now,"
    hours = total_s / 3600
    about = f"{float(hours):,.1f} hours" if hours < _COUNTED_HOURS else "longer than anybody waits"
    raise InvalidOptionError(
        f"{given} calls the work {shown(n_calls)} times, which {how} takes {about}; more than an "
        "hour is refused: ask for fewer, or leave n_samples out to stop when the answer is precise"
    )
