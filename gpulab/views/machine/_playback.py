"""Play a program on the machine: return each call and task with its times, and what is wrong."""

import graphlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpulab.core.errors import VirtualGpuError
from gpulab.views.machine._program import MachineProgram
from gpulab.views.machine._runner import PlayedCall, Runner, TaskOfCall

_US = 1e3
# A deadlock never ends. The picture shows this much of it, and at least half of the rest.
_STUCK_NS = 20_000
_ENGINES = {"copy in": "copy in", "copy out": "copy out", "kernel": "compute", "sleep": "compute"}


@dataclass(frozen=True, slots=True)
class PlayedTask:
    """A task of the GPU, in microseconds from the start of the program.

    ``place`` and ``turn`` are those of the call that launched it; ``called_us`` is when that call
    returned. Events and waits have no engine.
    """

    place: int
    turn: int
    kind: str
    stream: int
    engine: str
    called_us: float
    start_us: float
    end_us: float
    is_stuck: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """A sentence about a mistake or a surprise, and the indices of the operations in question."""

    kind: str
    text: str
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Playback:
    """One run of a program: what host and GPU did, in the order of the calls, and remarks.

    ``stopwatch_us`` is the time between the first and the last reading of the clock, and
    ``events_us`` that between the first and the last event that nothing waits for, both divided by
    the repetitions; None if there are fewer than two.
    """

    program: MachineProgram
    calls: tuple[PlayedCall, ...]
    tasks: tuple[PlayedTask, ...]
    remarks: tuple[Remark, ...]
    end_us: float
    stopwatch_us: float | None
    events_us: float | None

    @property
    def is_stuck(self) -> bool:
        """Whether streams wait for one another forever."""
        return any(remark.kind == "deadlock" for remark in self.remarks)

    @property
    def done_us(self) -> float:
        """When everything that can finish was done; ``end_us`` is later beside a deadlock."""
        ran: list[PlayedCall | PlayedTask] = [*self.calls, *self.tasks]
        return max((each.end_us for each in ran if not each.is_stuck), default=0.0)

    def has(self, kind: str) -> bool:
        """Return whether there is a remark of this kind."""
        return any(remark.kind == kind for remark in self.remarks)

    def tasks_of(self, *kinds: str) -> tuple[PlayedTask, ...]:
        """Return the tasks of these kinds."""
        return tuple(task for task in self.tasks if task.kind in kinds)


