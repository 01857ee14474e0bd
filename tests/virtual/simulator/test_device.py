"""Tasks of a simulated device start and end at exact nanoseconds."""

import pytest

from gpulab.core.errors import VirtualGpuError
from gpulab.gpus import gpu
from gpulab.virtual import (
    KernelWork,
    Kind,
    ModelledKernel,
    SimulatedRegime,
    SimulatedStream,
    StreamTask,
    power_draw,
)
from gpulab.virtual.simulator import _device
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._l2_cache import CacheAccess
from gpulab.virtual.simulator._task import FixedDuration, SpinCycles
from gpulab.virtual.simulator._thermal import REST

H200 = gpu("H200")
US = 1_000


def kernel(
    stream: SimulatedStream, duration_ns: int, n_sms: int = 1, *waits_for: StreamTask
) -> StreamTask:
    """Return a kernel of a fixed duration."""
    return StreamTask(
        Kind.KERNEL,
        stream,
        name="k",
        demand=FixedDuration(duration_ns, n_sms),
        waits_for=waits_for,
    )


def mark(stream: SimulatedStream, *waits_for: StreamTask) -> StreamTask:
    """Return the mark of an event."""
    return StreamTask(Kind.MARK, stream, name="event", waits_for=waits_for)


def modelled(stream: SimulatedStream, n_flops: int = 0, n_bytes: int = 0) -> StreamTask:
    """Return a kernel whose duration the cost model gives."""
    accesses = (CacheAccess(1, n_bytes, is_write=False),) if n_bytes else ()
    demand = ModelledKernel(KernelWork("elementwise", "float32", n_flops, 1 << 21), accesses)
    return StreamTask(Kind.KERNEL, stream, name="modelled", demand=demand)


def run(
    device: SimulatedDevice, *tasks: StreamTask, visible_ns: int = 0
) -> list[tuple[int | None, int | None]]:
    """Submit the tasks, finish them all and return their starts and ends."""
    for task in tasks:
        device.submit(task, visible_ns)
    for task in tasks:
        device.finish(task)
    return [(task.start_ns, task.end_ns) for task in tasks]


def test_a_pair_of_marks_around_a_kernel_reads_it_and_a_floor() -> None:
    """Two marks around a kernel of any length are its duration and 2.6 µs apart."""
    for duration_ns in (1 * US, 1_000 * US):
        device = SimulatedDevice(H200)
        stream = device.streams[0]
        start, end = mark(stream), mark(stream)
        run(device, mark(stream), start, kernel(stream, duration_ns), end)
        assert (end.end_ns or 0) - (start.end_ns or 0) == duration_ns + 2_600


def test_an_empty_pair_of_marks_reads_1250_ns() -> None:
    """Two marks with nothing between them are 1.25 µs apart."""
    device = SimulatedDevice(H200)
    start, end = (mark(device.streams[0]) for _ in range(2))
    run(device, start, end)
    assert (end.end_ns or 0) - (start.end_ns or 0) == 1_250


def test_the_default_stream_does_not_fence_side_streams() -> None:
    """A long kernel on stream 0 does not delay side streams, which are non-blocking."""
    device = SimulatedDevice(H200)
    side, other = device.add_stream(), device.add_stream()
    times = run(
        device,
        kernel(side, 500 * US),
        kernel(device.streams[0], 500 * US),
        kernel(other, 500 * US),
    )
    assert times == [(0, 500 * US)] * 3


def test_waiting_in_a_circle_is_refused() -> None:
    """A stream that waits for a later task of its own raises an error."""
    device = SimulatedDevice(H200)
    behind = kernel(device.streams[0], US)
    device.submit(mark(device.streams[0], behind), 0)
    device.submit(behind, 0)
    with pytest.raises(VirtualGpuError, match="this waits for work that can never run: "):
        device.finish(behind)


