"""Simulate each timing method on a program: what it reads, the true time, and why they differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from gpulab.core.errors import VirtualGpuError
from gpulab.views.machine._playback import Playback, waiting_circle
from gpulab.views.machine._program import MachineProgram
from gpulab.views.machine._runner import Runner
from gpulab.virtual import GRAPH_GAPS, Capture, Gaps, StreamTask

# A reading that differs from the truth by more than this share of it is called wrong.
TOLERANCE = 0.1
_US = 1e3
_GAPS = Gaps()
# The depth of the launch queue on an H200. The true time does not depend on the program's own
# queue, which may be so short that launches wait.
_ROOM_FOR_ALL = 1_022
_LEAST_SLEEP_NS = 50_000
_N_KEPT = 8  # programs; several methods need the same run, and all of them the truth
_MARGIN = 1.3  # length of the sleep over the host's time, as in gpulab's own sampler


@dataclass(frozen=True, slots=True)
class MethodReading:
    """The time that one method reads for one call of the work; None if it cannot be used.

    The truth is the time on the GPU from the first start to the last end, if no launch comes late.
    ``reason`` says in about three words why the reading is wrong.
    """

    name: str
    value_us: float | None
    truth_us: float
    reason: str = ""

    @property
    def is_right(self) -> bool:
        """Whether it is within a tenth of the truth."""
        if self.value_us is None:
            return False
        return abs(self.value_us - self.truth_us) <= TOLERANCE * self.truth_us


@lru_cache(maxsize=_N_KEPT)
def truth_us(program: MachineProgram) -> float:
    """Return how long one call of the work takes on the GPU, from the simulator's own times."""
    # As in the method "after a sleep": the GPU sleeps until all launches are made, so that no
    # launch comes late.
    runner = Runner(replace(program, queue_depth=_ROOM_FOR_ALL))
    # With the program's own queue the host needs at least as long.
    _head_start(runner, program)
    after = runner.mark()
    for stream in runner.streams[1:]:  # else they would start before the sleep ends
        runner.machine.mark(stream, runner.machine.host.costs.stream_wait_ns, (after,))
    runner.work()
    runner.settle()
    return _span_us(runner)


def _naive(program: MachineProgram, true_us: float) -> tuple[float, str]:
    value_us = _launches(program).read_ns / _US
    return value_us, "launches, not work" if value_us < true_us else "includes the launches"


def _synchronized(program: MachineProgram, _true_us: float) -> tuple[float, str]:
    return _stopwatch(program, 1), "launch, wake-up included"


def _batch(program: MachineProgram, true_us: float) -> tuple[float, str]:
    value_us = _stopwatch(program, program.repetitions) / program.repetitions
    if program.repetitions == 1:
        return value_us, "n is 1"
    return value_us, "launches set pace" if value_us > true_us else "calls overlap"


@lru_cache(maxsize=_N_KEPT)
def _stopwatch(program: MachineProgram, n: int) -> float:
    runner = Runner(program)
    start_ns = runner.machine.host.read_clock()
    for _ in range(n):
        runner.work()
    runner.synchronize()
    return (runner.machine.host.read_clock() - start_ns) / _US


def _events(program: MachineProgram, true_us: float) -> tuple[float, str]:
    value_us, _ = _between_events(Runner(program))
    if value_us < true_us:
        return value_us, "misses other streams"
    # Two events alone add one floor. If it is much more, the GPU was idle between launches.
    is_late = value_us > true_us + 2 * floor_us()
    return value_us, "GPU waits for launches" if is_late else "events cost time"


def _after_a_sleep(program: MachineProgram, true_us: float) -> tuple[float, str]:
    value_us, was_ahead = _slept(program)
    if value_us < true_us:
        return value_us, "misses other streams"
    return value_us, "events cost time" if was_ahead else "host not ahead"


def _calibrated(program: MachineProgram, true_us: float) -> tuple[float, str]:
    value_us, was_ahead = _slept(program)
    # An empty pair, as around work on other streams only, reads less than the floor.
    value_us = max(0.0, value_us - floor_us())
    if value_us < true_us:
        return value_us, "misses other streams"
    return value_us, "" if was_ahead else "host not ahead"


@lru_cache(maxsize=_N_KEPT)
def _slept(program: MachineProgram) -> tuple[float, bool]:
    runner = Runner(program)
    _head_start(runner, program)
    return _between_events(runner)


