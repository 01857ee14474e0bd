"""The host's times between launches, after a wait, and on the hosts of recordings.

``data/host.json`` has the numbers and says where they were measured.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, log
from typing import Any

from gpulab.core.errors import UnknownNameError

_FILE = "data/host.json"


@dataclass(frozen=True, slots=True)
class RecordedHost:
    """How the host of a recording differs from the model's.

    Attributes
    ----------
    name
        The recording's name.
    factor
        How many times longer a call takes it than the model's host.

    Examples
    --------
    >>> print(recorded_host("h100-sxm-2026-11"))
    the host of h100-sxm-2026-11 takes 1.23 times as long for a call as the model's
    """

    name: str
    factor: float

    def __str__(self) -> str:
        if self is MODEL_HOST:
            return "the model's host"
        pace = f"takes {self.factor:g} times as long for a call as the model's"
        return f"the host of {self.name} {pace}"


@dataclass(frozen=True, slots=True)
class ColdHost:
    """How much longer a call takes any host after it has launched nothing for a while.

    Attributes
    ----------
    waits_ns, after_wait
        After the host has launched nothing for these times, how many times as long the next call
        that launches takes. Between them the factor is interpolated, both as logarithms.
    after_sleep
        The least factor after ``time.sleep``, however short.
    next_share
        The share of the additional time that the launch after that one still takes.

    Examples
    --------
    >>> cold = cold_host()
    >>> cold.slowdown(10_000), round(cold.slowdown(21_000_000), 1)
    (1.0, 3.8)
    """

    waits_ns: tuple[int, ...]
    after_wait: tuple[float, ...]
    after_sleep: float
    next_share: float

    @property
    def starts_ns(self) -> int:
        """The longest time without a launch that changes nothing."""
        return self.waits_ns[0]

    def slowdown(self, idle_ns: int) -> float:
        """Return how many times as long a launch takes after ``idle_ns`` without one."""
        if idle_ns <= self.starts_ns:
            return 1.0
        # Constant beyond the last point: nothing longer was measured.
        if idle_ns >= self.waits_ns[-1]:
            return self.after_wait[-1]
        at = bisect_right(self.waits_ns, idle_ns)
        (low, high), (first, last) = (
            row[at - 1 : at + 1] for row in (self.waits_ns, self.after_wait)
        )
        share = log(idle_ns / low) / log(high / low)
        return exp(log(first) + share * log(last / first))


MODEL_HOST = RecordedHost("the model", 1.0)


@cache
def _recorded() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))
    return data


@cache
def fitted_costs() -> dict[str, int]:
    """Return the host's costs in nanoseconds, by name: for modules, autograd, optimizers.

    They were fitted together, to the host times of whole training steps on the host of an NVIDIA
    H200. So a single one of them is not a measurement. ``python -m benchmarks.host_time``
    writes them.

    Examples
    --------
    >>> fitted_costs()["operator in backward"] > 0
    True
    """
    costs: dict[str, int] = _recorded()["costs_ns"]
    return costs


@cache
def cold_host() -> ColdHost:
    """Return what was measured after waits, on the one host where it was."""
    cold = _recorded()["cold"]
    waits_ns = tuple(round(us * 1_000) for us in cold["waits_us"])
    return ColdHost(waits_ns, tuple(cold["after_wait"]), cold["after_sleep"], cold["next_share"])


def recorded_host(name: str) -> RecordedHost:
    """Return the host of a shipped recording.

    Raises
    ------
    UnknownNameError
        If no recording of that name has a host.
    """
    known = _recorded()["hosts"]
    if name not in known:
        raise UnknownNameError("recorded host", name, tuple(known))
    return RecordedHost(name, known[name]["factor"])
