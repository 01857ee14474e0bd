"""``torch.profiler`` and ``torch.autograd.profiler``, with the records of the virtual GPU.

PyTorch's Python classes are unchanged, with their schedules, tables, averages and handlers. This
module replaces the C++ functions below them, which start a session, end it and return its events.
"""

import sys
import traceback
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType, ProfilerActivity  # type: ignore[attr-defined] # torch's gap

import gpulab
from gpulab.activity import ActivityRecord, HostCall
from gpulab.errors import NotModelledError
from gpulab.interrupts import Undo
from gpulab.torch_private import autograd_node
from gpulab.virtual._activity_session import SimulatorSession
from gpulab.virtual._replaced import Replaced, put_back
from gpulab.virtual.dispatch import dispatch, observing
from gpulab.virtual.patches._profiler_events import MEMORY, ProfilerEvent, ProfilerResult
from gpulab.virtual.simulator import Machine

# What CUPTI adds to each launch: on the host of an H200 one took 14.5 µs instead of 9.9 µs.
_LAUNCH_NS = 4_600
# The rest of the time in cudaLaunchKernel: with CUPTI the call took 5.8 to 6.3 µs on that host.
_LAUNCH_CALL_NS = 1_400
_COUNTING = ("hand_out", "release")
_ENTER, _EXIT = "profiler::_record_function_enter_new", "profiler::_record_function_exit"
# The state in which PyTorch records the device without asking for ProfilerActivity.CUDA.
_FALLBACK = "KINETO_GPU_FALLBACK"
_KINDS = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
_COPIES = {
    "copy in": "Memcpy HtoD",
    "copy out": "Memcpy DtoH",
    "copy between GPUs": "Memcpy PtoP",
}
_OWN_FILES = str(Path(gpulab.__file__).parent)
_USER_SCOPE = 7  # RecordScope::USER_SCOPE


@dataclass(frozen=True, slots=True)
class ProfilerConfig:
    """Replaces PyTorch's C++ class of this name, whose attributes Python cannot read."""

    state: Any
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: Any
    trace_id: str = ""


@dataclass(slots=True, eq=False)
class ProfilerRange:
    """An operator, a node of autograd or a range of the program, on the host's clock."""

    name: str
    start_ns: int
    end_ns: int = 0
    is_user: bool = False
    node: object = None
    shapes: list[list[int]] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    flops: int = 0
    number: int = 0
    depth: int = 0


def _apart(start_ns: int, end_ns: int, depth: int) -> tuple[int, int]:
    """Return start and end of an event, moved inwards by 1 ns for each range around it.

    Plain Python takes no virtual time, so a range and the first operator in it begin at the same
    time. PyTorch nests events by their times and could not tell which one is outside.
    """
    start_ns = min(start_ns + depth, end_ns)
    return start_ns, max(start_ns, end_ns - depth)


