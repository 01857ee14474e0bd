"""Kernels share the multiprocessors in the order of their arrival, to the nanosecond."""

import pytest

from gpulab.gpus import gpu
from gpulab.virtual import Kind, StreamTask
from gpulab.virtual.simulator._device import SimulatedDevice
from gpulab.virtual.simulator._task import FixedDuration


def ends_ns(device: SimulatedDevice, *kernels: tuple[int, int, int]) -> list[tuple[int, int]]:
    """Run kernels, each on its own stream: launch time, duration and multiprocessors."""
    tasks = []
    for visible_ns, duration_ns, n_sms in kernels:
        demand = FixedDuration(duration_ns, n_sms)
        task = StreamTask(Kind.KERNEL, device.add_stream(), name="k", demand=demand)
        device.submit(task, visible_ns)
        tasks.append(task)
    device.drain_to(0)
    return [(task.start_ns or 0, task.end_ns or 0) for task in tasks]


def test_at_most_128_kernels_run_at_once() -> None:
    """The 129th kernel waits for an end, although multiprocessors are free."""
    device = SimulatedDevice(gpu("H200"))
    found = ends_ns(device, (0, 500, 1), *[(0, 1_000, 1)] * 127, (0, 1_000, 1), (0, 1_000, 1))
    assert found == [(0, 500), *[(0, 1_000)] * 127, (500, 1_500), (1_000, 2_000)]


@pytest.mark.parametrize(
    ("kernels", "expected"),
    [
        # One multiprocessor of three: a third of the speed, until the first kernel has ended.
        ([(0, 100, 131), (0, 100, 3)], [(0, 100), (0, 100 + 67)]),
        # A share that is no whole number of nanoseconds ends late, never early.
        ([(0, 100, 131), (0, 30, 3)], [(0, 100), (0, 90)]),
        ([(0, 10, 131), (0, 1, 132)], [(0, 10), (0, 11)]),
        # A kernel that arrives later takes nothing from those that run.
        ([(0, 100, 100), (50, 100, 132)], [(0, 100), (50, 188)]),
        # One that wants little runs beside one that has what it wants.
        ([(0, 100, 60), (0, 50, 60), (0, 100, 60)], [(0, 100), (0, 50), (0, 140)]),
        # Kernels without any duration end at once, also while others run.
        ([(0, 100, 100), (10, 0, 132), (20, 0, 1)], [(0, 100), (10, 10), (20, 20)]),
        # The kernel that has waited longest starts first.
        ([(0, 10, 132), (1, 10, 132), (2, 10, 132)], [(0, 10), (10, 20), (20, 30)]),
    ],
)
def test_kernels_share_the_multiprocessors(
    kernels: list[tuple[int, int, int]], expected: list[tuple[int, int]]
) -> None:
    """Each kernel gets what earlier ones leave free, and more when they end."""
    assert ends_ns(SimulatedDevice(gpu("H200")), *kernels) == expected
