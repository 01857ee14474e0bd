"""A captured graph knows its streams and its order, and a launch takes exact nanoseconds."""

import pytest

from gpulab.gpus import gpu
from gpulab.virtual import Kind, SimulatedStream, StreamTask
from gpulab.virtual.simulator import Capture
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._host import Host
from gpulab.virtual.simulator._task import FixedDuration

H200 = gpu("H200")
SITE = ("train.py", 3)


@pytest.fixture
def device() -> SimulatedDevice:
    """Return an H200 with a side stream."""
    made = SimulatedDevice(H200)
    made.add_stream()
    return made


@pytest.fixture
def capture(device: SimulatedDevice) -> Capture:
    """Return a capture that began on the default stream."""
    return Capture(device.streams[0], pool=(0, 1))


def kernel(stream: SimulatedStream, *waits_for: StreamTask) -> StreamTask:
    """Return a kernel of 1 µs."""
    demand = FixedDuration(1_000)
    return StreamTask(Kind.KERNEL, stream, name="add", demand=demand, waits_for=waits_for)


def mark(stream: SimulatedStream, *waits_for: StreamTask) -> StreamTask:
    """Return the mark of an event, or a wait for others."""
    return StreamTask(Kind.MARK, stream, name="event", waits_for=waits_for)


def add(capture: Capture, *tasks: StreamTask) -> None:
    """Capture some tasks."""
    for task in tasks:
        capture.add(task, (), SITE)


def test_a_capture_is_joined_when_the_origin_comes_after_all_other_work(
    device: SimulatedDevice, capture: Capture
) -> None:
    """A forked stream is joined by a wait for its last work, not by one for earlier work."""
    origin, side = device.streams
    fork = mark(origin)
    early, late = kernel(side, fork), kernel(side)
    seen = []
    for task in (fork, early, mark(origin, early), late, mark(origin, late), kernel(origin)):
        add(capture, task)
        seen.append((capture.is_joined(), capture.has(side)))
    assert seen == [
        (True, False), (False, True), (True, True), (False, True), (True, True), (True, True),
    ]  # fmt: skip


def test_a_launch_takes_the_pauses_of_a_graph(device: SimulatedDevice, capture: Capture) -> None:
    """Kernels follow one another after 0.1 µs; the stream goes on when all of them are done."""
    origin = device.streams[0]
    tasks = mark(origin), kernel(origin), kernel(origin), mark(origin)
    add(capture, *tasks)
    graph, host = capture.graph(), Host([device], first_use=False)
    marks = list[StreamTask]()
    for task in tasks:
        capture.follow(task, marks.append)
    launched = graph.launch(host, origin)
    # 2.2 µs, and 3 ns for each of four nodes; all of them take one place of the launch queue.
    assert (graph.host_ns, host.now_ns, device.n_pending) == (2_212, 2_212, 1)
    assert [node for node, _ in launched] == list(graph.nodes)
    assert [task for _, task in launched] == marks
    assert (device.streams[1].last, launched[0][1].stream.number) == (None, 2)
    later = host.launch(kernel(origin), 0)
    host.wait(later)
    # The launch is visible after 2.8 µs, and its mark is done then.
    begin_ns = 2_212 + 2_800
    assert [(task.name, task.start_ns, task.end_ns) for _, task in launched] == [
        ("event", begin_ns, begin_ns),
        ("add", begin_ns + 1_300, begin_ns + 2_300),
        ("add", begin_ns + 2_400, begin_ns + 3_400),
        ("event", begin_ns + 4_800, begin_ns + 4_800),
    ]
    assert later.start_ns == begin_ns + 4_800 + 1_250
    assert device.n_pending == 0


def test_a_launch_waits_for_every_branch(device: SimulatedDevice, capture: Capture) -> None:
    """Branches run at once, a join waits for both, and each replay computes and draws again."""
    origin, side = device.streams
    seeds, drawn = list[int](), iter(range(5, 9))
    first = kernel(origin)
    first.payload, first.draw = seeds.append, lambda: next(drawn)
    long = StreamTask(
        Kind.KERNEL, side, name="long", demand=FixedDuration(9_000), waits_for=[first]
    )
    short, join = kernel(origin), kernel(origin, long)
    add(capture, first, long, short, join)
    host, graph = Host([device], first_use=False), capture.graph()
    for seed in (5, 6):
        again = [task for _, task in graph.launch(host, origin)]
        end = origin.last
        host.wait(end)
        starts_ns = [(task.start_ns or 0) - (again[0].start_ns or 0) for task in again]
        assert starts_ns == [0, 1_000, 1_100, 10_000]
        assert (end is not None and end.end_ns) == again[3].end_ns
        assert seeds[-1] == seed
    assert len(device.streams) == 4
