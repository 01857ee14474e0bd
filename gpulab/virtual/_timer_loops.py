"""Let ``%timeit`` and other timers that choose their number of loops be done in seconds.

They look for a number that takes 0.2 s, which is a hundred thousand launches of a small kernel and
seven times as many after that: half a minute on a clock that is computed. Once the loop is steady,
every further round takes as long as the last, and the clock can go on by the rest at once.
"""

import sys
import timeit
from collections.abc import Callable
from typing import Any

from gpulab.interrupts import opening
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.simulator import Host, is_owner

_NS = 1e9
# Rounds after which the loop is looked at.
_N_ROUNDS = 500
# Launches that more or fewer may be pending while a loop is steady.
_FEW = _N_ROUNDS // 100
# A loop that the GPU holds back is faster until the launch queue is full, so it must be longer.
_SHORT_BACKLOG, _LONG_LOOP = 50, 20_000
# Timers that choose go from 1 up in steps of at most so much.
_LARGEST_STEP = 10

Timing = Callable[[Any, int], float]


def install(host: Host, replaced: Replaced) -> None:
    """Have the timers of Python and of IPython, if it runs, end long loops early."""
    classes: list[Any] = [timeit.Timer]
    ipython = sys.modules.get("IPython.core.magics.execution")
    if ipython is not None:
        classes.append(ipython.Timer)
    for timer in classes:
        replaced.put(timer, {"timeit": _shortened(timer.timeit, host)})


def _shortened(plain: Timing, host: Host) -> Timing:
    """Return a ``timeit`` method that skips the end of a long loop that the timer chose."""

    @opening  # the program runs inside
    def shortened(self: Any, number: int = timeit.default_number) -> float:  # type: ignore[attr-defined] # undocumented
        if not is_owner() or not _is_chosen(self, number):
            return plain(self, number)
        taken_s, n_left = 0.0, number
        while n_left > 2 * _N_ROUNDS:
            n_before = _n_pending(host)
            part_s = plain(self, _N_ROUNDS)
            taken_s, n_left = taken_s + part_s, n_left - _N_ROUNDS
            is_steady = abs(_n_pending(host) - n_before) <= _FEW
            if is_steady and (n_before <= _SHORT_BACKLOG or number >= _LONG_LOOP):
                rest_s = part_s / _N_ROUNDS * n_left
                host.spend(round(rest_s * _NS))
                return taken_s + rest_s
        return taken_s + plain(self, n_left)

    return shortened


def _is_chosen(timer: Any, number: int) -> bool:
    """Tell whether a timer came to this number by itself, from 1 on; no program relies on it."""
    reached = vars(timer).setdefault("_reached", 0)
    if number > max(1, _LARGEST_STEP * reached):
        return False
    timer._reached = max(reached, number)  # noqa: SLF001 # ours
    return True


def _n_pending(host: Host) -> int:
    host.catch_up()
    return sum(device.n_pending for device in host.devices)
