"""Shorten the loops of ``%timeit`` and other timers that choose their own number of loops.

These timers look for a number of loops that takes 0.2 s, and then run it seven times. For a small
kernel that is hundreds of thousands of launches, and half a minute of real time to simulate. Once
the loop is steady, each round takes as long as the one before. Then the virtual clock advances by
the rest at once. In the same way readings that are alike are not taken again and again.

Timers are classes derived from ``timeit.Timer``. Some exist only after the virtual GPU is entered:
IPython defines its own at the first ``%timeit``.
"""

import sys
import timeit
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NoReturn

from gpulab.core.errors import NotModelledError
from gpulab.core.interrupts import opening
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.simulator import Host, is_owner

_NS = 1e9
# After this many rounds the loop is checked again: as many as take about 0.1 s of real time, by an
# estimate that reads no clock.
_MOST_ROUNDS = 500
# At least so many launches, because when the launch queue is full, the first one may not wait.
_FEWEST_LAUNCHES = 50
_CHECKED_AFTER_S = 0.1
# If the GPU is slower than the host, the loop runs faster until the launch queue is full. So with
# a longer backlog that does not fill the queue, only loops that take long in real time are
# shortened, by the same estimate.
_SHORT_BACKLOG, _LONG_S = 50, 1.0
# PyTorch's timer chooses how many readings it takes, too. After so much real time it gets the last
# one again, if these many were alike.
_ENOUGH_S, _N_ALIKE, _ALIKE = 1.0, 5, 0.02
# Timers that choose begin with 1 and multiply by at most this factor (1, 2, 5, 10 or 1, 10, 100).
_LARGEST_STEP = 10

Timing = Callable[[Any, int], float]


def install(host: Host, replaced: Replaced) -> None:
    """Make all timers that exist now or are defined later end long loops early."""

    def shorten(timer: Any) -> None:
        # A class without a method of its own has the shortened one of its parent.
        if "timeit" in vars(timer):
            replaced.put(timer, {"timeit": _shortened(timer.timeit, host)})

    def shorten_new(timer: Any, /, **options: Any) -> None:
        super(timeit.Timer, timer).__init_subclass__(**options)
        shorten(timer)

    for timer in _with_subclasses(timeit.Timer):
        shorten(timer)
    replaced.put(timeit.Timer, {"__init_subclass__": classmethod(shorten_new)})
    # pytest loads its plugins before any test enters a virtual GPU.
    fixtures = sys.modules.get("pytest_benchmark.fixture")
    if fixtures is not None:
        replaced.put(fixtures.BenchmarkFixture, {"__call__": _refuse, "pedantic": _refuse})


def _refuse(*_args: object, **_options: object) -> NoReturn:
    # It would time the simulation: its clock is the real one of before, and it waits for no GPU.
    raise NotModelledError(
        "the virtual GPU has no model of pytest-benchmark's loops; use gpulab's fixture "
        "gpu_benchmark"
    )


def _with_subclasses(timer: type[timeit.Timer]) -> Iterator[type[timeit.Timer]]:
    yield timer
    for subclass in timer.__subclasses__():
        yield from _with_subclasses(subclass)


def _shortened(plain: Timing, host: Host) -> Timing:
    """Return a ``timeit`` method that skips the rest of a long loop once it is steady."""

    @opening  # the program runs inside
    @wraps(plain)
    def shortened(self: Any, number: int = timeit.default_number) -> float:  # type: ignore[attr-defined] # undocumented
        state = vars(self)
        # A subclass may call its parent's method, which is shortened as well.
        if not is_owner() or state.get("_is_reading") or not _is_chosen(self, number):
            return plain(self, number)
        readings = state.setdefault("_readings", {}).setdefault(number, [])
        if state.get("chooses_readings") and _is_enough(readings, state.get("_spent_s", 0.0)):
            host.skip_launches(round(readings[-1] * _NS))
        else:
            before_s = host.estimated_real_s
            self._is_reading = True
            try:
                readings.append(_reading(self, number, plain, host))
            finally:
                self._is_reading = False
            self._spent_s = state.get("_spent_s", 0.0) + host.estimated_real_s - before_s
        return float(readings[-1])

    return shortened


