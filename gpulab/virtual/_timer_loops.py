"""Shorten the loops of ``%timeit`` and other timers that choose their own number of loops.

These timers look for a number of loops that takes 0.2 s, and then run it seven times. For a small
kernel that is hundreds of thousands of launches, and half a minute of real time to simulate. Once
the loop is steady, each round takes as long as the one before. Then the virtual clock advances by
the rest at once. In the same way readings that are alike are not taken again and again.
"""

import sys
import timeit
from collections.abc import Callable
from typing import Any

from gpulab.interrupts import opening
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
# a longer backlog that does not fill the queue, only long loops are shortened.
_SHORT_BACKLOG, _LONG_LOOP = 50, 20_000
# PyTorch's timer chooses how many readings it takes, too. After so much real time, by the same
# estimate, it gets the last one again if these many were alike.
_ENOUGH_S, _N_ALIKE, _ALIKE = 1.0, 5, 0.02
# Timers that choose begin with 1 and multiply by at most this factor (1, 2, 5, 10 or 1, 10, 100).
_LARGEST_STEP = 10

Timing = Callable[[Any, int], float]


def install(host: Host, replaced: Replaced) -> None:
    """Make the timers of Python, and of IPython if it is loaded, end long loops early."""
    classes: list[Any] = [timeit.Timer]
    ipython = sys.modules.get("IPython.core.magics.execution")
    if ipython is not None:
        classes.append(ipython.Timer)
    for timer in classes:
        replaced.put(timer, {"timeit": _shortened(timer.timeit, host)})


def _shortened(plain: Timing, host: Host) -> Timing:
    """Return a ``timeit`` method that skips the rest of a long loop once it is steady."""

    @opening  # the program runs inside
    def shortened(self: Any, number: int = timeit.default_number) -> float:  # type: ignore[attr-defined] # undocumented
        if not is_owner() or not _is_chosen(self, number):
            return plain(self, number)
        readings = vars(self).setdefault("_readings", {}).setdefault(number, [])
        if _is_enough(self, readings):
            host.spend(round(readings[-1] * _NS))
        else:
            before_s = host.estimated_real_s
            readings.append(_reading(self, number, plain, host))
            self._spent_s = vars(self).get("_spent_s", 0.0) + host.estimated_real_s - before_s
        return float(readings[-1])

    return shortened


def _reading(timer: Any, number: int, plain: Timing, host: Host) -> float:
    """Run a loop that the timer chose, or as much of it as is needed; return its time."""
    taken_s, n_left = 0.0, number
    n_rounds = _rounds(timer, number)
    few = max(1, n_rounds * _launches(timer) // 100)
    # The first part may contain first-use costs and the filling of the launch queue, so the rest
    # is computed from the last part alone.
    while n_left > 2 * n_rounds:
        n_before = _n_pending(host)
        # In parts by the timer's own method, so that its setup and its clock stay in use.
        part_s = plain(timer, n_rounds)
        taken_s, n_left = taken_s + part_s, n_left - n_rounds
        # Steady if the number of pending launches is about the same as before this part.
        is_steady = abs(_n_pending(host) - n_before) <= few
        is_full = n_before >= host.costs.queue_depth - few
        if is_steady and (n_before <= _SHORT_BACKLOG or is_full or number >= _LONG_LOOP):
            timer._steady = number  # noqa: SLF001 # ours
            rest_s = part_s / n_rounds * n_left
            host.spend(round(rest_s * _NS))
            return taken_s + rest_s
    real_s, n_launched = host.estimated_real_s, host.n_launched
    taken_s += plain(timer, n_left)
    timer._real_s = (host.estimated_real_s - real_s) / max(1, n_left)  # noqa: SLF001 # ours
    timer._n_launched = (host.n_launched - n_launched) // max(1, n_left)  # noqa: SLF001 # ours
    return taken_s


def _is_enough(timer: Any, readings: list[float]) -> bool:
    """Return whether further readings of the same loop need not be taken."""
    last = readings[-_N_ALIKE:]
    return (
        vars(timer).get("chooses_readings", False)
        and vars(timer).get("_spent_s", 0.0) > _ENOUGH_S
        and len(last) == _N_ALIKE
        and max(last) - min(last) <= _ALIKE * max(last)
    )


def _is_chosen(timer: Any, number: int) -> bool:
    """Return whether the timer itself chose this number, going up from 1.

    A number that the program gave is always run in full, because its side effects may matter.
    """
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
