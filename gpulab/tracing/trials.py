"""Try a function that somebody wrote: what it returned or raised, and what it did on the GPU.

The exercises, the benchmark card and the graded labs all judge functions. :func:`called` calls one
and catches its error. :func:`tried` records in addition the calls of the work, the waits, the
launches and the data races. A judge is then a list of rules, of which :func:`first_fitting` picks
one.

One file, because a trial is useless without what records it and what reads its value.
"""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import wraps
from numbers import Real
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar
from unittest.mock import patch

from gpulab import device
from gpulab.core.errors import CutOffError
from gpulab.core.interrupts import ExitStack, contextmanager

if TYPE_CHECKING:
    from gpulab.happens_before import Hazard
    from gpulab.happens_before.activity import ActivityRecord, HostCall
    from gpulab.tracing.profiling import Records
    from gpulab.tracing.sanitizer import Hazards
    from gpulab.virtual import ClocksRead, SimulatorSession

__all__ = [
    "Rule",
    "Trial",
    "WatchedWork",
    "WorkCall",
    "called",
    "first_fitting",
    "number_in",
    "pair_in",
    "stream_kept",
    "text_of",
    "tried",
]

_Subject = TypeVar("_Subject")
_Outcome = TypeVar("_Outcome")
# Whether a mistake was made, and what to say: a constant, or a function of what was tried.
Rule = tuple[Callable[[_Subject], bool], _Outcome | Callable[[_Subject], _Outcome]]

# Modules that contain finished timers, and the name by which learners know each.
_READY_MADE = {
    "gpulab.timing": "gpulab.measure",
    "torch.utils.benchmark": "torch.utils.benchmark.Timer",
    "triton.testing": "triton.testing.do_bench",
    "timeit": "timeit",
}

_MOST_PARTS = 10_000
_STOPWATCH = 2  # readings of a clock that a stopwatch needs
# A benchmark that warms up for a second calls a kernel of 2 µs about 200,000 times.
_MOST_CALLS = 500_000


@dataclass(frozen=True, slots=True)
class WorkCall:
    """One call of a work by the function that was tried.

    ``timer`` is the name of the finished timer, such as ``timeit``, that called it; empty if none
    did. The times are on the axis of the trial's records; 0 if there are none.
    """

    work: "WatchedWork"
    timer: str
    is_captured: bool
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Trial:
    """What a function returned or raised, and what it did.

    ``value`` is None if it raised an error. ``calls`` are those of a :class:`WatchedWork`, in
    order, and ``asked`` counts its calls of the functions of :func:`counted_calls`. ``records``
    has what it launched and the host's calls of CUDA, from its call to its return; None on a CUDA
    GPU, because a profiler would slow the launches. ``hazards`` and ``clocks`` are None if nobody
    asked for them; on a CUDA GPU, whose time is real, there are no ``clocks``.

    >>> Trial(2).number, Trial("2").number, Trial(True).number
    (2.0, None, None)
    """

    value: object
    error: BaseException | None = None
    calls: tuple[WorkCall, ...] = ()
    asked: Counter[str] = field(default_factory=Counter)
    records: "Records | None" = None
    hazards: "tuple[Hazard, ...] | None" = None
    clocks: "ClocksRead | None" = None

    @property
    def n_calls(self) -> int:
        """Number of calls of the work."""
        return len(self.calls)

    @property
    def timer(self) -> str:
        """Name of a finished timer that called the work; empty if none did."""
        return next((call.timer for call in self.calls if call.timer), "")

    @property
    def real_clock(self) -> str:
        """Name of a clock with real time by which it timed on a virtual GPU, or an empty text.

        A single reading of a real clock may be the date of a log, and so may all of them if the
        function has read virtual clocks twice, or events.
        """
        clocks = self.clocks
        if clocks is None or not clocks.real or self.asked["Event.elapsed_time"]:
            return ""
        n_readings = clocks.n_virtual + len(clocks.real)
        return clocks.real[0] if clocks.n_virtual < _STOPWATCH <= n_readings else ""

    @property
    def number(self) -> float | None:
        """The returned number; None if the function did not return one."""
        return number_in(self.value)

    @property
    def seconds(self) -> float | None:
        """The returned time, alone or as the first of a pair; None if there is none."""
        pair = pair_in(self.value, ("seconds", "clock_mhz"))
        return number_in(self.value if pair is None else pair[0])

    @property
    def waits(self) -> "tuple[HostCall, ...] | None":
        """The host's waits, without those inside the work; None if there are no records."""
        if self.records is None:
            return None
        return tuple(
            call for call in self.records.calls if call.kind == "wait" and self._is_own(call)
        )

    @property
    def reads_events_by_luck(self) -> bool:
        """Whether it read events although nothing waited or asked after the last was recorded.

        False if there are no records, and for a program that reads them again and again until
        they are complete.
        """
        calls = () if self.records is None else self.records.calls
        recorded_ns = [call.start_ns for call in calls if "EventRecord" in call.name]
        n_read = self.asked["Event.elapsed_time"]
        if not 0 < n_read < len(recorded_ns) or self.asked["Event.query"]:
            return False
        waited_ns = max((call.end_ns for call in calls if call.kind == "wait"), default=0)
        return not self.asked["Stream.query"] and waited_ns <= recorded_ns[-1]

    @property
    def launched(self) -> "tuple[ActivityRecord, ...] | None":
        """The kernels and copies that are not the work's; None if there are no records."""
        if self.records is None:
            return None
        correlations = {call.correlation for call in self.records.calls if self._is_own(call)}
        return tuple(
            record for record in self.records.records if record.correlation in correlations
        )

    def _is_own(self, call: "HostCall") -> bool:
        """Return whether the function made a call of CUDA itself, and not the work."""
        return not any(work.start_ns <= call.start_ns < work.end_ns for work in self.calls)


