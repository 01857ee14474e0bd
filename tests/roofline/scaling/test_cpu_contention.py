"""The scheduler's counters reveal a busy host; here the scheduler is a folder of files."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpulab import virtual_gpu
from gpulab.roofline.scaling import _cpu_contention, crossover
from gpulab.roofline.scaling._cpu_contention import ContentionWatch
from gpulab.workloads.sweeps import Point, Task

CPU = Task("matmul", 64, on="cpu")
# From two busy programs on two cores: 16 ms instead of 7 us, half of the time without a core.
BUSY = (0.15, 0.15, 38)


class Scheduler:
    """A fake of Linux' counters for the threads of a process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def spend(self, thread: int, ran_s: float, waited_s: float, n: int) -> None:
        """Add seconds on a core, seconds waiting for one, and turns to a thread's counters."""
        path = self.folder / str(thread) / "schedstat"
        path.parent.mkdir(exist_ok=True)
        old = map(int, path.read_text().split()) if path.exists() else (0, 0, 0)
        more = (round(ran_s * 1e9), round(waited_s * 1e9), n)
        path.write_text(" ".join(str(one + two) for one, two in zip(old, more, strict=True)))

    def end(self, thread: int) -> None:
        """Remove a thread."""
        (self.folder / str(thread) / "schedstat").unlink()


@pytest.fixture
def scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """Return a fake scheduler with one thread that has run and waited before."""
    monkeypatch.setattr(_cpu_contention, "_THREADS", tmp_path)
    made = Scheduler(tmp_path)
    made.spend(11, 100.0, 100.0, 1000)
    return made


def point(task: Task, time_s: float = 16e-3, n_samples: int = 10) -> Point:
    """Return a point with this time."""
    ends = {"median_s": time_s, "low_s": time_s, "high_s": time_s}
    return Point(task, **ends, n_samples=n_samples, device_name="Some device")


def waits_of(found: Point, happens: Callable[[], None]) -> tuple[tuple[int, float], ...]:
    """Return the waits noted while a point is taken and `happens` runs."""

    def take(task: Task) -> Point:
        happens()
        return replace(found, task=task)

    watch = ContentionWatch(take)
    assert watch(found.task) == found
    return watch.waits


def test_a_thread_that_ends_is_left_out(scheduler: Scheduler) -> None:
    """A thread that has ended is ignored, as its counters are gone."""
    scheduler.spend(12, 1.0, 1.0, 1)
    assert waits_of(point(CPU), lambda: scheduler.end(12)) == ()


@pytest.mark.parametrize("text", ["", "0 0 0", "no counters here", "1 2 3 4"])
def test_other_counters_say_nothing(scheduler: Scheduler, text: str) -> None:
    """Unreadable or empty counters cast doubt on no reading."""
    path = scheduler.folder / "11" / "schedstat"
    assert waits_of(point(CPU), lambda: path.write_text(text) and None) == ()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch, scheduler: Scheduler) -> None:
    """Take every point of a crossover on a host that is busy at one size."""

    def given(task: Task, *, precision: float, max_time_s: float) -> Point:
        del precision, max_time_s
        if task.size == 64:
            scheduler.spend(11, *BUSY)
        return point(task)

    monkeypatch.setattr("gpulab.roofline.scaling._crossover.take", given)


@pytest.mark.usefixtures("measured")
def test_a_crossover_reports_a_busy_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings and details report the waits, without reading any clock."""

    def never() -> float:
        raise AssertionError

    with virtual_gpu("H200"), monkeypatch.context() as patch:
        for clock in ("perf_counter", "time", "monotonic", "process_time"):
            patch.setattr(time, clock, never)
        found = crossover("matmul", [32, 64, 128], progress=False)
    (doubt,) = found.findings
    assert doubt.message.startswith(
        "the host had too few free cores: waits for a core are part of 1 of 3 CPU times (n = 64; "
        "up to 3.95 ms"
    )
    assert found.details.splitlines()[-1] == f"  {doubt}"
    assert (found.gpu.waits, found.bare.waits) == ((), ())


@pytest.mark.parametrize(
    ("spent", "time_s", "n_samples", "is_told"),
    [
        pytest.param((0.15, 0.15, 15), 16e-3, 30, True, id="half as many turns as samples"),
        pytest.param((0.15, 0.15, 14), 16e-3, 30, False, id="less than half as many"),
        pytest.param((0.29, 0.11, 20), 16e-3, 30, True, id="more than a quarter of the time"),
        pytest.param((0.31, 0.09, 20), 16e-3, 30, False, id="less than a quarter"),
        pytest.param((0.15, 0.15, 15), 5.1e-3, 10, True, id="less than twice the reading"),
        pytest.param((0.15, 0.15, 15), 4.9e-3, 10, False, id="more than twice the reading"),
        pytest.param((5.1e-3, 5.1e-3, 10), 16e-3, 10, True, id="more than half a millisecond"),
        pytest.param((4.9e-3, 4.9e-3, 10), 16e-3, 10, False, id="less than half a millisecond"),
    ],
)
def test_waits_are_noted_from_their_limits_on(
    scheduler: Scheduler,
    spent: tuple[float, float, int],
    time_s: float,
    n_samples: int,
    is_told: bool,  # noqa: FBT001 # a parameter of the test
) -> None:
    """Waits are noted from these limits of number, share and length on."""
    found = waits_of(point(CPU, time_s, n_samples), lambda: scheduler.spend(11, *spent))
    assert bool(found) == is_told
