"""Random programs on two GPUs: each task starts at the earliest time that the rules allow."""

from collections import defaultdict
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.gpus import gpu
from gpulab.virtual import Kind, SimulatedStream, StreamTask
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._event_queue import EventQueue
from gpulab.virtual.simulator._task import FixedDuration, Gaps

H200 = gpu("H200")
GAPS = Gaps(mark_to_mark_ns=2, mark_to_work_ns=3, work_to_mark_ns=5, work_to_work_ns=7)


class Planned(NamedTuple):
    """One task of a random program."""

    kind: Kind
    duration_ns: int
    stream: int
    waits_for: frozenset[int]
    later_ns: int
    is_advanced: bool
    is_in_launch_queue: bool


PROGRAMS = st.lists(
    st.builds(
        Planned,
        kind=st.sampled_from(list(Kind)),
        duration_ns=st.integers(0, 20),
        stream=st.integers(0, 5),
        waits_for=st.frozensets(st.integers(1, 6), max_size=2),
        later_ns=st.sampled_from([0, 0, 1, 30]),
        is_advanced=st.booleans(),
        is_in_launch_queue=st.booleans(),
    ),
    max_size=20,
)


def ready_ns(task: StreamTask, before: StreamTask | None, waited: list[StreamTask]) -> int:
    """Return when a task may start: after its launch, its stream's last task and its waits."""
    times = [task.visible_ns, *(other.end_ns or 0 for other in waited)]
    if before is not None:
        marks = before.kind is Kind.MARK, task.kind is Kind.MARK
        pause_ns = {(True, True): 2, (True, False): 3, (False, True): 5, (False, False): 7}[marks]
        times.append((before.end_ns or 0) + pause_ns)
    return max(times)


def submitted(
    program: list[Planned], streams: list[SimulatedStream], queue: EventQueue
) -> tuple[list[StreamTask], list[list[StreamTask]]]:
    """Submit a program; return its tasks, and for each of them those that it waits for."""
    tasks: list[StreamTask] = []
    waits: list[list[StreamTask]] = []
    now_ns = 0
    for planned in program:
        now_ns += planned.later_ns
        waited = [tasks[-back] for back in planned.waits_for if back <= len(tasks)]
        # All multiprocessors, so that kernels run one after another; sharing has its own tests.
        demand = FixedDuration(planned.duration_ns, H200.n_sms)
        task = StreamTask(
            planned.kind,
            streams[planned.stream],
            name=f"task {len(tasks)}",
            demand=demand,
            waits_for=waited,
            is_in_launch_queue=planned.is_in_launch_queue,
        )
        if planned.is_advanced:
            queue.advance(now_ns)
        task.stream.device.submit(task, now_ns)
        tasks.append(task)
        waits.append(waited)
    return tasks, waits


@settings(max_examples=50)
@given(PROGRAMS)
def test_each_task_starts_as_early_as_it_may(program: list[Planned]) -> None:
    """It waits for its launch, its stream, its events and its engine, and for nothing else."""
    queue = EventQueue()
    devices = [SimulatedDevice(H200, gaps=GAPS, event_queue=queue, index=at) for at in range(2)]
    streams: list[SimulatedStream] = []
    for device in devices:
        streams += [*device.streams, device.add_stream(), device.add_stream()]
    tasks, waits = submitted(program, streams, queue)
    for device in devices:
        device.drain_to(0)
    for task in tasks:
        task.stream.device.finish(task)

    last: dict[SimulatedStream, StreamTask] = {}
    engines: defaultdict[tuple[int, Kind], list[tuple[int, int, int, int]]] = defaultdict(list)
    for task, waited, planned in zip(tasks, waits, program, strict=True):
        start_ns, end_ns = task.start_ns or 0, task.end_ns or 0
        ready = ready_ns(task, last.get(task.stream), waited)
        last[task.stream] = task
        if task.kind is Kind.MARK:
            assert start_ns == end_ns == ready
        else:
            entry = (start_ns, end_ns, ready, planned.duration_ns)
            engines[task.stream.device.index, task.kind].append(entry)
    for entries in engines.values():
        free_ns = 0
        for start_ns, end_ns, ready, duration_ns in sorted(entries):
            assert (start_ns, end_ns) == (max(ready, free_ns), start_ns + duration_ns)
            free_ns = end_ns
        # First come, first served.
        in_turn = [ready for _, _, ready, _ in sorted(entries)]
        assert in_turn == sorted(in_turn)
    for device in devices:
        check_records(device, [task for task in tasks if task.stream.device is device])


def check_records(device: SimulatedDevice, tasks: list[StreamTask]) -> None:
    """Check that the device shows each task once, in the order of their ends, and holds none."""
    assert device.n_pending == 0
    shown = [(each.name, each.start_ns, each.end_ns, each.stream) for each in device.records()]
    times = [(each.name, each.start_ns, each.end_ns, each.stream.number) for each in tasks]
    assert sorted(shown) == sorted(times)
    ends = [end_ns for _, _, end_ns, _ in shown]
    assert ends == sorted(ends)
    assert not any(task.waits_for for task in tasks)  # or no task would ever be freed
