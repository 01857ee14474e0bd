"""Run the calls of a program on the simulator of the virtual GPU, without torch tensors."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpulab.core.errors import VirtualGpuError
from gpulab.happens_before import Checker, MemoryAccess, Snapshot, extent
from gpulab.views.machine._program import MachineProgram, ProgramOperation
from gpulab.virtual import (
    STAGED_BYTES,
    Capture,
    FixedDuration,
    Graph,
    HostCosts,
    Kind,
    Machine,
    SimulatedStream,
    StreamTask,
    ValueLimits,
    copied_bytes,
)

_NO_VALUES = ValueLimits(0, 0.0, 0)  # the tasks have durations, but compute nothing
_KINDS = {"copy in": Kind.COPY_IN, "copy out": Kind.COPY_OUT}
_ALL = extent((1,), (1,), 0, 1)  # every access covers the whole buffer, as one byte
_US = 1e3  # nanoseconds


class TaskOfCall(NamedTuple):
    """A task on the GPU, with the call that launched it.

    The operation has an index in the program, and ``turn`` counts the repetitions from 0. The kind
    is that of the operation; a graph's tasks are kernels.
    """

    operation_index: int
    turn: int
    kind: str
    stream: int
    called_ns: int
    task: StreamTask


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A call of the host, in microseconds from the start of the program.

    ``place`` is the index of its operation, and ``turn`` counts the repetitions from 0. With
    ``is_queue_full`` it waited because the launch queue was full.
    """

    place: int
    turn: int
    start_us: float
    end_us: float
    waited_us: float
    is_queue_full: bool
    is_stuck: bool = False


