"""What a machine does with a launch besides passing it on."""

import pytest

from gpulab.gpus import gpu
from gpulab.happens_before import Checker, MemoryAccess, extent
from gpulab.virtual.simulator import Kind, Machine, StreamTask, ValueLimits, _machine
from gpulab.virtual.simulator._task import FixedDuration, SpinCycles

ACCESS = MemoryAccess("x", extent((4,), (1,), 0, 4), is_write=True, label="x")


@pytest.mark.parametrize(
    ("checker", "accesses", "n_walks"),
    [(None, (ACCESS,), 0), (Checker(), (), 0), (Checker(), (ACCESS,), 1)],
)
def test_the_stack_is_walked_for_the_race_detector_alone(
    monkeypatch: pytest.MonkeyPatch,
    checker: Checker | None,
    accesses: tuple[MemoryAccess, ...],
    n_walks: int,
) -> None:
    """The line of a launch is found only if the detector is on and memory is accessed."""
    walks = []
    monkeypatch.setattr(_machine, "user_site", lambda: walks.append(1) or ("train.py", 1))
    machine = Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)
    machine.hazards = checker
    machine.launch(StreamTask(Kind.KERNEL, machine.gpu.stream, name="add"), 0, accesses)
    assert len(walks) == n_walks


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


def test_a_spin_occupies_one_multiprocessor() -> None:
    """A kernel that wants all the others runs at full speed beside it."""
    machine = Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)
    side, others = machine.gpu.next_stream(), FixedDuration(1_000, machine.spec.n_sms - 1)
    spin = StreamTask(Kind.KERNEL, machine.gpu.stream, name="spin", demand=SpinCycles(1_000_000))
    machine.launch(spin, 0)
    task = machine.launch(StreamTask(Kind.KERNEL, side, name="add", demand=others), 0)
    machine.wait_for_gpu(machine.gpu)
    assert (task.end_ns or 0) - (task.start_ns or 0) == 1_000
