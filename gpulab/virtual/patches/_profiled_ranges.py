"""The ranges of the host in a profile: PyTorch's operators and nodes, on the virtual clock.

PyTorch's own CPU profiler runs beside the program. It knows which operator calls which, the nodes
of autograd and the ranges of the program, and gives them as a list of beginnings and ends. Each
operator that arrives at the virtual GPU leaves a mark in this list, and marks have virtual times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpulab.core.interrupts import contextmanager
from gpulab.core.torch_private import (
    RecordedRange,
    record_ranges,
    start_profiler_list,
    stop_profiler_list,
)
from gpulab.virtual.dispatch import dispatch
from gpulab.virtual.operators import operator_of
from gpulab.virtual.patches._inner_operators import (
    chains_inside,
    is_shown_inside,
    may_launch,
    record_inside,
)
from gpulab.virtual.simulator import Host

_MARK = "gpulab::mark"
# The beginnings of names that no profile shows: ranges of PyTorch around calls of Python, and the
# operators behind record_function.
_HIDDEN = ("PythonDispatchMode", "profiler::")
_ENGINE = "autograd::engine::evaluate_function"
_USER_SCOPE = 7  # RecordScope::USER_SCOPE


@dataclass(slots=True, eq=False)
class ProfiledRange:
    """An operator, a node of autograd or a range of the program."""

    name: str
    scope: int
    outer: "ProfiledRange | None"
    shapes: list[list[int]] = field(default_factory=list)
    flops: int = 0
    sequence_nr: int = -1
    fwd_thread: int = 0
    number: int = 0
    start_ns: int = 0
    end_ns: int = 0
    stack: list[str] = field(default_factory=list)

    @property
    def is_user(self) -> bool:
        """Whether the program made it, with ``record_function``."""
        return self.scope == _USER_SCOPE

    @property
    def is_in_engine(self) -> bool:
        """Whether autograd's engine runs it, on CUDA in a thread of its own."""
        return any(each.name.startswith(_ENGINE) for each in self.outwards())

    def outwards(self) -> "Iterator[ProfiledRange]":
        """Yield this range, the one around it, and so on."""
        each: ProfiledRange | None = self
        while each is not None:
            yield each
            each = each.outer

    def user_range(self) -> "ProfiledRange | None":
        """Return the innermost range of the program around it on the same thread."""
        for each in self.outwards():
            if each.is_user:
                return each
            if each.name.startswith(_ENGINE):
                break
        return None


@dataclass(slots=True, eq=False)
class ProfiledCall:
    """An operator that has arrived at the virtual GPU.

    Attributes
    ----------
    name
        The operator's name; empty for a mark alone.
    start_ns, end_ns
        Its times on the virtual clock.
    moment_ns
        When it began; ``start_ns`` is later if it has no duration and others began then, too.
    stack
        The program's call stack, if it was asked for.
    owner
        The range of the operator.
    launchers
        The ranges that its launches belong to, one after the other; the last one has the rest.
    allocator
        The range that allocates its results.
    """

    name: str
    start_ns: int
    end_ns: int
    moment_ns: int
    stack: list[str] = field(default_factory=list)
    owner: ProfiledRange | None = None
    launchers: list[ProfiledRange] = field(default_factory=list)
    allocator: ProfiledRange | None = None