class Runner:
    """Runs a program on a simulated machine, call by call.

    It keeps the tasks and calls so far, the last record of each event, the host's time at each
    reading of the clock, and a checker for races.
    """

    def __init__(self, program: MachineProgram, *, as_drawn: bool = False) -> None:
        self.program = program
        self._work = program.work  # computed once, because a loop runs it up to 1,000 times
        # A warm machine: no first call creates a context or loads a library.
        self.machine = Machine(program.spec, _NO_VALUES, first_use=False)
        self.machine.host.costs = replace(HostCosts(), queue_depth=program.queue_depth)
        device = self.machine.gpu.device
        # Stream 0 of every device exists from the start: it is the default stream.
        self.streams = [device.streams[0]]
        self.streams += [device.add_stream() for _ in range(1, program.n_streams)]
        self.tasks: list[TaskOfCall] = []
        self.calls: list[PlayedCall] = []
        self.checker = Checker()
        self.recorded: dict[str, tuple[StreamTask, Snapshot]] = {}
        self.clock_ns: list[int] = []
        self._graphs: dict[int, Graph] = {}
        self._drawn = self._records_as_drawn() if as_drawn else {}

    def run(self, calls: tuple[tuple[int, int], ...]) -> None:
        """Make calls of the program, given by index and repetition, one after the other."""
        for index, turn in calls:
            self.call(index, turn)

    def work(self) -> None:
        """Make the calls of the work once, without clocks, sleeps and timing events."""
        for index in self._work:
            self.call(index, 0)

    def call(self, index: int, turn: int) -> None:
        """Make one call of the program and append it to ``calls``."""
        operation = self.program.operations[index]
        host = self.machine.host
        # The GPU first runs up to the host's time, or the queue would look fuller than it is.
        host.catch_up()
        start_ns = host.now_ns
        is_full = operation.runs_on_stream and self._is_full()
        called_ns = getattr(self, f"_{operation.kind.replace(' ', '_')}")(index, turn, operation)
        waited_ns = max(0, host.now_ns - start_ns - called_ns)
        # A queue that was full when the call began may have room by the time of the launch.
        is_full = is_full and waited_ns > 0
        times_us = (start_ns / _US, host.now_ns / _US, waited_ns / _US)
        self.calls.append(PlayedCall(index, turn, *times_us, is_full))

    def mark(self, stream: SimulatedStream | None = None) -> StreamTask:
        """Record an event of a timing method, on the default stream if no other is given."""
        cost_ns = self.machine.host.costs.event_record_ns
        return self.machine.mark(stream or self.streams[0], cost_ns)

    def sleep(self, duration_ns: int) -> None:
        """Launch a kernel that only waits, on the default stream."""
        # Like torch.cuda._sleep it needs one multiprocessor, so other streams can run beside it.
        task = self._task(Kind.KERNEL, self.streams[0], "sleep", duration_ns, n_sms=1)
        self.machine.launch(task, self.machine.host.costs.sleep_launch_ns)

    def synchronize(self) -> None:
        """Wait for the whole GPU."""
        self.machine.wait_for_gpu(self.machine.gpu)

    def settle(self) -> int:
        """Run the GPU until everything that can finish is done, and return that time in ns."""
        queue = self.machine.gpu.device.event_queue
        tasks = [each.task for each in self.tasks]
        with suppress(VirtualGpuError):  # raised when streams wait for one another forever
            queue.run_until(lambda: all(task.is_done for task in tasks))
        return max(queue.now_ns, self.machine.host.now_ns)

    def _is_full(self) -> bool:
        return self.machine.gpu.device.n_pending >= self.program.queue_depth

    # The next methods are called by the name of the operation. Each makes one call and returns the
    # host's time for it in ns, without waiting.

    def _kernel(self, index: int, turn: int, operation: ProgramOperation) -> int:
        host_ns = round(self.program.launch_us * _US)
        stream, n_sms = self.streams[operation.stream], self.program.spec.n_sms
        task = self._task(Kind.KERNEL, stream, "kernel", self._ns(operation), n_sms=n_sms)
        self._launch(index, turn, operation, task, host_ns)
        self._note(index, operation, writes=True)
        return host_ns

    def _copy_in(self, index: int, turn: int, operation: ProgramOperation) -> int:
        host_ns = self.machine.host.costs.copy_launch_ns
        stream = self.streams[operation.stream]
        task = self._task(_KINDS[operation.kind], stream, operation.kind, self._ns(operation))
        self._refuse_pageable(operation)
        self._launch(index, turn, operation, task, host_ns)
        # A copy in writes the buffer, a copy out reads it.
        self._note(index, operation, writes=operation.kind == "copy in")
        if self._waits(operation):
            self.machine.host.wait(task)
            self.checker.host_wait_stream((0, operation.stream))
        return host_ns

    _copy_out = _copy_in

    def _graph(self, index: int, turn: int, operation: ProgramOperation) -> int:
        self.machine.require_no_capture()  # PyTorch refuses a replay inside a capture
        host, stream = self.machine.host, self.streams[operation.stream]
        # Captured once, at the first replay. A capture costs the simulated host nothing here, just
        # as a program would capture before its timed part.
        if index not in self._graphs:
            self._graphs[index] = self._captured(stream, operation)
        # By index and not by content: two equal graphs of a program are two graphs for CUDA.
        graph = self._graphs[index]
        for _, task in graph.launch(host, stream):
            entry = TaskOfCall(index, turn, "kernel", operation.stream, host.now_ns, task)
            self.tasks.append(entry)
        self._note(index, operation, writes=True)
        return graph.host_ns

    def _sleep(self, index: int, turn: int, operation: ProgramOperation) -> int:
        host_ns = self.machine.host.costs.sleep_launch_ns
        stream = self.streams[operation.stream]
        task = self._task(Kind.KERNEL, stream, "sleep", self._ns(operation), n_sms=1)
        self._launch(index, turn, operation, task, host_ns)
        return host_ns

    def _record(self, index: int, turn: int, operation: ProgramOperation) -> int:
        host_ns = self.machine.host.costs.event_record_ns
        drawn = self._drawn.get(index)
        task = drawn or self._mark_task(operation, ())
        self._launch(index, turn, operation, task, host_ns)
        self.recorded[operation.event] = (task, self.checker.record((0, operation.stream)))
        return host_ns

    def _wait(self, index: int, turn: int, operation: ProgramOperation) -> int:
        host_ns = self.machine.host.costs.stream_wait_ns
        # Without a record so far, the wait passes as on CUDA, unless the picture shows a deadlock:
        # then it waits for the record that is drawn later.
        recorded = self.recorded.get(operation.event)
        awaited = [recorded[0]] if recorded else self._later(operation.event)
        task = self._mark_task(operation, awaited)
        self._launch(index, turn, operation, task, host_ns)
        if recorded:
            self.checker.stream_wait((0, operation.stream), recorded[1])
        return host_ns

    def _synchronize(self, _index: int, _turn: int, _operation: ProgramOperation) -> int:
        self.synchronize()
        self.checker.host_wait_device(0)
        return self.machine.host.costs.synchronize_ns

    def _clock(self, _index: int, _turn: int, _operation: ProgramOperation) -> int:
        self.clock_ns.append(self.machine.host.read_clock())
        return self.machine.host.costs.clock_read_ns

    def _launch(
        self, index: int, turn: int, operation: ProgramOperation, task: StreamTask, host_ns: int
    ) -> None:
        launched = self.machine.launch(task, host_ns)
        now_ns = self.machine.host.now_ns
        entry = TaskOfCall(index, turn, operation.kind, operation.stream, now_ns, launched)
        self.tasks.append(entry)

    def _note(self, index: int, operation: ProgramOperation, *, writes: bool) -> None:
        """Report an access to the race checker."""
        # The name of the access is the index of its operation, which _races() reads from a hazard.
        access = MemoryAccess(operation.buffer, _ALL, writes, operation.buffer)
        self.checker.launch((0, operation.stream), str(index), (access,), ("program", index))

    def _captured(self, stream: SimulatedStream, operation: ProgramOperation) -> Graph:
        capture = Capture(stream, None)
        n_sms = self.program.spec.n_sms
        for _ in range(operation.n_kernels):
            task = self._task(Kind.KERNEL, stream, "kernel", self._ns(operation), n_sms=n_sms)
            capture.add(task, (), ("program", 0))
        return capture.graph()

    def _records_as_drawn(self) -> dict[int, StreamTask]:
        """Return a task for each record, made now so that an earlier wait can refer to it."""
        return {
            index: self._mark_task(operation, ())
            for index, operation in enumerate(self.program.operations)
            if operation.kind == "record"
        }

    def _later(self, event: str) -> list[StreamTask]:
        records = (
            task
            for index, task in self._drawn.items()
            if self.program.operations[index].event == event
        )
        return list(records)[:1]

    def _mark_task(
        self, operation: ProgramOperation, waits_for: list[StreamTask] | tuple[()]
    ) -> StreamTask:
        stream = self.streams[operation.stream]
        return StreamTask(Kind.MARK, stream, name=operation.kind, waits_for=waits_for)

    def _task(
        self, kind: Kind, stream: SimulatedStream, name: str, duration_ns: int, *, n_sms: int = 0
    ) -> StreamTask:
        return StreamTask(kind, stream, name=name, demand=FixedDuration(duration_ns, n_sms))

    def _ns(self, operation: ProgramOperation) -> int:
        return round(operation.duration_us * _US)

    def _waits(self, operation: ProgramOperation) -> bool:
        """Return whether the call returns only after the copy."""
        # As with PyTorch's copy_: a small pageable copy in is staged by the driver and returns.
        if operation.is_pinned:
            return False
        size_bytes = copied_bytes(self._ns(operation), self.program.spec, pinned=False)
        return operation.kind == "copy out" or size_bytes > STAGED_BYTES

    def _refuse_pageable(self, operation: ProgramOperation) -> None:
        if not operation.is_pinned:
            self.machine.require_no_capture()