def play(program: MachineProgram) -> Playback:
    """Run a program once on an idle simulated GPU, and return what happened."""
    # Before the run, because it decides whether a wait may refer to a later record.
    cycle = waiting_circle(program)
    # Without a circle CUDA's own rule applies: a wait passes if its event is not recorded yet.
    runner = Runner(program, as_drawn=bool(cycle))
    stuck_index = None
    for index, turn in program.calls:
        if cycle and turn:
            break  # the first repetition never ends
        try:
            runner.call(index, turn)
        except VirtualGpuError:  # the host waits for streams that wait for one another
            stuck_index = index
            break
    # Work of other streams that can finish is played to its end, even with a deadlock.
    done_ns = runner.settle()
    end_ns = done_ns + max(_STUCK_NS, done_ns // 2) if cycle else done_ns
    calls = runner.calls
    if stuck_index is not None:
        now_us = runner.machine.host.now_ns / _US
        stuck = PlayedCall(
            stuck_index, 0, now_us, end_ns / _US, 0.0, is_queue_full=False, is_stuck=True
        )
        calls.append(stuck)
    return Playback(
        program,
        tuple(calls),
        (*_tasks(runner, done_ns, end_ns),),
        (*_deadlock(program, cycle), *_races(runner), *_remarks(program, cycle)),
        end_ns / _US,
        None if cycle else _stopwatch_us(runner),
        None if cycle else _events_us(runner),
    )


def _tasks(runner: Runner, done_ns: int, end_ns: int) -> Iterator[PlayedTask]:
    """Yield the tasks; those of a stream that never run share the end of the picture."""
    n_stuck = Counter(each.stream for each in runner.tasks if each.task.end_ns is None)
    n_before: Counter[int] = Counter()
    for entry in runner.tasks:
        start_ns, ended_ns = entry.task.start_ns, entry.task.end_ns
        if start_ns is None or ended_ns is None:
            share_ns = (end_ns - done_ns) / n_stuck[entry.stream]
            start = done_ns + n_before[entry.stream] * share_ns
            n_before[entry.stream] += 1
            yield _task(entry, start, start + share_ns)
        else:
            yield _task(entry, start_ns, max(start_ns, ended_ns))


def _task(entry: TaskOfCall, start_ns: float, end_ns: float) -> PlayedTask:
    return PlayedTask(
        entry.operation_index,
        entry.turn,
        entry.kind,
        entry.stream,
        _ENGINES.get(entry.kind, ""),
        entry.called_ns / _US,
        start_ns / _US,
        end_ns / _US,
        is_stuck=entry.task.end_ns is None,
    )


def _stopwatch_us(runner: Runner) -> float | None:
    # The clock may be read in each repetition. The first and the last reading enclose all of them.
    read_ns = runner.clock_ns
    if len(read_ns) < 2 or not runner.program.body:  # noqa: PLR2004 # a stopwatch is read twice
        return None
    return (read_ns[-1] - read_ns[0]) / _US / runner.program.repetitions


def _events_us(runner: Runner) -> float | None:
    # An event that a stream waits for orders the streams. The others are there for timing.
    awaited = {each.event for each in runner.program.operations if each.kind == "wait"}
    ends_ns = [
        each.task.end_ns
        for each in runner.tasks
        if each.kind == "record"
        and runner.program.operations[each.operation_index].event not in awaited
    ]
    first_ns, last_ns = (ends_ns[0], ends_ns[-1]) if ends_ns else (None, None)
    if len(ends_ns) < 2 or first_ns is None or last_ns is None or not runner.program.body:  # noqa: PLR2004 # a pair
        return None
    return (last_ns - first_ns) / _US / runner.program.repetitions


def waiting_circle(program: MachineProgram) -> tuple[int, ...]:
    """Return the indices of operations that wait for one another, or an empty tuple.

    CUDA lets a wait pass if its event is not recorded yet. The picture shows such a wait as
    waiting for the later record. If that record in turn comes after the wait, neither can ever
    run. That is the deadlock which the learner drew, although CUDA would not wait.
    """
    order: dict[int, set[int]] = {}
    # An operation depends on the one before it in its stream, synchronize on all streams, and a
    # wait on its record. A deadlock is a circle in this graph.
    last: dict[int, int] = {}  # the last operation of each stream
    for index, operation in enumerate(program.operations):
        if operation.kind == "synchronize":
            order[index] = set(last.values())
            # On every stream, what follows comes after the wait of the host.
            last = dict.fromkeys(range(program.n_streams), index)
        elif operation.runs_on_stream:
            order[index] = {last[operation.stream]} if operation.stream in last else set()
            last[operation.stream] = index
        if operation.kind == "wait":
            order[index] |= set(_record_as_drawn(program, index))
    try:
        graphlib.TopologicalSorter(order).prepare()
    except graphlib.CycleError as error:
        return tuple(sorted(set(error.args[1])))
    return ()


def _record_as_drawn(program: MachineProgram, index: int) -> list[int]:
    """Return the record that a wait is drawn to: the last one before it, else the first after."""
    event = program.operations[index].event
    records = [
        candidate
        for candidate, operation in enumerate(program.operations)
        if operation.kind == "record" and operation.event == event
    ]
    before = [candidate for candidate in records if candidate < index]
    return before[-1:] or records[:1]


def _deadlock(program: MachineProgram, cycle: tuple[int, ...]) -> list[Remark]:
    if not cycle:
        return []
    waits = [index for index in cycle if program.operations[index].kind == "wait"]
    early = [index for index in waits if _record_as_drawn(program, index)[0] > index]
    named = " and ".join(f"{index + 1} ({program.operations[index]})" for index in waits)
    text = (
        f"Deadlock: operation {named} can never end, because each needs what comes after "
        "another one. Take one wait away, or record its event earlier. (CUDA itself lets "
        f"operation {early[0] + 1} pass, because its event is not recorded yet: no "
        "deadlock, but no order either.)"
    )
    return [Remark("deadlock", text, cycle)]


def _races(runner: Runner) -> list[Remark]:
    races = []
    for hazard in runner.checker.hazards:
        first, second = int(hazard.first.name), int(hazard.second.name)
        operations = runner.program.operations
        text = (
            f"Race: operation {first + 1} ({operations[first]}) and operation {second + 1} "
            f"({operations[second]}) use buffer {hazard.tensor} and nothing orders them. Record "
            f"an event after operation {first + 1} and let stream {operations[second].stream} "
            "wait for it."
        )
        races.append(Remark("race", text, (first, second)))
    return races


def _remarks(program: MachineProgram, cycle: tuple[int, ...]) -> list[Remark]:
    remarks = []
    if not program.work:
        text = "There is no kernel, copy or graph: nothing to time. Drop one in."
        remarks.append(Remark("empty", text))
    recorded: set[str] = set()
    for index, operation in enumerate(program.operations):
        if operation.kind == "record":
            recorded.add(operation.event)
        # The remark about a deadlock says the same of its own waits.
        elif operation.kind == "wait" and operation.event not in recorded and index not in cycle:
            remarks.append(_unrecorded(program, index))
    used = {each.stream for each in program.operations if each.runs_on_stream}
    remarks += [
        Remark("stream", f"Stream {stream} has no work.")
        for stream in range(1, program.n_streams)
        if stream not in used
    ]
    return remarks


def _unrecorded(program: MachineProgram, index: int) -> Remark:
    event = program.operations[index].event or "(none)"
    when = "only later" if _record_as_drawn(program, index) else "never"
    text = (
        f"Operation {index + 1} waits for event {event}, which is {when} recorded. "
        "CUDA lets the wait pass. Record the event before the wait."
    )
    return Remark("wait", text, (index,))
