"""Make ``time.perf_counter``, ``time.time`` and ``time.sleep`` use the virtual host's clock."""

import sys
import time
import timeit
from collections.abc import Callable, MutableMapping
from typing import Any

from gpulab.interrupts import Undo
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.simulator import Host, is_owner

# Virtual clocks start at this time, so that you can tell a virtual reading from a real one.
_EPOCH_S = 1_000_000
_NS = 1_000_000_000

# time.monotonic is not replaced: asyncio, and with it the notebook's kernel, needs real time.
_SECONDS = ("perf_counter", "time")
_NANOSECONDS = ("perf_counter_ns", "time_ns")


def install(host: Host, replaced: Replaced, undo: Undo) -> None:
    """Make the clocks of ``time`` return ``host``'s time on this thread, until ``undo`` closes.

    Other threads still get real time. Names that ``__main__`` has already imported, as in
    ``from time import perf_counter``, are replaced, too.
    """
    real = {name: getattr(time, name) for name in (*_SECONDS, *_NANOSECONDS, "sleep")}
    virtual = _virtual_clocks(host, real)
    replaced.put(time, virtual)
    replaced.put(timeit, {"default_timer": virtual["perf_counter"]})
    for timer in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        _set_timer_default(timer, real["perf_counter"], virtual["perf_counter"], undo)
    by_identity = {id(real[name]): virtual[name] for name in real}
    _set_early_imports(vars(sys.modules["__main__"]), by_identity, undo)


def _virtual_clocks(host: Host, real: dict[str, Any]) -> dict[str, Any]:
    def clock(name: str, read: Callable[[], float]) -> Callable[[], float]:
        def now() -> float:
            # The module ``time`` is shared by all threads, so each call asks on which one it is.
            return read() if is_owner() else real[name]()

        now.__name__ = name
        return now

    def sleep(duration_s: float) -> None:
        if not is_owner():
            real["sleep"](duration_s)
        else:
            # The devices follow later, up to this time, when the next call looks at them.
            host.spend(round(duration_s * _NS))

    clocks: dict[str, Any] = {"sleep": sleep}
    for name in _SECONDS:
        clocks[name] = clock(name, lambda: _EPOCH_S + host.read_clock() / _NS)
    for name in _NANOSECONDS:
        clocks[name] = clock(name, lambda: _EPOCH_S * _NS + host.read_clock())
    return clocks


def _set_timer_default(function: Any, real: object, virtual: object, undo: Undo) -> None:
    """Replace a clock among the default arguments of one of ``timeit``'s functions.

    ``timeit`` took its clock as a default argument when it was imported, so that a new
    ``timeit.default_timer`` alone would change nothing.
    """
    undo.callback(setattr, function, "__defaults__", function.__defaults__)
    function.__defaults__ = tuple(
        virtual if value is real else value for value in function.__defaults__
    )


def _set_early_imports(
    namespace: MutableMapping[str, Any], by_identity: dict[int, Any], undo: Undo
) -> None:
    # By identity, because the program may have imported a clock under another name.
    found = {name: value for name, value in namespace.items() if id(value) in by_identity}
    undo.callback(namespace.update, found)
    for name, value in found.items():
        namespace[name] = by_identity[id(value)]
