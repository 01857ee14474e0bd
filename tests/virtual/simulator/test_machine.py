"""What a machine does with a launch besides passing it on."""

import warnings
from collections.abc import Callable

import pytest

from gpulab.core.errors import VirtualGpuError
from gpulab.gpus import gpu
from gpulab.happens_before import Checker, MemoryAccess, extent
from gpulab.virtual import SimulatedStream
from gpulab.virtual.simulator import (
    Capture,
    Kind,
    Machine,
    StreamTask,
    ValueLimits,
)
from gpulab.virtual.simulator._task import FixedDuration

ACCESS = MemoryAccess("x", extent((4,), (1,), 0, 4), is_write=True, label="x")


def test_a_task_is_over_at_the_hosts_time_of_its_end() -> None:
    """A stream has unfinished work until the host's clock has reached its end, and none after."""
    machine = Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)
    stream = machine.gpu.stream
    assert (machine.is_over(None), machine.unfinished(stream)) == (True, None)
    kernel = FixedDuration(5_000)
    task = machine.launch(StreamTask(Kind.KERNEL, stream, name="add", demand=kernel), 0)
    machine.host.spend(7_799)
    assert (machine.is_over(task), machine.unfinished(stream)) == (False, task)
    machine.host.spend(1)
    assert (machine.is_over(task), machine.unfinished(stream)) == (True, None)


def new_machine(*, first_use: bool = False) -> Machine:
    """Return a machine with one H200."""
    return Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=first_use)


def add(machine: Machine, stream: SimulatedStream | None = None) -> StreamTask:
    """Launch a kernel that writes ``x``."""
    stream = stream or machine.gpu.stream
    demand = FixedDuration(1_000)
    task = StreamTask(Kind.KERNEL, stream, name="add", demand=demand)
    return machine.launch(task, 0, (ACCESS,))


def test_memory_is_freed_after_all_work_except_in_a_capture() -> None:
    """A cudaFree waits for the device; during a capture it does not."""
    machine = new_machine()
    task = add(machine)
    machine.capture = Capture(machine.gpu.next_stream(), pool=(0, 1))
    machine.device_free(machine.gpu, 0)
    assert task.end_ns is None
    machine.capture = None
    machine.device_free(machine.gpu, 0)
    assert task.end_ns is not None


def test_a_capture_forbids_new_memory_to_others() -> None:
    """During a capture only its own streams may call cudaMalloc; the capture is lost then."""
    machine = new_machine()
    capture = machine.capture = Capture(machine.gpu.stream, pool=(0, 1))
    machine.device_malloc(machine.gpu, 512)
    assert capture.failure is None
    machine.gpu.stream = machine.gpu.next_stream()
    with pytest.raises(VirtualGpuError) as caught:
        machine.device_malloc(machine.gpu, 512)
    reason = "operation not permitted when stream is capturing"
    assert (str(caught.value), capture.failure) == (f"CUDA error: {reason}", reason)


def checked(machine: Machine, program: Callable[[Machine, SimulatedStream], None]) -> int:
    """Write ``x`` on the default stream, run a program, write it on a side stream: the hazards."""
    machine.hazards = Checker()
    side = machine.gpu.next_stream()
    add(machine)
    program(machine, side)
    add(machine, side)
    return len(machine.hazards.hazards)


def wait_for_event(machine: Machine, _side: SimulatedStream) -> None:
    """Record an event after the write, and wait for it."""
    assert machine.hazards is not None
    snapshot = machine.hazards.record(machine.gpu.stream.key)
    machine.wait(machine.mark(machine.gpu.stream, 0), snapshot)


@pytest.mark.parametrize(
    ("program", "n_hazards"),
    [
        (lambda _machine, _side: None, 1),
        (lambda machine, side: machine.order(machine.gpu.stream, side, 0), 0),
        (lambda machine, side: machine.order(side, machine.gpu.stream, 0), 1),
        (wait_for_event, 0),
        (lambda machine, _side: machine.wait(None), 1),
        (lambda machine, _side: machine.wait_for_stream(machine.gpu.stream), 0),
        (lambda machine, side: machine.wait_for_stream(side), 1),
        (lambda machine, _side: machine.wait_for_gpu(machine.gpu), 0),
    ],
)
def test_the_race_detector_sees_what_the_program_waits_for(
    program: Callable[[Machine, SimulatedStream], None], n_hazards: int
) -> None:
    """Two writes on two streams are a race, unless a wait comes between them."""
    assert checked(new_machine(), program) == n_hazards


@pytest.mark.parametrize("wrong", ["nothing", "before", "inside", "after", "other"])
def test_the_race_detector_sees_the_order_of_a_replay(wrong: str) -> None:
    """A replay comes after earlier work of its stream and before later, and its edges order it."""
    machine = new_machine()
    stream, side, other = machine.gpu.stream, machine.gpu.next_stream(), machine.gpu.next_stream()
    capture = Capture(stream, pool=(0, 1))

    def node(on: SimulatedStream, *waits_for: StreamTask) -> StreamTask:
        task = StreamTask(Kind.KERNEL, on, name="node", waits_for=waits_for)
        capture.add(task, (ACCESS,), ("train.py", 3))
        return task

    first = node(stream)
    second = node(side, first)
    node(stream, *(() if wrong == "inside" else (second,)))
    checker = machine.hazards = Checker()
    add(machine, other if wrong == "before" else stream)
    machine.replay(capture.graph(), stream)
    assert checker.operations.total() == 1 + 3
    add(machine, other if wrong == "after" else stream)
    if wrong == "other":
        add(machine, other)
    assert len(checker.hazards) == (0 if wrong == "nothing" else 1)


def test_a_captured_launch_takes_host_time_and_does_not_run() -> None:
    """A launch on a captured stream is added to the capture; one that waits outside fails it."""
    machine = new_machine()
    machine.hazards = Checker()
    outside = add(machine, machine.gpu.next_stream())
    capture = machine.capture = Capture(machine.gpu.stream, pool=(0, 1))
    task = StreamTask(Kind.KERNEL, machine.gpu.stream, name="add")
    assert machine.launch(task, 700, (ACCESS,)) is task
    assert (machine.host.now_ns, task.stream.last) == (700, None)
    assert [(node.task, node.accesses) for node in capture.nodes] == [(task, (ACCESS,))]
    assert capture.nodes[0].site != ("", 0)
    assert machine.hazards.operations.total() == 1
    with pytest.raises(VirtualGpuError, match="dependency created on uncaptured work"):
        machine.mark(machine.gpu.stream, 0, (outside,))


def test_a_hidden_wait_warns_or_raises() -> None:
    """A hidden wait is silent in mode 0, a warning in mode 1 and an error in mode 2."""
    machine, text = new_machine(), "called a synchronizing CUDA operation"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        machine.note_hidden_wait()
    machine.sync_debug_mode = 1
    with pytest.warns(UserWarning, match=f"^{text}$") as caught:
        machine.note_hidden_wait()
    assert caught[0].filename == __file__  # the line of the call
    machine.sync_debug_mode = 2
    with pytest.raises(RuntimeError, match=f"^{text}$"):
        machine.note_hidden_wait()
