"""Make the clocks of ``time`` follow the virtual host's clock, and ``time.sleep`` advance it."""

import os
import sys
import sysconfig
import time
import timeit
from collections.abc import Callable, Mapping, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.core.interrupts import Undo
from gpulab.virtual._replaced import Replaced
from gpulab.virtual.simulator import Host, is_owner

# Only perf_counter starts at this time: it has no meaning of its own, so you can tell a virtual
# reading from a real one. The others start at what the real clock shows at the first entry.
_PERF_COUNTER_START_NS = 1_000_000_000_000_000
_NS = 1_000_000_000

CLOCKS = ("perf_counter", "time", "monotonic", "process_time", "thread_time")
# These do not advance during time.sleep(). They advance during a wait for the device, because
# CUDA's host waits in a loop.
_CPU_CLOCKS = ("process_time", "thread_time")
_CPU_CLOCK_IDS = ("CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID", "CLOCK_PROF")
# The constants of ``time`` for clock_gettime(); which of them exist depends on the system.
_CLOCK_IDS = tuple(name for name in vars(time) if name.startswith("CLOCK_"))
# They take the present time if they get none.
_OF_NOW = ("localtime", "gmtime", "ctime", "asctime", "strftime")
_OTHERS = ("sleep", "clock_gettime", "clock_gettime_ns", *_OF_NOW)

ReadClock = Callable[[], int]


