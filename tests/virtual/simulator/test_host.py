"""The host: its clock, the launch queue, waiting, and what the first use costs."""

from gpulab.gpus import gpu
from gpulab.virtual import Kind, StreamTask
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._host import Host, HostCosts
from gpulab.virtual.simulator._task import FixedDuration

US = 1_000
COSTS = HostCosts()


def make_host(*, first_use: bool = False) -> Host:
    """Make a host with a virtual H200."""
    return Host([SimulatedDevice(gpu("H200"))], first_use=first_use)


def launch(host: Host, duration_ns: int, host_ns: int = 5 * US) -> StreamTask:
    """Launch a kernel of a known duration."""
    task = StreamTask(
        Kind.KERNEL, host.devices[0].streams[0], name="k", demand=FixedDuration(duration_ns)
    )
    return host.launch(task, host_ns)


def test_a_launch_takes_host_time_only() -> None:
    """The host goes on while the kernel has not even started."""
    host = make_host()
    task = launch(host, 1_000 * US)
    assert (host.now_ns, task.start_ns) == (5 * US, None)


def test_waiting_takes_until_the_end_and_the_wake_up() -> None:
    """The reading holds the launch, its latency, the kernel and the wake-up."""
    host = make_host()
    host.wait(launch(host, 100 * US))
    overhead_ns = COSTS.launch_latency_ns + COSTS.wake_ns
    assert host.now_ns == 5 * US + 100 * US + overhead_ns


def test_waiting_for_the_device_waits_for_every_stream() -> None:
    """The longest stream decides."""
    host = make_host()
    side = host.devices[0].add_stream()
    launch(host, 10 * US)
    long = StreamTask(Kind.KERNEL, side, name="k", demand=FixedDuration(500 * US))
    host.launch(long, US)
    host.wait_for_device(host.devices[0])
    overhead_ns = COSTS.launch_latency_ns + COSTS.wake_ns
    assert host.now_ns == 6 * US + 500 * US + overhead_ns


def test_waiting_for_nothing_costs_the_call() -> None:
    """On an idle device a wait returns after its own overhead."""
    host = make_host()
    host.wait_for_device(host.devices[0])
    assert host.now_ns == COSTS.synchronize_ns
    host.wait_for_stream(host.devices[0].streams[0])
    assert host.now_ns == COSTS.synchronize_ns + COSTS.wait_call_ns


def test_the_full_queue_blocks_the_host() -> None:
    """Behind a long kernel 1,021 launches return at once; the next waits for the kernel."""
    host = make_host()
    slow = launch(host, 10_000_000)
    for _ in range(1_021):
        launch(host, US, host_ns=US)
    assert host.now_ns == 5_000 + 1_021 * US
    launch(host, US, host_ns=US)
    assert host.now_ns == (slow.end_ns or 0) + US


def test_first_use_is_charged_once() -> None:
    """The context and each library cost time the first time only."""
    host = make_host(first_use=True)
    host.start_context()
    host.load("gemm")
    assert host.now_ns == 334_000_000 + 106_000_000
    host.start_context()
    host.load("gemm")
    assert host.now_ns == 440_000_000


def test_first_use_can_be_left_out() -> None:
    """For exact tests nothing is charged."""
    host = make_host()
    host.start_context()
    host.load("conv")
    assert host.now_ns == 0


def test_looking_at_the_clock_costs_a_little() -> None:
    """A busy wait on the clock ends."""
    host = make_host()
    assert host.read_clock() == 50
    assert host.read_clock() == 100


def test_asking_lets_the_device_catch_up() -> None:
    """A query is true only once the host's time has passed the end."""
    host = make_host()
    task = launch(host, 10 * US)
    assert not host.is_done(task)
    host.spend(20 * US)
    assert host.is_done(task)


def test_host_work_takes_time_by_its_bytes() -> None:
    """20 GB/s and the cost of the call."""
    host = make_host()
    host.run(lambda: None, size_bytes=20_000_000)
    assert host.now_ns == 1_000_000 + COSTS.host_operation_ns