class WatchedWork:
    """A work whose calls are recorded while a function is tried.

    After ``most_calls`` a trial stops the function, which would never end.
    """

    def __init__(self, work: Callable[..., object], most_calls: int = _MOST_CALLS) -> None:
        self._work = work
        self.most_calls = most_calls

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the work, and note the call if a function is tried."""
        if not _running:
            return self._work(*args, **kwargs)
        return _running[-1].note(self, lambda: self._work(*args, **kwargs))


def called(function: Callable[..., object], *arguments: object) -> Trial:
    """Call a function that may raise anything; return what it returned, or its error."""
    try:
        return Trial(function(*arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # anything, also what would end the session
        return Trial(None, error)


def text_of(error: BaseException | None) -> str:
    """Return the text of an error that somebody's function raised; empty if that raises, too."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # a class of the learner's
        return ""


def tried(
    function: Callable[..., object],
    *arguments: object,
    make: Callable[[], Iterable[object]] | None = None,
    races: bool = False,
    clocks: bool = False,
) -> Trial:
    """Call a function on the GPU in use, wait for its work, and record what it did.

    The GPU may be idle or busy; the caller decides. An error of work that the function left in the
    queue counts as its own error, and so does the end of a function that calls its work again and
    again. Ctrl-C is raised as usual, when the work is done. Tensors that the function returns are
    copied to the host, and the stream that was current is current again.

    ``make`` returns its arguments, in place of ``arguments``. They are made where races are looked
    for, so a function must also wait for the kernels that write its inputs. Looking for ``races``
    slows each launch on a CUDA GPU, so the trial's times are of no use; on a virtual one it takes
    only real time. Noting ``clocks``, which a virtual GPU alone has, makes the trial several times
    as long.

    >>> import torch, gpulab
    >>> with gpulab.virtual_gpu("H200", first_use=False):
    ...     trial = tried(lambda: torch.zeros(4, device="cuda").tolist())
    >>> trial.value, [call.name for call in trial.waits]
    ([0.0, 0.0, 0.0, 0.0], ['cudaStreamSynchronize'])
    """
    observer = _Observer()
    with observer.watching(races=races, clocks=clocks):
        trial = called(observer.run, function, make or (lambda: arguments))
    return observer.completed(trial)