def _reading(timer: Any, number: int, plain: Timing, host: Host) -> float:
    """Run a loop that the timer chose, or as much of it as is needed; return its time."""
    taken_s, n_left = 0.0, number
    if number > 1 and "_real_s" not in vars(timer):
        # One round shows how many rounds can be run before the loop is checked.
        taken_s, n_left = _noted(timer, 1, plain, host), number - 1
    n_rounds = _rounds(timer, number)
    # The backlog may be read before or after some launches of a round.
    tolerance = max(1, n_rounds * _launches(timer) // 100, _launches(timer) // 2)
    is_long = number * vars(timer).get("_real_s", 0.0) >= _LONG_S
    # The first part may contain first-use costs and the filling of the launch queue, so the rest
    # is computed from the last part alone.
    while n_left > 2 * n_rounds:
        n_before = _n_pending(host)
        # In parts by the timer's own method, so that its setup and its clock stay in use.
        part_s = plain(timer, n_rounds)
        taken_s, n_left = taken_s + part_s, n_left - n_rounds
        # Steady if the number of pending launches is about the same as before this part.
        is_steady = abs(_n_pending(host) - n_before) <= tolerance
        is_full = n_before >= host.costs.queue_depth - tolerance
        if is_steady and (n_before <= _SHORT_BACKLOG or is_full or is_long):
            timer._steady = number  # noqa: SLF001 # ours
            rest_s = part_s / n_rounds * n_left
            host.skip_launches(round(rest_s * _NS))
            return taken_s + rest_s
    return taken_s + _noted(timer, n_left, plain, host)


def _noted(timer: Any, n_rounds: int, plain: Timing, host: Host) -> float:
    """Run some rounds, and note how long the simulation of one takes and what it launches."""
    real_s, n_launched = host.estimated_real_s, host.n_launched
    taken_s = plain(timer, n_rounds)
    timer._real_s = (host.estimated_real_s - real_s) / max(1, n_rounds)  # noqa: SLF001 # ours
    timer._n_launched = (host.n_launched - n_launched) // max(1, n_rounds)  # noqa: SLF001 # ours
    return taken_s


def _is_enough(readings: list[float], spent_s: float) -> bool:
    """Return whether further readings of the same loop need not be taken.

    ``spent_s`` is the real time that they took, by the estimate.
    """
    if spent_s <= _ENOUGH_S or len(readings) < _N_ALIKE:
        return False
    last = readings[-_N_ALIKE:]
    return max(last) - min(last) <= _ALIKE * max(last)


def _is_chosen(timer: Any, number: int) -> bool:
    """Return whether the timer itself chose this number, as its default or going up from 1.

    A number that the program gave is always run in full, because its side effects may matter.
    """
    # A million, which a program gets if it gives no number.
    if number == timeit.default_number:  # type: ignore[attr-defined] # undocumented
        return True
    reached = vars(timer).setdefault("_reached", 0)
    if number > max(1, _LARGEST_STEP * reached):
        return False
    timer._reached = max(reached, number)  # noqa: SLF001 # ours
    return True


def _rounds(timer: Any, number: int) -> int:
    """Return after how many rounds a loop is checked."""
    # The timer's first call has one round, so the estimate is there when a loop is long.
    real_s = vars(timer).get("_real_s", 0.0)
    wanted = round(_CHECKED_AFTER_S / real_s) if real_s else _MOST_ROUNDS
    n_rounds = min(_MOST_ROUNDS, max(_FEWEST_LAUNCHES // _launches(timer), wanted))
    # Timers run a loop of the same length several times. If it was steady once, fewer rounds show
    # that it still is.
    return max(1, n_rounds // 5 if vars(timer).get("_steady") == number else n_rounds)


def _launches(timer: Any) -> int:
    """Return how many launches a round has, at least 1."""
    n_launched: int = vars(timer).get("_n_launched", 0)
    return max(1, n_launched)


def _n_pending(host: Host) -> int:
    host.catch_up()
    return sum(device.n_pending for device in host.devices)