class ProfilerSession:
    """One profiler session, which records operators and ranges of the host, and the devices."""

    def __init__(self, machine: Machine, config: ProfilerConfig, activities: set[Any]) -> None:
        self._machine = machine
        self._config = config
        self._has_host = ProfilerActivity.CPU in activities
        self._has_device = ProfilerActivity.CUDA in activities or config.state.name == _FALLBACK
        self._records = SimulatorSession(machine, launch_ns=_LAUNCH_NS if self._has_device else 0)
        self._ranges: list[ProfilerRange] = []
        self._open: list[ProfilerRange] = []
        self._memory: list[ProfilerEvent] = []
        self._watching = ExitStack()
        self._start_ns = machine.host.now_ns

    def begin(self) -> None:
        """Begin to record."""
        try:
            self._watching.enter_context(self._records)
            self._watching.enter_context(observing(self._observe))
            if self._config.profile_memory:
                for gpu in self._machine.gpus:
                    self._watch_memory(gpu.index, gpu.memory.usage)
        except BaseException:
            self.abandon()
            raise

    def end(self) -> ProfilerResult:
        """Stop recording, and return the events."""
        self.abandon()
        # A range that the program has not ended, ends with the session.
        if self._open:
            self._close(self._open[0])
        records, calls = self._records.read()
        # Of two events that begin together the longer one is first, as it contains the other.
        events = sorted(
            self._events(records, calls), key=lambda event: (event.start_ns(), -event.end_ns())
        )
        return ProfilerResult(self._machine.spec.driver_name, self._start_ns, events)

    def abandon(self) -> None:
        """Stop recording."""
        self._watching.close()

    def _observe(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one operator, and record its start and end."""
        name = func.name().partition(".")[0]
        self._enter_node(autograd_node())
        if name == _ENTER:
            self._push(ProfilerRange(args[0], self._machine.host.now_ns, is_user=True))
        elif name == _EXIT:
            innermost = next((each for each in reversed(self._open) if each.is_user), None)
            if innermost is not None:
                self._close(innermost)
        else:
            return self._operation(name, func, args, kwargs)
        return dispatch(func, args, kwargs)

    def _operation(self, name: str, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        seen = ProfilerRange(name, self._machine.host.now_ns)
        if self._config.report_input_shapes:
            seen.shapes = [list(arg.shape) if torch.is_tensor(arg) else [] for arg in args]
        if self._config.with_stack:
            seen.stack = _stack()
        self._push(seen)
        try:
            result = dispatch(func, args, kwargs)
        finally:
            self._close(seen)
            # _enter_node() ends the range of a node at the end of the node's last operator.
            for outer in self._open:
                outer.end_ns = seen.end_ns
        if self._config.with_flops:
            seen.flops = _flops(func, args, kwargs, result)
        return result

    def _enter_node(self, node: Any) -> None:
        """Open a range around all operators of one autograd node, and close the one before."""
        inside = next((each for each in reversed(self._open) if each.node is not None), None)
        if inside is not None and inside.node is not node:
            last_ns = inside.end_ns
            self._close(inside)
            # Not now, which may be much later than the last operator.
            inside.end_ns = last_ns
        if node is not None and (inside is None or inside.node is not node):
            self._push(ProfilerRange(node.name(), self._machine.host.now_ns, node=node))

    def _push(self, seen: ProfilerRange) -> None:
        self._open.append(seen)
        self._ranges.append(seen)
        seen.depth = len(self._open)

    def _close(self, seen: ProfilerRange) -> None:
        """End a range, and all ranges inside it that are still open."""
        while self._open:
            last = self._open.pop()
            last.end_ns = self._machine.host.now_ns
            if last is seen:
                return

    def _watch_memory(self, index: int, usage: Any) -> None:
        """Record each change of a device's memory in use."""
        # The methods are replaced on this object and not on its class, so that the allocator is
        # no slower without a profiler.
        for name in _COUNTING:
            own = vars(usage).get(name)
            self._watching.callback(put_back, usage, name, own)
            vars(usage)[name] = self._counted(index, usage, getattr(usage, name))

    def _counted(self, index: int, usage: Any, count: Callable[..., None]) -> Callable[..., None]:
        def counted(*args: int) -> None:
            before = usage.allocated_bytes.total
            count(*args)
            now_ns = self._machine.host.now_ns
            # Inside the innermost range after _apart() has moved its start.
            if self._open:
                now_ns = max(now_ns, self._open[-1].start_ns + self._open[-1].depth)
            event = ProfilerEvent(
                MEMORY,
                now_ns,
                now_ns,
                "cpu_instant_event",
                correlation_id=0,
                device_type=DeviceType.CUDA,
                device_index=index,
                nbytes=usage.allocated_bytes.total - before,
            )
            self._memory.append(event)

        return counted

    def _events(
        self, records: list[ActivityRecord], calls: list[HostCall]
    ) -> Iterator[ProfilerEvent]:
        # Calls and ranges share one sequence of numbers, because PyTorch uses the numbers of both
        # to find what launched a kernel.
        n_calls = max((call.correlation for call in calls), default=0)
        for number, seen in enumerate(self._ranges, start=n_calls + 1):
            seen.number = number
        callers = _callers(self._ranges, calls)
        if self._has_host:
            yield from map(_of_range, self._ranges)
        if self._has_device:
            for call in calls:
                yield _of_call(call, callers[call.correlation])
            for record in records:
                caller = callers.get(record.correlation or 0)
                yield _of_record(record, 0 if caller is None else caller.number)
            for seen in self._ranges:
                if seen.is_user:
                    yield from _on_device(seen, records)
        yield from self._memory


class ProfilerBackend:
    """Replaces the C++ functions of PyTorch's profilers, for one virtual machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._session: ProfilerSession | None = None

    def prepare(self, *_args: object, **_kwargs: object) -> None:
        """Check that no session is open; a schedule's warm-up needs nothing else here."""
        if self._session is not None:
            raise RuntimeError("Profiler is already enabled on this thread")

    def enable(self, config: ProfilerConfig, activities: set[Any], *_scopes: object) -> None:
        """Begin a session."""
        self.prepare()
        session = ProfilerSession(self._machine, config, activities)
        session.begin()
        self._session = session

    def disable(self) -> ProfilerResult:
        """End the session."""
        session, self._session = self._session, None
        if session is None:
            raise RuntimeError("Can't disable Kineto profiler when it's not running")
        return session.end()

    def toggle(self, _enabled: object, _activities: object) -> None:
        """Raise NotModelledError: what is recorded cannot change during a session."""
        raise NotModelledError(
            "the virtual GPU has no model of toggle_collection_dynamic(); profile the two parts "
            "one after the other, or use a CUDA GPU"
        )

    def abandon(self) -> None:
        """End a session that the program has left open."""
        session, self._session = self._session, None
        if session is not None:
            session.abandon()


def install(machine: Machine, replaced: Replaced, undo: Undo) -> None:
    """Let a machine answer for PyTorch's profilers, until ``undo`` is closed.

    A session that the program leaves open ends then, too.
    """
    backend = ProfilerBackend(machine)
    undo.callback(backend.abandon)
    names = {
        "ProfilerConfig": ProfilerConfig,
        "_prepare_profiler": backend.prepare,
        "_enable_profiler": backend.enable,
        "_disable_profiler": backend.disable,
        "_toggle_collection_dynamic": backend.toggle,
        "_supported_activities": _supported_activities,
        "kineto_available": lambda: True,
    }
    module = torch.autograd.profiler
    # Not every version of torch has all of these names.
    replaced.put(module, {name: new for name, new in names.items() if name in vars(module)})
    shared = {
        "_supported_activities": _supported_activities,
        "_add_metadata_json": lambda _key, _value: None,
    }
    replaced.put(torch.autograd, shared)
    # The base class of profile (_KinetoProfile), which programs may also use by itself.
    profile: Any = torch.profiler.profile.__mro__[1]
    replaced.put(profile, {"prepare_trace": _without_the_compiler(profile.prepare_trace)})


def _supported_activities() -> set[Any]:
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA}