def first_fitting(rules: Iterable[Rule[_Subject, _Outcome]], subject: _Subject) -> _Outcome | None:
    """Return what the first rule that fits says about a trial; None if none fits.

    >>> rules = ((lambda n: n < 0, "negative"), (lambda n: n > 9, lambda n: f"{n} is too large"))
    >>> [first_fitting(rules, n) for n in (-1, 5, 12)]
    ['negative', None, '12 is too large']
    """
    for fits, outcome in rules:
        if fits(subject):
            return outcome(subject) if callable(outcome) else outcome
    return None


def number_in(value: object) -> float | None:
    """Return a number as a float, also nan and infinity; None if a value is no number.

    >>> import torch
    >>> number_in(2), number_in(torch.tensor(2.5)), number_in(True), number_in("2")
    (2.0, 2.5, None, None)
    """
    # Tensors and arrays of one number; a Decimal is no Real.
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    # True is an int in Python, but nobody means the number 1 by it.
    return (
        None if isinstance(value, bool) or not isinstance(value, Real | Decimal) else float(value)
    )


def pair_in(value: object, names: tuple[str, str] = ("", "")) -> tuple[object, object] | None:
    """Return the parts of a pair: tuple, list, array, tensor or mapping; None for other values.

    ``names`` are the keys of the parts, for a mapping with these keys in another order.

    >>> pair_in([3, 4]), pair_in({"mhz": 5, "s": 6}, ("s", "mhz")), pair_in((1, 2, 3))
    ((3, 4), (6, 5), None)
    """
    if isinstance(value, Mapping):
        parts = [value[name] for name in names if name in value]
        parts = parts if len(parts) == len(names) else list(value.values())
    elif isinstance(value, str | bytes | set | frozenset) or getattr(value, "shape", None) == ():
        return None
    else:
        items: Any = value
        parts = list(items) if hasattr(value, "__len__") else []
    return (parts[0], parts[1]) if len(parts) == len(names) else None


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Yield a counter of the calls of functions of ``torch.cuda`` that wait or read events.

    Its keys are ``"synchronize"``, ``"Stream.synchronize"``, ``"Stream.wait_stream"``,
    ``"Stream.query"``, ``"Event.query"`` and ``"Event.elapsed_time"``. The functions are replaced
    inside the ``with`` block and restored after it.
    """
    import torch

    counts: Counter[str] = Counter()
    stream, event = torch.cuda.Stream, torch.cuda.Event
    # The classes are changed, because the learner may make events at any moment and keep them.
    places: tuple[tuple[Any, str, str], ...] = (
        (torch.cuda, "synchronize", "synchronize"),
        (stream, "synchronize", "Stream.synchronize"),
        (stream, "wait_stream", "Stream.wait_stream"),
        (stream, "query", "Stream.query"),
        (event, "query", "Event.query"),
        (event, "elapsed_time", "Event.elapsed_time"),
        (torch.Event, "elapsed_time", "Event.elapsed_time"),
    )
    with ExitStack() as stack:
        for owner, name, key in places:
            counting = _counting(getattr(owner, name), counts, key)
            # A method that the class inherits is inherited again after the block. The class
            # torch.Event of a CUDA build cannot be changed.
            with suppress(TypeError):
                stack.enter_context(patch.object(owner, name, counting))
        yield counts


@contextmanager
def stream_kept() -> Iterator[None]:
    """Let the stream that is current before the ``with`` block be current after it."""
    import torch

    from gpulab.core.torch_private import current_raw_stream

    stream = current_raw_stream() if torch.cuda.is_initialized() else 0  # type: ignore[no-untyped-call]  # torch's gap
    try:
        yield
    finally:
        if torch.cuda.is_initialized() and current_raw_stream() != stream:  # type: ignore[no-untyped-call]  # torch's gap
            torch.cuda.set_stream(torch.cuda.ExternalStream(stream))  # type: ignore[no-untyped-call]  # torch's gap


def _counting(
    original: Callable[..., object], counts: Counter[str], key: str
) -> Callable[..., object]:
    @wraps(original)
    def counting(*args: object, **kwargs: object) -> object:
        counts[key] += 1
        before = counts.copy()
        try:
            return original(*args, **kwargs)
        finally:
            # Without what the function calls inside: elapsed_time asks both of its events.
            counts.clear()
            counts.update(before)

    return counting


# At most one; a list, because a learner's function may call the work on a thread of its own.
_running: list["_Observer"] = []


class _Observer:
    """Collects what a function does while it is tried."""

    def __init__(self) -> None:
        self._calls: list[WorkCall] = []
        self._counts: Counter[str] = Counter()
        self._queries: Counter[str] = Counter()
        self._session: SimulatorSession | None = None
        self._races: Hazards | None = None
        self._clocks: ClocksRead | None = None
        self._window_ns = (0, 0)

    @contextmanager
    def watching(self, *, races: bool, clocks: bool) -> Iterator[None]:
        """Record what happens in the ``with`` block."""
        from gpulab.tracing.sanitizer import hazards
        from gpulab.virtual import SimulatorSession, watch_clocks

        with ExitStack() as stack:
            in_use = stack.enter_context(device.active())
            if in_use.virtual is not None:
                self._session = stack.enter_context(SimulatorSession(in_use.virtual.machine))
                if clocks:
                    self._clocks = stack.enter_context(watch_clocks())
            if races:
                self._races = stack.enter_context(hazards())
            self._counts = stack.enter_context(counted_calls())
            _running.append(self)
            stack.callback(_running.remove, self)
            yield

    def run(self, function: Callable[..., object], make: Callable[[], Iterable[object]]) -> object:
        """Call the function, and wait for the work that it left in the queue."""
        import torch

        arguments, start_ns = make(), self._now_ns()
        with ExitStack() as stack:
            stack.callback(torch.cuda.synchronize)
            try:
                with stream_kept():
                    value = function(*arguments)
            finally:
                self._window_ns = (start_ns, self._now_ns())
                self._queries = self._counts.copy()
            # Before anything waits, as a caller would read it: if a stream still writes the value
            # and nobody waits for it, that is a race.
            return _on_host(value)

    def note(self, work: WatchedWork, call: Callable[[], object]) -> object:
        """Call a work, and record the call."""
        import torch

        if len(self._calls) >= work.most_calls:
            raise CutOffError(
                f"it called the work {work.most_calls:,} times and had not returned; look for a "
                "loop that never ends"
            )
        timer, is_captured = _ready_made_timer(), torch.cuda.is_current_stream_capturing()
        start_ns = self._now_ns()
        try:
            return call()
        finally:
            self._calls.append(WorkCall(work, timer, is_captured, start_ns, self._now_ns()))

    def completed(self, trial: Trial) -> Trial:
        """Return a trial with everything that was recorded."""
        from gpulab.tracing.profiling import split_by_window

        records = None
        if self._session is not None:
            [records] = split_by_window(self._session, device.current().name, [self._window_ns])
        return replace(
            trial,
            calls=tuple(self._calls),
            asked=self._queries,
            records=records,
            hazards=None if self._races is None else self._races.found,
            clocks=self._clocks,
        )

    def _now_ns(self) -> int:
        return 0 if self._session is None else self._session.now_ns()


def _on_host(value: object) -> object:
    """Return a result with its tensors on the host, because a virtual GPU may end after a run."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict | list | tuple) and len(value) > _MOST_PARTS:
        return value  # it takes long, and no answer has so many parts
    if isinstance(value, dict):
        return {key: _on_host(item) for key, item in value.items()}
    if isinstance(value, list):
        return [*map(_on_host, value)]
    # A named tuple becomes a tuple, because its class takes the parts one by one.
    return tuple(map(_on_host, value)) if isinstance(value, tuple) else value


def _ready_made_timer() -> str:
    """Return the name of a finished timer among the callers; empty if there is none.

    The search ends where the function that is tried was called: what called that does not matter.
    """
    timer = ""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code is not _CALLED:
        module = frame.f_globals.get("__name__", "")
        names = (name for part, name in _READY_MADE.items() if f"{module}.".startswith(f"{part}."))
        timer = next(names, timer)  # the outermost one: that is the one the learner called
        frame = frame.f_back
    return timer


_CALLED: CodeType = called.__code__