class HostProfiler:
    """Runs PyTorch's CPU profiler beside a program on the virtual GPU.

    ``read_stack`` returns the program's call stack; None records none.
    """

    def __init__(
        self,
        host: Host,
        *,
        with_shapes: bool,
        with_flops: bool,
        read_stack: Callable[[], list[str]] | None,
    ) -> None:
        self._host = host
        self._with_shapes = with_shapes
        self._with_flops = with_flops
        self._read_stack = read_stack
        self._n_unseen = 0
        self._start_ns = host.now_ns
        self.calls: list[ProfiledCall] = []
        # The operator that runs now.
        self.running: ProfiledCall | None = None

    def start(self) -> None:
        """Start PyTorch's profiler."""
        start_profiler_list(with_shapes=self._with_shapes, with_flops=self._with_flops)

    def stop(self) -> list[ProfiledRange]:
        """Stop it, and return all ranges with virtual times, each before those inside it."""
        reading = _Reading(self.calls)
        for entry in stop_profiler_list():
            reading.take(entry)
        return reading.finish(self._start_ns, self._host.now_ns)

    def observe(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one operator, and leave its mark in PyTorch's list."""
        if self.running is not None or operator_of(func).is_composite:
            # A composite operator comes back as the operators that it calls.
            return dispatch(func, args, kwargs)
        if func.namespace == "profiler":
            # It begins or ends a range of the program, which must not be inside the mark.
            self.mark()
            return dispatch(func, args, kwargs)
        call = self._new_call(func.name().partition(".")[0])
        if self._read_stack is not None:
            call.stack = self._read_stack()
        self.running = call
        with RecordedRange(_MARK), self._unseen():
            record_inside(func, args, kwargs)
            try:
                return dispatch(func, args, kwargs)
            finally:
                call.end_ns = self._host.now_ns
                self.running = None

    def mark(self) -> ProfiledCall:
        """Mark the present moment, and return it as a call without duration."""
        call = self._new_call("")
        with RecordedRange(_MARK):
            pass
        return call

    def _new_call(self, name: str) -> ProfiledCall:
        now_ns = self._host.now_ns
        call = ProfiledCall(name, now_ns, now_ns, now_ns)
        self.calls.append(call)
        return call

    def unseen(
        self, guarded: Callable[[Callable[[], object]], object]
    ) -> Callable[[Callable[[], object]], object]:
        """Return a function that computes values; its operators are none of the program."""

        def compute(work: Callable[[], object]) -> object:
            with self._unseen():
                return guarded(work)

        return compute

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """Let PyTorch's profiler record nothing in the block."""
        self._n_unseen += 1
        record_ranges(False)  # noqa: FBT003 # C++ has no names
        try:
            yield
        finally:
            self._n_unseen -= 1
            record_ranges(not self._n_unseen)


_Boundary = tuple[ProfiledRange, bool]  # a range, and whether it begins here


class _Reading:
    """Reads PyTorch's list, and gives each beginning and end a virtual time.

    Between two operators plain Python has run, which takes no virtual time. So a range begins
    when the first operator inside it does, and ends when the last one does. All these times differ
    by at least 1 ns, because PyTorch nests ranges by their times.
    """

    def __init__(self, calls: list[ProfiledCall]) -> None:
        self._calls = iter(calls)
        self._call: ProfiledCall | None = None
        self._open: list[ProfiledRange] = []
        self._by_handle: dict[int, ProfiledRange | ProfiledCall | None] = {}
        self._ranges: list[ProfiledRange] = []
        self._with_parts: set[ProfiledRange] = set()
        # What begins and ends between two marks, or inside a call.
        self._boundaries: list[_Boundary] = []
        self._parts: list[tuple[list[_Boundary], ProfiledCall | None]] = []
        self._time_ns = 0

    def take(self, entry: Any) -> None:
        """Read the next entry of PyTorch's list."""
        kind, handle = entry.kind(), entry.handle()
        if kind == "push" and entry.name() == _MARK:
            self._by_handle[handle] = self._begin_call(next(self._calls))
        elif kind == "push":
            self._by_handle[handle] = self._begin(entry)
        elif kind == "pop":
            begun = self._by_handle.pop(handle, None)
            if isinstance(begun, ProfiledCall):
                self._end_part(begun)
                self._call = None
            elif begun in self._open:
                self._end(begun)

    def finish(self, start_ns: int, end_ns: int) -> list[ProfiledRange]:
        """Give all ranges their times, and return them."""
        # A range that the program has not ended, ends with the session.
        for each in reversed(self._open.copy()):
            self._end(each)
        self._end_part(None)
        self._time_ns = before_ns = start_ns
        followed_by = [call for _, call in self._parts[1:]]
        for (boundaries, call), following in zip(self._parts, [*followed_by, None], strict=True):
            if call is None:
                after_ns = end_ns if following is None else following.start_ns
                self._place_between(boundaries, before_ns, after_ns)
            else:
                self._place_inside(boundaries, call)
                before_ns = call.end_ns
        for number, each in enumerate(self._ranges, start=1):
            each.number = number
        return self._ranges

    def _begin_call(self, call: ProfiledCall) -> ProfiledCall:
        self._end_part(None)
        self._call = call
        if self._open:
            call.owner = self._open[-1]
            # Autograd also calls operators that PyTorch's profiler does not list.
            if call.name == call.owner.name:
                self._add_inside(call.owner)
            for each in call.owner.outwards():
                each.stack = each.stack or call.stack
        return call

    def _end_part(self, call: ProfiledCall | None) -> None:
        self._parts.append((self._boundaries, call))
        self._boundaries = []

    def _begin(self, entry: Any) -> ProfiledRange | None:
        outer = self._open[-1] if self._open else None
        is_hidden = entry.name().startswith(_HIDDEN)
        if self._call is not None and outer is not None and outer is not self._call.owner:
            # It is inside a part of an operator.
            is_hidden = is_hidden or not is_shown_inside(outer.name)
        if is_hidden:
            return None
        profiled = ProfiledRange(
            entry.name(),
            entry.scope(),
            outer,
            shapes=entry.shapes(),
            flops=entry.flops(),
            sequence_nr=entry.sequence_nr(),
            fwd_thread=entry.fwd_thread_id(),
        )
        self._add(profiled)
        if self._call is not None:
            self._add_inside(profiled)
        return profiled

    def _add(self, profiled: ProfiledRange) -> None:
        self._open.append(profiled)
        self._ranges.append(profiled)
        self._boundaries.append((profiled, True))
        call = self._call
        if call is None:
            return
        if profiled.name.startswith("aten::empty") and call.allocator is None:
            call.allocator = profiled
        if profiled.outer is not None:
            self._with_parts.add(profiled.outer)

    def _end(self, profiled: ProfiledRange) -> None:
        self._open.remove(profiled)
        self._boundaries.append((profiled, False))
        is_alone = profiled not in self._with_parts and may_launch(profiled.name)
        if self._call is not None and is_alone:
            self._call.launchers.append(profiled)

    def _add_inside(self, profiled: ProfiledRange) -> None:
        """Add what CUDA's kernel of an operator calls."""
        for chain in chains_inside(
            profiled.name, "" if profiled.outer is None else profiled.outer.name
        ):
            if not chain and self._call is not None:
                self._call.launchers.append(profiled)
            inner: list[ProfiledRange] = []
            for name in chain:
                inner.append(ProfiledRange(name, 0, inner[-1] if inner else profiled))
                self._add(inner[-1])
            for each in reversed(inner):
                self._end(each)

    def _place_between(self, boundaries: list[_Boundary], before_ns: int, after_ns: int) -> None:
        """Place what is between two calls: ends after the one, beginnings before the other."""
        is_early = True
        for n_done, (profiled, begins) in enumerate(boundaries):
            # The call before a range of the program is that of record_function.
            is_early = is_early and (profiled.is_user or not begins)
            late_ns = after_ns - (len(boundaries) - n_done)
            self._place(profiled, before_ns if is_early else late_ns, begins=begins)

    def _place_inside(self, boundaries: list[_Boundary], call: ProfiledCall) -> None:
        """Place what is inside a call: those that launch share its time."""
        if call.end_ns == call.start_ns:
            self._time_ns = call.start_ns = call.end_ns = max(self._time_ns + 1, call.start_ns)
        self._time_ns = max(self._time_ns, call.start_ns)
        n_launched, n_launchers = 0, len(call.launchers)
        for n_done, (profiled, begins) in enumerate(boundaries):
            if not begins and profiled in call.launchers:
                n_launched += 1
            wanted_ns = call.start_ns
            if n_launched:
                wanted_ns += (call.end_ns - call.start_ns) * n_launched // n_launchers
                wanted_ns = min(wanted_ns, call.end_ns - (len(boundaries) - n_done))
            self._place(profiled, wanted_ns, begins=begins)
        self._time_ns = max(self._time_ns, call.end_ns)

    def _place(self, profiled: ProfiledRange, wanted_ns: int, *, begins: bool) -> None:
        self._time_ns = max(self._time_ns + 1, wanted_ns)
        if begins:
            profiled.start_ns = self._time_ns
        else:
            profiled.end_ns = self._time_ns