def _without_the_compiler(prepare: Callable[..., None]) -> Callable[..., None]:
    """Return a ``prepare_trace`` that does not import PyTorch's compiler."""
    # torch 2.13 imports torch._inductor there, only to read whether it makes CUDA graphs. That
    # takes three seconds. It does so if torch has the attribute _inductor, which is lazy.
    lazy = vars(torch).get("_lazy_modules", set())

    @wraps(prepare)
    def prepared(profile: Any) -> None:
        is_left_out = "torch._inductor" not in sys.modules and "_inductor" in lazy
        if is_left_out:
            lazy.discard("_inductor")
        try:
            prepare(profile)
        finally:
            if is_left_out:
                lazy.add("_inductor")

    return prepared


def _callers(
    ranges: Sequence[ProfilerRange], calls: Sequence[HostCall]
) -> dict[int, ProfilerRange | None]:
    """Return the innermost range around each call of the host, by the number of the call."""
    # The sort is stable, so of two ranges with the same start the outer one comes first.
    by_start = sorted(ranges, key=lambda seen: seen.start_ns)
    starts = [seen.start_ns for seen in by_start]
    found = {}
    for call in calls:
        before = reversed(by_start[: bisect_right(starts, call.start_ns)])
        around = (seen for seen in before if seen.end_ns >= call.end_ns)
        found[call.correlation] = next(around, None)
    return found


def _of_range(seen: ProfilerRange) -> ProfilerEvent:
    return ProfilerEvent(
        seen.name,
        *_apart(seen.start_ns, seen.end_ns, seen.depth),
        "user_annotation" if seen.is_user else "cpu_op",
        correlation_id=seen.number,
        is_user_annotation=seen.is_user,
        scope=_USER_SCOPE if seen.is_user else 0,
        shapes=seen.shapes,
        stack=seen.stack,
        flops=seen.flops,
    )


def _of_call(call: HostCall, caller: ProfilerRange | None) -> ProfilerEvent:
    start_ns = call.start_ns
    # The simulator's call of a launch covers the whole operator; the profiler's only its end.
    if call.kind == "launch":
        start_ns = max(start_ns, call.end_ns - _LAUNCH_NS - _LAUNCH_CALL_NS)
    return ProfilerEvent(
        call.name,
        *_apart(start_ns, call.end_ns, 1 if caller is None else caller.depth + 1),
        "cuda_runtime",
        correlation_id=call.correlation,
        linked_correlation_id=0 if caller is None else caller.number,
    )


def _of_record(record: ActivityRecord, caller: int) -> ProfilerEvent:
    return ProfilerEvent(
        _COPIES.get(record.name, record.name),
        record.start_ns,
        record.end_ns,
        _KINDS[record.kind],
        correlation_id=record.correlation,
        linked_correlation_id=caller,
        device_index=record.device,
        stream=record.stream,
    )


def _on_device(seen: ProfilerRange, records: Sequence[ActivityRecord]) -> Iterator[ProfilerEvent]:
    """Yield a range for each stream, from its first kernel or copy to its last."""
    by_stream: dict[tuple[int, int], list[ActivityRecord]] = {}
    for record in records:
        launch_ns = record.launch_start_ns
        if launch_ns is not None and seen.start_ns <= launch_ns <= seen.end_ns:
            by_stream.setdefault((record.device, record.stream), []).append(record)
    for (device, stream), inside in sorted(by_stream.items()):
        yield ProfilerEvent(
            seen.name,
            min(record.start_ns for record in inside),
            max(record.end_ns for record in inside),
            "gpu_user_annotation",
            correlation_id=seen.number,
            linked_correlation_id=seen.number,
            is_user_annotation=True,
            device_index=device,
            stream=stream,
        )


def _flops(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """Return the FLOPs of a call by PyTorch's formula for the operator; 0 without a formula."""
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(func.overloadpacket)
    return 0 if formula is None else int(formula(*args, **kwargs, out_val=result))


def _stack() -> list[str]:
    """Return the program's call stack without lines of gpulab, the innermost line first."""
    frames = traceback.extract_stack()
    shown = [each for each in frames if not each.filename.startswith(_OWN_FILES)]
    return [f"{each.filename}({each.lineno}): {each.name}" for each in reversed(shown)]
