"""The simple methods are exact on the virtual GPU: a 100 µs kernel, timed in three ways."""

import gc
from collections.abc import Callable
from functools import partial

import pytest
import torch

from gpulab.device.work import collector_paused
from gpulab.gpus import gpu
from gpulab.timing import (
    _event_pairs,
    take_samples,
)
from gpulab.virtual import VirtualGpu
from gpulab.virtual.simulator import HostCosts
from gpulab.virtual.simulator._recorded_host import cold_host

HOST = HostCosts()
COLD = cold_host()
KERNEL_NS = 100_000
naive, synchronized, events = (
    partial(take_samples, name) for name in ("naive", "synchronized", "events")
)
N_CYCLES = KERNEL_NS * gpu("H200").boost_clock_mhz // 1000


def kernel() -> None:
    """Enqueue a kernel of exactly 100 µs."""
    torch.cuda._sleep(N_CYCLES)


def cold_launch_ns(idle_ns: int) -> int:
    """Return the host's time of a launch after ``idle_ns`` without one."""
    return round(HOST.sleep_launch_ns * COLD.slowdown(idle_ns))


def ns(samples_s: list[float]) -> list[int]:
    """Return the samples in whole nanoseconds."""
    return [round(sample_s * 1e9) for sample_s in samples_s]


@pytest.mark.usefixtures("gpu")
def test_naive_reads_the_launch_alone() -> None:
    """For 100 µs of work, naive timing reads the launch and one read of the clock.

    Each sample but the first comes after a wait for the kernel before it.
    """
    first_ns, *later_ns = ns(naive(kernel, n_samples=3))
    assert first_ns == HOST.sleep_launch_ns + HOST.clock_read_ns
    assert later_ns == pytest.approx(
        [cold_launch_ns(KERNEL_NS) + HOST.clock_read_ns] * 2, rel=0.01
    )


@pytest.mark.usefixtures("gpu")
def test_naive_drains_the_device_between_samples() -> None:
    """Each sample starts on an idle device, so that a full queue never blocks the host."""
    # Each sample but the first finds the host cold after a wait, and all of them equally.
    assert len(set(ns(naive(kernel, n_samples=1_100))[1:])) == 1
    assert torch.cuda.current_stream().query()


@pytest.mark.parametrize(("n_samples", "inner_loops"), [(120, 1), (20, 100), (2, 790)])
def test_events_never_fill_the_launch_queue(
    gpu: VirtualGpu, n_samples: int, inner_loops: int
) -> None:
    """Fewer launches wait in the queue than would block the host, for any counts."""
    pending = []

    def work() -> None:
        pending.append(gpu.machine.gpu.device.n_pending)
        kernel()

    assert len(events(work, n_samples=n_samples, inner_loops=inner_loops)) == n_samples
    assert max(pending) < 800 < HOST.queue_depth
    assert len(pending) == n_samples * inner_loops


@pytest.mark.usefixtures("gpu")
def test_events_are_made_before_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """No event is created or first recorded between the samples, as that takes time."""
    made: list[torch.cuda.Event] = []
    first_records = []
    new_event = _event_pairs.new_event

    def counted() -> torch.cuda.Event:
        made.append(new_event())
        return made[-1]

    def work() -> None:
        first_records.append(sum(event.cuda_event == 0 for event in made))

    monkeypatch.setattr(_event_pairs, "new_event", counted)
    events(work, n_samples=60)
    assert len(made) == 100
    assert first_records == [0] * 60


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("method", [naive, synchronized, events])
def test_collector_is_off_while_sampling_and_back_after_an_error(
    method: Callable[..., list[float]],
) -> None:
    """The garbage collector is off during samples and on again after an error."""
    seen = []

    def work() -> None:
        seen.append(gc.isenabled())
        if len(seen) == 3:
            raise ValueError("third call")

    assert gc.isenabled()
    with pytest.raises(ValueError, match=r"^third call$"):
        method(work, n_samples=5)
    assert gc.isenabled()
    assert seen == [False] * 3


def test_collector_that_was_off_stays_off() -> None:
    """A collector that the user switched off is not switched on."""
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
