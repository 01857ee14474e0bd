"""``torch.profiler`` and ``torch.autograd.profiler``, with the records of the virtual GPU.

PyTorch's Python classes are unchanged, with their schedules, tables, averages and handlers. This
module replaces the C++ functions below them, which start a session, end it and return its events.
"""

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import wraps
from itertools import starmap
from pathlib import Path
from typing import Any

import torch
from torch.autograd import DeviceType, ProfilerActivity  # type: ignore[attr-defined] # torch's gap

import gpulab
from gpulab.core.interrupts import Undo
from gpulab.happens_before.activity import ActivityRecord, HostCall
from gpulab.virtual._activity_session import BUFFER_REQUEST, SimulatorSession
from gpulab.virtual._replaced import Replaced, put_back
from gpulab.virtual.dispatch import observing
from gpulab.virtual.patches._profiled_launches import Launches
from gpulab.virtual.patches._profiled_ranges import HostProfiler, ProfiledCall, ProfiledRange
from gpulab.virtual.patches._profiler_events import MEMORY, ProfilerEvent, ProfilerResult
from gpulab.virtual.simulator import Machine

# What CUPTI adds to each launch: on the host of an H200 one took 14.5 µs instead of 9.9 µs.
_LAUNCH_NS = 4_600
# The rest of the time in cudaLaunchKernel: with CUPTI the call took 5.8 to 6.3 µs on that host.
_LAUNCH_CALL_NS = 1_400
_COUNTING = ("hand_out", "release")
# PyTorch asks before these whether the stream is being captured. On the host of an H100 this takes
# 1 µs in a profile.
_ASKS_FOR_CAPTURE = {"cudaEventRecordWithFlags", "cudaStreamWaitEvent", "cudaGraphLaunch"}
_CAPTURE_QUESTION_NS = 1_000
_THREAD, _ENGINE_THREAD = 1, 2
# In a profile without warm-up CUPTI takes its first buffer during the first launch. On the host of
# an H100 that took 2.3 to 2.7 ms.
_BUFFER_NS = 2_500_000
# The state in which PyTorch records the device without asking for ProfilerActivity.CUDA.
_FALLBACK = "KINETO_GPU_FALLBACK"
_KINDS = {"kernel": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset"}
# CUPTI's names of copies.
_COPIES = {
    "copy in": "Memcpy HtoD ({} -> Device)",
    "copy out": "Memcpy DtoH (Device -> {})",
    "copy between GPUs": "Memcpy PtoP (Device -> Device)",
}
_OWN_FILES = str(Path(gpulab.__file__).parent)


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


class ProfilerSession:
    """One profiler session, which records operators and ranges of the host, and the devices."""

    def __init__(
        self, machine: Machine, config: ProfilerConfig, activities: set[Any], *, is_warm: bool
    ) -> None:
        self._machine = machine
        self._has_host = ProfilerActivity.CPU in activities
        self._has_device = ProfilerActivity.CUDA in activities or config.state.name == _FALLBACK
        self._has_memory = config.profile_memory
        self._records = SimulatorSession(
            machine,
            launch_ns=_LAUNCH_NS if self._has_device else 0,
            buffer_ns=_BUFFER_NS if self._has_device and not is_warm else 0,
        )
        self._host = HostProfiler(
            machine.host,
            with_shapes=config.report_input_shapes,
            with_flops=config.with_flops,
            read_stack=_stack if config.with_stack else None,
        )
        self._memory: list[tuple[int, int, ProfiledCall]] = []
        self._watching = ExitStack()
        self._start_ns = machine.host.now_ns

    def begin(self) -> None:
        """Begin to record."""
        self._host.start()
        try:
            self._watching.enter_context(self._records)
            self._watching.enter_context(observing(self._host.observe))
            values = self._machine.values
            self._replace(values, "guarded", self._host.unseen(values.guarded))
            if self._has_memory:
                for gpu in self._machine.gpus:
                    self._watch_memory(gpu.index, gpu.memory.usage)
        except BaseException:
            self.abandon()
            raise

    def end(self) -> ProfilerResult:
        """Stop recording, and return the events."""
        self._watching.close()
        ranges = self._host.stop()
        records, calls = self._records.read()
        # If two events begin together, the longer one is first, because it contains the other.
        events = sorted(
            self._events(ranges, records, calls),
            key=lambda event: (event.start_ns(), -event.end_ns()),
        )
        return ProfilerResult(self._machine.spec.driver_name, self._start_ns, events)

    def abandon(self) -> None:
        """Stop recording."""
        self._watching.close()
        self._host.stop()

    def _watch_memory(self, index: int, usage: Any) -> None:
        """Record each change of a device's memory in use."""
        # The methods are replaced on this object and not on its class, so that the allocator is
        # no slower without a profiler.
        for name in _COUNTING:
            self._replace(usage, name, self._counted(index, usage, getattr(usage, name)))

    def _replace(self, owner: Any, name: str, function: Callable[..., object]) -> None:
        self._watching.callback(put_back, owner, name, vars(owner).get(name))
        vars(owner)[name] = function

    def _counted(self, index: int, usage: Any, count: Callable[..., None]) -> Callable[..., None]:
        def counted(*args: int, **options: bool) -> None:
            before = usage.allocated_bytes.total
            count(*args, **options)
            size_bytes = usage.allocated_bytes.total - before
            # Outside an operator memory is freed; its mark shows between which operators.
            self._memory.append((index, size_bytes, self._host.running or self._host.mark()))

        return counted

    def _events(
        self,
        ranges: Sequence[ProfiledRange],
        records: Sequence[ActivityRecord],
        calls: Sequence[HostCall],
    ) -> Iterator[ProfilerEvent]:
        launches = Launches(ranges, self._host.calls, calls)
        if self._has_host:
            yield from map(_of_range, ranges)
        # PyTorch counts the calls of CUDA among the activities of the host.
        for call in calls:
            yield from _of_call(call, launches, len(ranges))
        if self._has_device:
            for record in records:
                name = record.name
                if name in _COPIES:
                    is_pageable = record.correlation in self._records.pageable
                    name = _COPIES[name].format("Pageable" if is_pageable else "Pinned")
                yield _of_record(record, name, launches.launcher_of(record), len(ranges))
            if self._has_host:
                yield from _on_device(records, launches)
        yield from starmap(_of_memory, self._memory)


class ProfilerBackend:
    """Replaces the C++ functions of PyTorch's profilers, for one virtual machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._session: ProfilerSession | None = None
        # The last work of each stream when the warm-up began.
        self._before: list[object] | None = None

    def prepare(self, *_args: object, **_kwargs: object) -> None:
        """Check that no session is open, and begin the warm-up."""
        if self._session is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        self._before = self._last_work()

    def enable(self, config: ProfilerConfig, activities: set[Any], *_scopes: object) -> None:
        """Begin a session."""
        before = self._before
        self.prepare()
        # Without a schedule PyTorch prepares and begins at once.
        is_warm = before is not None and before != self._before
        self._before = None
        session = ProfilerSession(self._machine, config, activities, is_warm=is_warm)
        session.begin()
        self._session = session

    def _last_work(self) -> list[object]:
        return [stream.last for gpu in self._machine.gpus for stream in gpu.device.streams]

    def disable(self) -> ProfilerResult:
        """End the session."""
        session, self._session = self._session, None
        if session is None:
            raise RuntimeError("Can't disable Kineto profiler when it's not running")
        return session.end()

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


def _of_range(profiled: ProfiledRange) -> ProfilerEvent:
    # PyTorch nests events of one thread, and on CUDA the engine has a thread of its own.
    thread = _ENGINE_THREAD if profiled.is_in_engine else _THREAD
    return ProfilerEvent(
        profiled.name,
        profiled.start_ns,
        profiled.end_ns,
        "user_annotation" if profiled.is_user else "cpu_op",
        correlation_id=profiled.number,
        external_id=profiled.number,  # from torch 2.15 on, only events with one get their kernels
        is_user_annotation=profiled.is_user,
        scope=profiled.scope,
        shapes=profiled.shapes,
        stack=profiled.stack,
        flops=profiled.flops,
        sequence_nr=profiled.sequence_nr,
        fwd_thread_id=profiled.fwd_thread,
        start_thread_id=thread,
        end_thread_id=thread,
    )


def _of_call(call: HostCall, launches: Launches, n_ranges: int) -> Iterator[ProfilerEvent]:
    around = launches.range_of(call)
    start_ns, end_ns = launches.start_of(call), call.end_ns
    # The simulator's call of a launch covers the whole operator; the profiler's only its end.
    if call.kind == "launch":
        start_ns = max(start_ns, end_ns - _LAUNCH_NS - _LAUNCH_CALL_NS)
    thread = _THREAD
    if around is not None:
        start_ns = max(min(start_ns, around.end_ns - 1), around.start_ns + 1)
        end_ns = max(min(end_ns, around.end_ns - 1), start_ns)
        thread = _ENGINE_THREAD if around.is_in_engine else _THREAD
    is_host_copy = around is not None and around.name == "aten::copy_"
    if call.name in _ASKS_FOR_CAPTURE or (call.name == "cudaMemcpyAsync" and is_host_copy):
        asked_ns = start_ns + min(_CAPTURE_QUESTION_NS, (end_ns - start_ns) // 2)
        yield _runtime_event("cudaStreamIsCapturing", start_ns, asked_ns, thread)
        start_ns = asked_ns
    yield _runtime_event(
        call.name,
        start_ns,
        end_ns,
        thread,
        # Calls and ranges share one sequence of numbers, because PyTorch uses the numbers of both
        # to find what launched a kernel.
        correlation_id=n_ranges + call.correlation,
    )


def _runtime_event(
    name: str, start_ns: int, end_ns: int, thread: int, correlation_id: int = 0
) -> ProfilerEvent:
    return ProfilerEvent(
        name,
        start_ns,
        end_ns,
        "overhead" if name == BUFFER_REQUEST else "cuda_runtime",
        correlation_id=correlation_id,
        start_thread_id=thread,
        end_thread_id=thread,
    )


def _of_record(
    record: ActivityRecord, name: str, launcher: ProfiledRange | None, n_ranges: int
) -> ProfilerEvent:
    # Work without an operator, such as a graph, belongs to no range of the host, as on CUDA.
    is_of_operator = launcher is not None and not launcher.is_user
    return ProfilerEvent(
        name,
        record.start_ns,
        record.end_ns,
        _KINDS[record.kind],
        correlation_id=n_ranges + (record.correlation or 0),
        linked_correlation_id=launcher.number if launcher is not None and is_of_operator else 0,
        device_index=record.device,
        stream=record.stream,
    )


def _on_device(records: Sequence[ActivityRecord], launches: Launches) -> Iterator[ProfilerEvent]:
    """Yield each range of the program for each stream, from its first kernel or copy to its last.

    As on CUDA, a kernel counts for the innermost range around its launch.
    """
    inside: dict[tuple[int, int, int], tuple[ProfiledRange, list[ActivityRecord]]] = {}
    for record in records:
        launcher = launches.launcher_of(record)
        user = None if launcher is None else launcher.user_range()
        if user is not None:
            key = user.number, record.device, record.stream
            inside.setdefault(key, (user, []))[1].append(record)
    for (_, device, stream), (user, work) in sorted(inside.items(), key=lambda item: item[0]):
        yield ProfilerEvent(
            user.name,
            min(record.start_ns for record in work),
            max(record.end_ns for record in work),
            "gpu_user_annotation",
            # Not linked to the range of the host: PyTorch would count it there as a kernel.
            correlation_id=user.number,
            is_user_annotation=True,
            device_index=device,
            stream=stream,
        )


def _of_memory(index: int, size_bytes: int, call: ProfiledCall) -> ProfilerEvent:
    time_ns = call.end_ns if call.allocator is None else call.allocator.start_ns
    return ProfilerEvent(
        MEMORY,
        time_ns,
        time_ns,
        "cpu_instant_event",
        correlation_id=0,
        device_type=DeviceType.CUDA,
        device_index=index,
        nbytes=size_bytes,
    )


def _stack() -> list[str]:
    """Return the functions of the program around a call, without those of gpulab, innermost first.

    The line is that at which a function begins, as in PyTorch's own records.
    """
    codes = (frame.f_code for frame, _ in traceback.walk_stack(None))
    return [
        f"{code.co_filename}({code.co_firstlineno}): {code.co_name}"
        for code in codes
        if not code.co_filename.startswith(_OWN_FILES)
    ]
