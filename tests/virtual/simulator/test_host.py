"""The virtual host's clock advances by launches, waits, a full queue and first uses."""

import pytest

from gpulab.gpus import gpu
from gpulab.virtual import Kind, StreamTask
from gpulab.virtual.simulator import Machine, ValueLimits
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._host import Host, HostCosts
from gpulab.virtual.simulator._task import FixedDuration

US = 1_000
COSTS = HostCosts()


def make_host(*, first_use: bool = False) -> Host:
    """Return a host with a virtual H200."""
    return Host([SimulatedDevice(gpu("H200"))], first_use=first_use)


def launch(host: Host, duration_ns: int, host_ns: int = 5 * US) -> StreamTask:
    """Launch a kernel of a fixed duration."""
    task = StreamTask(
        Kind.KERNEL, host.devices[0].streams[0], name="k", demand=FixedDuration(duration_ns)
    )
    return host.launch(task, host_ns)


def test_a_launch_takes_host_time_only() -> None:
    """A launch returns before its kernel has started."""
    host = make_host()
    task = launch(host, 1_000 * US)
    assert (host.now_ns, task.start_ns) == (5 * US, None)


def test_waiting_takes_until_the_end_and_the_wake_up() -> None:
    """A wait ends after launch, latency, kernel and wake-up."""
    host = make_host()
    host.wait(launch(host, 100 * US))
    overhead_ns = COSTS.launch_latency_ns + COSTS.wake_ns
    assert host.now_ns == 5 * US + 100 * US + overhead_ns


def test_waiting_for_the_device_waits_for_every_stream() -> None:
    """A wait for the device ends after its longest stream."""
    host = make_host()
    side = host.devices[0].add_stream()
    launch(host, 10 * US)
    long = StreamTask(Kind.KERNEL, side, name="k", demand=FixedDuration(500 * US))
    host.launch(long, US)
    host.wait_for_device(host.devices[0])
    overhead_ns = COSTS.launch_latency_ns + COSTS.wake_ns
    assert host.now_ns == 6 * US + 500 * US + overhead_ns


def test_waiting_for_nothing_costs_the_call() -> None:
    """A wait for an idle device or stream takes only the time of the call."""
    host = make_host()
    host.wait_for_device(host.devices[0])
    assert host.now_ns == COSTS.synchronize_ns
    host.wait_for_stream(host.devices[0].streams[0])
    assert host.now_ns == COSTS.synchronize_ns + COSTS.wait_call_ns


def test_the_full_queue_blocks_the_host() -> None:
    """After a long kernel 1,021 launches return at once, and the next waits for the kernel."""
    host = make_host()
    slow = launch(host, 10_000_000)
    for _ in range(1_021):
        launch(host, US, host_ns=US)
    assert host.now_ns == 5_000 + 1_021 * US
    launch(host, US, host_ns=US)
    assert host.now_ns == (slow.end_ns or 0) + US


def test_first_use_is_charged_once() -> None:
    """Creating the context and loading a library take time once."""
    host = make_host(first_use=True)
    host.start_context()
    host.load("gemm")
    assert host.now_ns == 334_000_000 + 106_000_000
    host.start_context()
    host.load("gemm")
    assert host.now_ns == 440_000_000


def test_first_use_can_be_left_out() -> None:
    """With ``first_use=False`` context and libraries take no time."""
    host = make_host()
    host.start_context()
    host.load("conv")
    assert host.now_ns == 0


def test_reading_the_clock_takes_time() -> None:
    """Each reading of the clock takes 50 ns, so that a busy wait ends."""
    host = make_host()
    assert host.read_clock() == 50
    assert host.read_clock() == 100


def test_asking_lets_the_device_catch_up() -> None:
    """A query is true as soon as the host's time has passed the end of the task."""
    host = make_host()
    task = launch(host, 10 * US)
    assert not host.is_done(task)
    host.spend(20 * US)
    assert host.is_done(task)


def test_host_work_takes_time_by_its_bytes() -> None:
    """Host work takes the cost of the call and its bytes at 100 GB/s."""
    host = make_host()
    host.run(lambda: None, size_bytes=100_000_000)
    assert host.now_ns == 1_000_000 + COSTS.host_operation_ns


def test_giving_memory_back_takes_time_by_its_size() -> None:
    """A cudaFree takes 300 ns more for each mebibyte."""
    machine = Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False)
    took_ns = []
    for n_mib in (64, 256):
        before_ns = machine.host.now_ns
        machine.device_free(machine.gpu, n_mib << 20)
        took_ns.append(machine.host.now_ns - before_ns)
    assert took_ns[1] - took_ns[0] == (256 - 64) * 300


@pytest.mark.parametrize(("n_operators", "is_warm"), [(1, True), (4, True), (5, False)])
def test_a_short_loop_of_operators_is_warm(n_operators: int, *, is_warm: bool) -> None:
    """A loop of up to four operators costs their launches alone; in a longer one each is cold."""
    host = make_host()
    rounds_ns = []
    for _ in range(2):
        start_ns = host.now_ns
        for operator in range(n_operators):
            host.begin_operator(operator, 0, launch_ns=5_000, n_listed=0)
        rounds_ns.append(host.now_ns - start_ns)
    assert rounds_ns == [rounds_ns[0], 0 if is_warm else rounds_ns[0]]
    assert rounds_ns[0] > 0
