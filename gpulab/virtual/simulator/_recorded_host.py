"""Hosts of recordings: how much longer their calls take than the model's, and after a wait.

``data/host.json`` has the numbers and says where they were measured.
"""

import json
from collections.abc import Sequence
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
    waits_ns, after_wait
        After the host has launched nothing for these times, how many times as long the next call
        that launches takes. Between them the factor is interpolated, both as logarithms.
    after_sleep
        The least factor after ``time.sleep``, however short.
    next_share
        The share of the additional time that the launch after that one still takes.

    Examples
    --------
    >>> host = recorded_host("h100-sxm-2026-11")
    >>> print(host)
    the host of h100-sxm-2026-11 takes 1.23 times as long for a call as the model's
    >>> host.slowdown(10_000), round(host.slowdown(21_000_000), 1)
    (1.0, 3.8)
    """

    name: str
    factor: float
    waits_ns: tuple[int, ...] = ()
    after_wait: tuple[float, ...] = ()
    after_sleep: float = 1.0
    next_share: float = 0.0

    def __str__(self) -> str:
        if self is MODEL_HOST:
            return "the model's host"
        pace = f"takes {self.factor:g} times as long for a call as the model's"
        return f"the host of {self.name} {pace}"

    def slowdown(self, idle_ns: int) -> float:
        """Return how many times as long a launch takes after ``idle_ns`` without one."""
        return _interpolated(idle_ns, self.waits_ns, self.after_wait)


def _interpolated(x: float, points: Sequence[float], values: Sequence[float]) -> float:
    # Constant beyond the last point: nothing longer was measured.
    if not points or x <= points[0]:
        return 1.0
    for low, high, first, last in zip(points, points[1:], values, values[1:], strict=False):
        if x < high:
            share = log(x / low) / log(high / low)
            return exp(log(first) + share * log(last / first))
    return values[-1]


MODEL_HOST = RecordedHost("the model", 1.0)


@cache
def _recorded() -> dict[str, RecordedHost]:
    hosts: dict[str, Any] = json.loads(files("gpulab").joinpath(_FILE).read_text("utf-8"))["hosts"]
    return {
        name: RecordedHost(
            name,
            each["factor"],
            tuple(round(us * 1_000) for us in each.get("waits_us", ())),
            tuple(each.get("after_wait", ())),
            each.get("after_sleep", 1.0),
            each.get("next_share", 0.0),
        )
        for name, each in hosts.items()
    }


def recorded_host(name: str) -> RecordedHost:
    """Return the host of a shipped recording.

    Raises
    ------
    UnknownNameError
        If no recording of that name has a host.
    """
    known = _recorded()
    if name not in known:
        raise UnknownNameError("recorded host", name, tuple(known))
    return known[name]
