"""Virtual host time behind ``time.perf_counter`` and its relatives, on one thread only."""

import sys
import time
import timeit
from collections.abc import Callable, MutableMapping
from typing import Any

from gpulab.virtual.simulator.host import Host
from gpulab.virtual.simulator.machine import is_owner

# Virtual clocks start here, so that a virtual reading is not mistaken for one of the real clock.
_EPOCH_S = 1_000_000
_NS = 1_000_000_000

# time.monotonic stays real: asyncio, and with it the notebook's kernel, lives by it.
_SECONDS = ("perf_counter", "time")
_NANOSECONDS = ("perf_counter_ns", "time_ns")

Undo = Callable[[], None]


def install(host: Host) -> list[Undo]:
    """Put ``host``'s clock behind the clocks of ``time`` for this thread; return how to undo it.

    Names that ``__main__`` has imported before, as in ``from time import perf_counter``, are
    replaced too.
    """
    real = {name: getattr(time, name) for name in (*_SECONDS, *_NANOSECONDS, "sleep")}
    virtual = _virtual_clocks(host, real)
    undo = [_set_attribute(time, name, virtual[name]) for name in real]
    undo.append(_set_attribute(timeit, "default_timer", virtual["perf_counter"]))
    undo.extend(
        _set_timer_default(function, real["perf_counter"], virtual["perf_counter"])
        for function in (timeit.Timer.__init__, timeit.timeit, timeit.repeat)
    )
    by_identity = {id(real[name]): virtual[name] for name in real}
    undo.extend(_set_early_imports(vars(sys.modules["__main__"]), by_identity))
    return undo


def _virtual_clocks(host: Host, real: dict[str, Any]) -> dict[str, Any]:
    def clock(name: str, read: Callable[[], float]) -> Callable[[], float]:
        def now() -> float:
            return read() if is_owner() else real[name]()

        now.__name__ = name
        return now

    def sleep(duration_s: float) -> None:
        if not is_owner():
            real["sleep"](duration_s)
        else:
            host.spend(round(duration_s * _NS))

    clocks: dict[str, Any] = {"sleep": sleep}
    for name in _SECONDS:
        clocks[name] = clock(name, lambda: _EPOCH_S + host.read_clock() / _NS)
    for name in _NANOSECONDS:
        clocks[name] = clock(name, lambda: _EPOCH_S * _NS + host.read_clock())
    return clocks


def _set_attribute(owner: object, name: str, value: object) -> Undo:
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


def _set_timer_default(function: Any, real: object, virtual: object) -> Undo:
    """``timeit`` bound the clock as a default argument when it was defined."""
    swapped = tuple(virtual if value is real else value for value in function.__defaults__)
    return _set_attribute(function, "__defaults__", swapped)


def _set_early_imports(
    namespace: MutableMapping[str, Any], by_identity: dict[int, Any]
) -> list[Undo]:
    found = {name: value for name, value in namespace.items() if id(value) in by_identity}
    for name, value in found.items():
        namespace[name] = by_identity[id(value)]

    def restore() -> None:
        for name, value in found.items():
            namespace[name] = value

    return [restore]