class HostClocks:
    """The clocks of a virtual host, which agree with each other in each context of its machine."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._starts: dict[str, int] = {}
        self._began_ns = 0

    def start(self) -> None:
        """Read all real clocks, at the first call; from there the virtual ones go on."""
        if not self._starts:
            self._began_ns = self.host.now_ns
            self._starts = {name: getattr(time, f"{name}_ns")() for name in CLOCKS}
            self._starts["perf_counter"] = _PERF_COUNTER_START_NS
            read_ns: Any = getattr(time, "clock_gettime_ns", None)  # some systems have none
            for name in _CLOCK_IDS if read_ns else ():
                self._starts[name] = read_ns(getattr(time, name))

    def clock(self, name: str) -> ReadClock:
        """Return the function that reads a clock, in nanoseconds."""
        host, start_ns = self.host, self._starts[name] - self._began_ns
        if name in _CPU_CLOCKS or name in _CPU_CLOCK_IDS:
            return lambda: start_ns + host.read_clock() - host.slept_ns
        return lambda: start_ns + host.read_clock()


class _Builtin:
    """Stands in for a builtin function of ``time``: as an attribute of a class it is no method."""

    __slots__ = ("__name__", "_call")
    __module__ = "time"

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        self.__name__ = name
        self._call = call

    def __call__(self, *args: Any) -> Any:
        return self._call(*args)

    def __reduce__(self) -> str:
        return self.__name__


# The code that runs when a program reads a clock.
VIRTUAL_CLOCK = _Builtin.__call__.__code__


def install(clocks: HostClocks, replaced: Replaced, undo: Undo) -> None:
    """Make the functions of ``time`` use ``clocks`` on this thread, until ``undo`` closes.

    Other threads still get real time. Names that ``__main__`` has already imported, as in
    ``from time import perf_counter``, are replaced, too.
    """
    clocks.start()
    names = (*(f"{name}{unit}" for name in CLOCKS for unit in ("", "_ns")), *_OTHERS)
    # Some systems have no clock_gettime.
    real = {name: getattr(time, name) for name in names if hasattr(time, name)}
    calls = _virtual_clocks(clocks, real)
    virtual = {name: _Builtin(name, calls[name]) for name in real}
    replaced.put(time, virtual)
    replaced.put(timeit, {"default_timer": virtual["perf_counter"]})
    for timer in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        _set_timer_default(timer, real["perf_counter"], virtual["perf_counter"], undo)
    by_identity = {id(real[name]): virtual[name] for name in real}
    _set_early_imports(vars(sys.modules["__main__"]), by_identity, undo)


def _virtual_clocks(clocks: HostClocks, real: Mapping[str, Any]) -> dict[str, Callable[..., Any]]:
    calls: dict[str, Callable[..., Any]] = {}
    for name in CLOCKS:
        read = clocks.clock(name)
        chosen = _unless_library if name == "monotonic" else _on_owner
        calls[name] = chosen(_in_seconds(read), real[name])
        calls[f"{name}_ns"] = chosen(read, real[f"{name}_ns"])
    calls["sleep"] = _sleep(clocks.host, real["sleep"])
    now = calls["time"]
    for name in ("localtime", "gmtime", "ctime"):
        calls[name] = _at_present(now, real[name])
    local = calls["localtime"]
    calls["asctime"] = lambda moment=None: real["asctime"](local() if moment is None else moment)
    calls["strftime"] = lambda form, moment=None: real["strftime"](
        form, local() if moment is None else moment
    )
    supported = [name for name in _CLOCK_IDS if "clock_gettime_ns" in real]
    by_id = {getattr(time, name): clocks.clock(name) for name in supported}
    calls["clock_gettime"] = _by_id(
        {key: _in_seconds(read) for key, read in by_id.items()}, real.get("clock_gettime")
    )
    calls["clock_gettime_ns"] = _by_id(by_id, real.get("clock_gettime_ns"))
    return calls


def _in_seconds(read: ReadClock) -> Callable[[], float]:
    return lambda: read() / _NS


def _on_owner(read: Callable[[], Any], real: Callable[[], Any]) -> Callable[[], Any]:
    # The module ``time`` is shared by all threads, so each call asks on which one it is.
    return lambda: read() if is_owner() else real()


def _unless_library(read: Callable[[], Any], real: Callable[[], Any]) -> Callable[[], Any]:
    """Return a clock that is virtual for the program, and real for libraries.

    Libraries use ``time.monotonic`` for the deadlines of real waits: asyncio, and with it the
    notebook's kernel, multiprocessing, file locks. With a clock that stands still while they wait
    they would wait for ever.
    """

    def now() -> Any:
        if not is_owner():
            return real()
        # The caller of _Builtin.__call__, which has called this function.
        caller = sys._getframe(2).f_code.co_filename  # noqa: SLF001 # the only way to find it
        return real() if is_library(caller) else read()

    return now


@cache
def is_library(filename: str) -> bool:
    """Return whether code of this file belongs to Python, gpulab or an installed package."""
    if "site-packages" in filename or "dist-packages" in filename:
        return True
    package = Path(__file__).parents[1]
    return filename.startswith((f"{package}{os.sep}", f"{sysconfig.get_path('stdlib')}{os.sep}"))


def _sleep(host: Host, real: Callable[[float], None]) -> Callable[[float], None]:
    def sleep(duration_s: float) -> None:
        # A number that is negative or not a number gets Python's own error.
        if not is_owner() or not duration_s >= 0:
            real(duration_s)
        else:
            # The devices follow later, up to this time, when the next call looks at them.
            host.sleep(round(duration_s * _NS))

    return sleep


def _at_present(now: Callable[[], float], real: Callable[[float], Any]) -> Callable[..., Any]:
    return lambda moment_s=None: real(now() if moment_s is None else moment_s)


def _by_id(clocks: Mapping[int, Callable[[], Any]], real: Any) -> Callable[[int], Any]:
    def read(clock_id: int) -> Any:
        # Other numbers name clocks of single threads and processes, which have no virtual one.
        if is_owner() and clock_id in clocks:
            return clocks[clock_id]()
        return real(clock_id)

    return read


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
    early_imports = {name: value for name, value in namespace.items() if id(value) in by_identity}
    undo.callback(namespace.update, early_imports)
    for name, value in early_imports.items():
        namespace[name] = by_identity[id(value)]
