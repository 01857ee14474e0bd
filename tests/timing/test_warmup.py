"""Warm-up ends when the times are steady, and finds out whether the work waits."""

import time
from collections.abc import Callable

import pytest
import torch

from gpulab.gpus import gpu
from gpulab.timing._warmup import warm_up
from gpulab.virtual.simulator import HostCosts

pytestmark = pytest.mark.usefixtures("gpu")


HOST = HostCosts()
CYCLES_PER_US = gpu("H200").boost_clock_mhz


def sleep_us(duration_us: int) -> None:
    """Enqueue a kernel of exactly this length."""
    torch.cuda._sleep(duration_us * CYCLES_PER_US)


def durations(*first_us: int, then_us: int = 100) -> tuple[Callable[[], None], list[int]]:
    """Return work whose kernels last this long, in turn, and the list of its calls."""
    called: list[int] = []

    def work() -> None:
        called.append(first_us[len(called)] if len(called) < len(first_us) else then_us)
        sleep_us(called[-1])

    return work, called


def test_slow_first_calls_are_waited_for() -> None:
    """After eight slow calls, six fast ones are steady, and one more call is the probe."""
    work, called = durations(9_000, 4_000, 2_000, 1_000, 900, 800, 600, 300)
    assert warm_up(work, n_calls=None, max_time_s=1.0).n_calls == 8 + 6 + 1
    assert len(called) == 15


def test_work_that_never_gets_steady_is_given_up() -> None:
    """Calls that get slower and slower end after 100."""
    work, _ = durations(*(round(100 * 1.1**n) for n in range(120)))
    assert warm_up(work, n_calls=None, max_time_s=100.0).n_calls == 100 + 1


def test_slow_work_is_ended_by_the_time() -> None:
    """Four calls of 30 ms exceed a limit of 0.1 s and end the warm-up."""
    work, _ = durations(then_us=30_000)
    assert warm_up(work, n_calls=None, max_time_s=0.1).n_calls == 4 + 1


def test_times_of_a_call() -> None:
    """`host_s` is launch, event and clock; `call_s` lasts until the host wakes up."""
    learnt = warm_up(durations()[0], n_calls=4, max_time_s=1.0)
    host_ns = HOST.sleep_launch_ns + HOST.event_record_ns + HOST.clock_read_ns
    assert round(learnt.host_s * 1e9) == host_ns
    assert 100e-6 < learnt.call_s < 120e-6


def test_host_time_is_the_least_and_call_time_of_the_last_calls() -> None:
    """Six slow calls of twelve raise neither the host time nor the call time."""
    slow: list[None] = []

    def work() -> None:
        slow.append(None)
        time.sleep(0.05 if len(slow) <= 6 else 0.0)
        sleep_us(50_000 if len(slow) <= 6 else 100)

    learnt = warm_up(work, n_calls=12, max_time_s=1.0)
    assert learnt.host_s < 20e-6
    assert learnt.call_s < 120e-6


@pytest.mark.parametrize(
    "wait",
    [
        torch.cuda.synchronize,
        lambda: torch.cuda.current_stream().synchronize(),
        lambda: torch.ones(1, device="cuda").item(),
        lambda: torch.ones(1, device="cuda").cpu(),
        lambda: repr(torch.ones(1, device="cuda")),
    ],
)
def test_work_that_waits_is_found(wait: Callable[[], object]) -> None:
    """The probe detects each usual way to wait, hidden ones such as `repr` included."""

    def work() -> None:
        sleep_us(100)
        wait()

    assert warm_up(work, n_calls=None, max_time_s=1.0).synchronizes is True


def test_full_launch_queue_counts_as_waiting() -> None:
    """A call with more launches than the queue can store blocks, so it counts as waiting."""

    def work() -> None:
        for _ in range(HOST.queue_depth + 10):
            sleep_us(1)

    assert warm_up(work, n_calls=3, max_time_s=1.0).synchronizes is True


def test_probe_outlasts_a_slow_host() -> None:
    """Python that takes 100 ms does not count as a wait."""

    def work() -> None:
        time.sleep(0.1)
        sleep_us(100)

    assert warm_up(work, n_calls=3, max_time_s=1.0).synchronizes is False