def _graph(program: MachineProgram, true_us: float) -> tuple[float | None, str]:
    runner = Runner(program)
    machine, stream = runner.machine, runner.streams[0]
    machine.capture = capture = Capture(stream, None)
    try:
        # The events are captured with the work, so that a replay launches them without gaps of
        # the host.
        start = runner.mark()
        runner.work()
        end = runner.mark()
    except VirtualGpuError:  # the work synchronizes, or copies pageable memory
        return None, "cannot be captured"
    finally:
        # Also after a refusal: everything launched later would be captured, too.
        machine.capture = None
    if not capture.is_joined() or _forgot_a_stream(runner, capture):
        return None, "cannot be captured"
    # The gaps beside an event have other lengths inside a graph, so the floor is another one.
    value_us = _replayed(runner, capture, start, end) - floor_us(GRAPH_GAPS)
    return max(0.0, value_us), "shorter gaps inside" if value_us < true_us else "events cost time"


def _forgot_a_stream(runner: Runner, capture: Capture) -> bool:
    """Return whether some work went to a stream that is not part of the capture."""
    # It ran at once instead of becoming part of the graph, so the graph would read too short.
    return any(not capture.has(each.task.stream) for each in runner.tasks)


def _replayed(runner: Runner, capture: Capture, start: StreamTask, end: StreamTask) -> float:
    launched = {
        node.task: task
        for node, task in capture.graph().launch(runner.machine.host, runner.streams[0])
    }
    runner.synchronize()
    return ((launched[end].end_ns or 0) - (launched[start].end_ns or 0)) / _US


_Method = Callable[[MachineProgram, float], tuple[float | None, str]]
_METHODS: dict[str, _Method] = {
    "naive": _naive,
    "synchronized": _synchronized,
    "events": _events,
    "batch / n": _batch,
    "after a sleep": _after_a_sleep,
    "graph": _graph,
    "calibrated": _calibrated,
}
READING_NAMES = tuple(_METHODS)


def readings(
    program: MachineProgram, methods: Sequence[str] = READING_NAMES
) -> tuple[MethodReading, ...]:
    """Return the reading of timing methods; empty if there is no work, or a deadlock."""
    if not program.work or waiting_circle(program):
        return ()
    true_us = truth_us(program)
    return tuple(_judged(name, *_METHODS[name](program, true_us), true_us) for name in methods)


def own_readings(playback: Playback) -> tuple[MethodReading, ...]:
    """Return what the program's own stopwatch and events read, for one repetition."""
    program = playback.program
    if not program.work or playback.is_stuck:
        return ()
    true_us = truth_us(program)
    values_us = {"your stopwatch": playback.stopwatch_us, "your events": playback.events_us}
    return tuple(
        _judged(name, value_us, "too short" if value_us < true_us else "too long", true_us)
        for name, value_us in values_us.items()
        if value_us is not None
    )


def _judged(name: str, value_us: float | None, reason: str, true_us: float) -> MethodReading:
    reading = MethodReading(name, value_us, true_us, reason)
    return replace(reading, reason="") if reading.is_right else reading


def floor_us(gaps: Gaps = _GAPS) -> float:
    """Return how much longer a pair of events reads than the one kernel between them, in µs."""
    return (gaps.mark_to_work_ns + gaps.work_to_mark_ns) / _US


def _head_start(runner: Runner, program: MachineProgram) -> None:
    """Let the default stream sleep for longer than the host needs to launch the work."""
    runner.sleep(max(_LEAST_SLEEP_NS, round(_MARGIN * _launches(program).end_ns)))


class _Launches(NamedTuple):
    """What a stopwatch around the launches reads, and when the last launch is made."""

    read_ns: int
    end_ns: int


@lru_cache(maxsize=_N_KEPT)
def _launches(program: MachineProgram) -> _Launches:
    # On an idle machine of its own, so that it leaves no work in the queue of another reading.
    runner = Runner(program)
    host = runner.machine.host
    start_ns = host.read_clock()
    runner.work()
    end_ns = host.now_ns
    # No synchronize before the second reading: that is the mistake of the naive method.
    return _Launches(host.read_clock() - start_ns, end_ns)


def _between_events(runner: Runner) -> tuple[float, bool]:
    """Return the time between two events around the work, and whether the host was ahead."""
    start = runner.mark()
    runner.work()
    end = runner.mark()
    # If the start event is still pending after the last launch, no launch came late.
    was_ahead = not runner.machine.is_over(start)
    runner.synchronize()
    return ((end.end_ns or 0) - (start.end_ns or 0)) / _US, was_ahead


def _span_us(runner: Runner) -> float:
    tasks = [
        each.task
        for each in runner.tasks
        if runner.program.operations[each.operation_index].is_work and each.task.end_ns is not None
    ]
    first_ns = min(task.start_ns or 0 for task in tasks)
    return (max(task.end_ns or 0 for task in tasks) - first_ns) / _US
