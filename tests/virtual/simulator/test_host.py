"""The virtual host's clock advances by launches, waits, a full queue and first uses."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from gpulab.core.errors import VirtualGpuError
from gpulab.gpus import gpu
from gpulab.virtual import Kind, SimulatedStream, StreamTask
from gpulab.virtual.simulator import Machine, ValueLimits
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._host import Host, HostCosts
from gpulab.virtual.simulator._recorded_host import fitted_costs
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


@pytest.mark.parametrize(
    ("n_operators", "share"), [(1, 0), (4, 0), (5, 1 / 9), (7, 3 / 9), (13, 1), (40, 1)]
)
def test_the_longer_a_loop_the_colder_are_its_operators(n_operators: int, share: float) -> None:
    """A loop of four operators costs their launches alone; from 13 on each is as cold as new."""
    host = make_host()
    rounds_ns = []
    for _ in range(2):
        start_ns = host.now_ns
        for operator in range(n_operators):
            host.begin_operator(operator, 0, launch_ns=5_000, takes_lists=False)
        rounds_ns.append(host.now_ns - start_ns)
    new_ns, again_ns = rounds_ns
    assert again_ns == pytest.approx(new_ns * share, rel=1e-3)
    assert new_ns > 0


def test_the_first_launch_and_the_first_wait_create_the_context() -> None:
    """Whatever uses the device first takes the time of the context, once."""
    waits, launches = make_host(first_use=True), make_host(first_use=True)
    waits.wait_for_device(waits.devices[0])
    launch(launches, 0, host_ns=0)
    assert (waits.now_ns, launches.now_ns) == (334_000_000 + COSTS.synchronize_ns, 334_000_000)
    launch(launches, 0, host_ns=7)
    assert launches.now_ns == 334_000_007


def test_a_part_is_loaded_once_for_each_use_of_it() -> None:
    """Each ``what`` of a part is charged once, also when calls take no time."""
    host = make_host(first_use=True)
    for what in ("add", "mul", "add", None, None):
        host.load("kernel", what)
    assert host.now_ns == 3 * 400_000
    host.is_free = True
    host.load("random")
    host.is_free = False
    host.load("random")
    assert host.now_ns == 3 * 400_000


def test_a_free_call_takes_no_time() -> None:
    """While a library does the work in another way, neither calls nor operators are charged."""
    host = make_host()
    host.is_free = True
    host.spend(5)
    host.charge("view")
    assert host.now_ns == 0
    host.is_free = False
    host.charge("view", 3)
    host.charge("view")
    assert host.now_ns == 4 * fitted_costs()["view"]


@pytest.mark.parametrize(
    ("duration_ns", "later_ns", "took_ns"),
    [
        # The end is in the past, is now, and is a nanosecond away.
        (1_000, 3_801, 450),
        (1_000, 3_800, 450),
        (1_000, 3_799, 1 + 3_200),
        # The call takes as long as the rest of the wait, or longer.
        (1_000, 3_000, 800 + 3_200),
    ],
)
def test_a_wait_wakes_up_only_if_it_has_slept(
    duration_ns: int, later_ns: int, took_ns: int
) -> None:
    """A wait for finished work costs the call, and any other one until the end and a wake-up."""
    host = make_host()
    task = launch(host, duration_ns, host_ns=0)
    host.spend(later_ns)
    host.wait(task)
    assert host.now_ns == later_ns + took_ns


def test_a_wait_simulates_the_devices_and_raises_their_failure() -> None:
    """After a wait the devices are at the host's time; an error of the work is raised last."""
    host = make_host()
    side = host.devices[0].add_stream()
    first = launch(host, 1_000, host_ns=0)
    short = StreamTask(Kind.KERNEL, side, name="k", demand=FixedDuration(3_000))
    host.launch(short, 0)
    host.devices[0].event_queue.keep_failure(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        host.wait(first)
    assert (host.now_ns, short.end_ns) == (7_000, 5_800)


def test_a_question_takes_time_and_its_answer_is_of_the_end_of_it() -> None:
    """A query takes 250 ns, and sees what ends in that time; no task counts as done."""
    host = make_host()
    task = launch(host, 1_000, host_ns=0)
    host.spend(3_800 - 501)
    assert [host.is_done(task), host.is_done(task), host.is_done(task)] == [False, False, True]
    assert (host.now_ns, host.is_done(None)) == (3_800 + 249, True)


def test_the_queue_of_one_device_does_not_block_another() -> None:
    """A full launch queue delays launches on its own device, and those only until it has room."""
    machine = Machine(gpu("H200"), ValueLimits(0, 0.0, 0), first_use=False, count=2)
    first, second = (each.device.streams[0] for each in machine.gpus)
    machine.host.costs = HostCosts(queue_depth=2)

    def launched_ns(stream: SimulatedStream) -> int:
        task = StreamTask(Kind.KERNEL, stream, name="k", demand=FixedDuration(10_000))
        machine.host.launch(task, 100)
        return machine.host.now_ns

    assert [launched_ns(first) for _ in range(2)] == [100, 200]
    assert [launched_ns(second) for _ in range(2)] == [300, 400]
    # The first kernel was visible at 2.9 µs, and ends at 12.9.
    assert launched_ns(first) == 12_900 + 100
    machine.host.spend(20_000)
    assert launched_ns(first) == 13_000 + 20_000 + 100


def test_host_work_reads_what_the_device_has_done_by_then() -> None:
    """Before CPU work the device is simulated up to now; its time is exact for a petabyte, too."""
    host = make_host()
    task = launch(host, 1_000, host_ns=0)
    host.spend(3_800)
    seen = list[int | None]()
    host.run(lambda: seen.append(task.end_ns), size_bytes=10**15)
    assert (seen, host.now_ns) == ([3_800], 3_800 + 1_300 + 10**13)


@dataclass(frozen=True)
class Operator:
    """An operator, and what the program was doing."""

    launch_ns: int = 999_000
    takes_lists: bool = False
    n_new: int = 0
    n_backward: int = 0
    is_updating: bool = False


OVER_LISTS = ["operator over lists"]


@pytest.mark.parametrize(
    ("operator", "cold", "warm"),
    [
        (Operator(), ["operator"], []),
        (Operator(is_updating=True), ["operator of an optimizer"], []),
        (Operator(n_new=2), ["recording", "recorded operator"], ["recording"]),
        (Operator(n_new=2, is_updating=True), ["recording", "recorded operator"], ["recording"]),
        (Operator(n_backward=1), ["operator in backward"], ["operator in backward"]),
        (Operator(launch_ns=0), ["view"], []),
        (Operator(launch_ns=0, n_backward=1), ["view"], []),
        (Operator(launch_ns=0, takes_lists=True), OVER_LISTS, []),
        (Operator(takes_lists=True, n_backward=1), OVER_LISTS, []),
    ],
)
def test_an_operator_costs_what_was_fitted_for_its_kind(
    operator: Operator, cold: list[str], warm: list[str]
) -> None:
    """An operator that did not run lately costs its kind and its long launch; then it is warm."""
    host = make_host()
    host.n_backward, host.is_updating = operator.n_backward, operator.is_updating
    times = {"recording": operator.n_new}
    n_recorded = 10
    host.skip_recorded(n_recorded)
    for parts in (cold, warm):
        n_recorded += operator.n_new
        expected_ns = host.now_ns + sum(
            fitted_costs()[part] * times.get(part, 1) for part in parts
        )
        # Each whole microsecond of the launch of an operator that is not over lists.
        if parts[-1:] not in ([], ["view"], ["recording"], OVER_LISTS):
            expected_ns += 999 * fitted_costs()["cold microsecond"]
        host.begin_operator(
            "add", n_recorded, launch_ns=operator.launch_ns, takes_lists=operator.takes_lists
        )
        assert host.now_ns == expected_ns


def test_a_step_that_follows_another_one_takes_a_tenth_of_its_python() -> None:
    """The caches are warm if at most four operators have run in between, which are cold."""
    host, costs_ns = make_host(), []
    for n_between in (0, 4, 5):
        before, start_ns = host.begin_step(), host.now_ns
        host.charge("optimizer step")
        costs_ns.append(host.now_ns - start_ns)
        host.end_step(before)
        for number in range(n_between):
            host.begin_operator((n_between, number), 0, launch_ns=0, takes_lists=False)
    assert costs_ns == [fitted_costs()["optimizer step"] // part for part in (1, 10, 10)]


@pytest.mark.parametrize(
    "call",
    [
        lambda host: launch(host, US),
        lambda host: host.run(lambda: None, size_bytes=0),
        lambda host: host.begin_operator("add", 0, launch_ns=0, takes_lists=False),
    ],
)
def test_operators_are_refused_while_values_are_computed(call: Callable[[Host], object]) -> None:
    """An operator that the simulator runs on values is no operator of the program."""
    host = make_host()
    task = launch(host, US)
    task.payload = lambda _seed: call(host)
    with pytest.raises(VirtualGpuError, match="its own work on values for an operator"):
        host.wait(task)