def test_the_last_hundred_records_are_stored_and_a_keeper_stores_all() -> None:
    """``records`` shows the last 100 tasks; a keeper shows those that ended in its block."""
    device = SimulatedDevice(H200)

    def names(n: int) -> list[str]:
        tasks = [StreamTask(Kind.MARK, device.streams[0], name=f"{n}.{i}") for i in range(n)]
        run(device, *tasks)
        return [task.name for task in tasks]

    early = names(3)
    with device.keeping_records() as outer, device.keeping_records() as inner:
        late = names(100 - 2)
        kept = [record.name for record in inner()]
    with device.keeping_records():
        names(1)
    assert kept == [record.name for record in outer()] == late
    assert [record.name for record in device.records()] == [early[-1], *late, "1.0"]
    device.forget_records()
    assert device.records() == []


def test_a_payload_gets_the_seed_and_its_error_goes_to_the_next_wait() -> None:
    """A payload is called once, with 0 if nothing was drawn; an error in it stops nothing."""
    device, seeds = SimulatedDevice(H200), list[int]()
    tasks = [kernel(device.streams[0], US) for _ in range(2)]
    tasks[0].payload, tasks[1].payload = seeds.append, lambda seed: seeds.append(1 // seed)
    assert run(device, *tasks) == [(0, US), (2 * US, 3 * US)]
    assert (seeds, tasks[0].payload) == ([0], None)
    with pytest.raises(ZeroDivisionError):
        device.event_queue.raise_failure()


def fail(*_: object) -> int:
    """Stand in for a cost model with a mistake."""
    raise ZeroDivisionError


def test_a_kernel_whose_duration_fails_takes_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation goes on, and the next call that waits raises the error with a note."""
    device = SimulatedDevice(H200)
    monkeypatch.setattr(_device, "duration_ns", fail)
    stream = device.streams[0]
    assert run(device, modelled(stream), kernel(stream, US)) == [(0, 0), (1_000, 2_000)]
    with pytest.raises(ZeroDivisionError) as caught:
        device.event_queue.raise_failure()
    assert caught.value.__notes__ == [
        "The error is in gpulab's model of modelled, which was launched earlier."
    ]


@pytest.mark.parametrize(("n_flops", "n_bytes"), [(0, 0), (10**12, 0), (0, 1 << 30)])
def test_a_modelled_kernel_draws_the_power_of_its_work(n_flops: int, n_bytes: int) -> None:
    """Without arithmetic and traffic it draws the power of rest, else that of the model."""
    device, alone = SimulatedDevice(H200), SimulatedRegime(H200)
    ((start_ns, end_ns),) = run(device, modelled(device.streams[0], n_flops, n_bytes))
    took_ns = (end_ns or 0) - (start_ns or 0)
    load = REST
    if n_flops or n_bytes:
        load = power_draw("float32", n_flops, n_bytes, took_ns, H200)
        assert load != REST
    check_regime(device, alone, load, took_ns)


def check_regime(
    device: SimulatedDevice, alone: SimulatedRegime, load: object, took_ns: int
) -> None:
    """Check that the device was under this load for this time, and is at rest again."""
    alone.start(0, load)  # type: ignore[arg-type] # a PowerDraw
    alone.end(took_ns, load)  # type: ignore[arg-type] # as above
    for now_ns in (150 * US**2, 300 * US**2):
        assert device.regime.energy_mj(now_ns) == alone.energy_mj(now_ns)
        assert device.regime.utilization(now_ns) == alone.utilization(now_ns)


def test_half_the_clock_doubles_arithmetic_and_spins() -> None:
    """At a locked clock a kernel takes the model's time for it, and a spin its cycles."""
    times: list[list[int]] = []
    for highest_mhz in (1_980, 990):
        device = SimulatedDevice(H200)
        device.regime.lock(0, highest_mhz)
        stream = device.streams[0]
        spin = StreamTask(Kind.KERNEL, stream, name="spin", demand=SpinCycles(1_980_000))
        done = run(device, modelled(stream, 10**11), spin)
        times.append([(end or 0) - (start or 0) for start, end in done])
    (burst_ns, spin_ns), (slow_ns, slow_spin_ns) = times
    assert (spin_ns, slow_spin_ns) == (1_000_000, 2_000_000)
    assert slow_ns > 1.9 * burst_ns
