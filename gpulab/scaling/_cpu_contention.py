"""Find the CPU times that are too long because the work waited for a core of the host.

Threads of one call wait for each other. Where other programs occupy the cores, such a call takes
time slices of the scheduler, milliseconds each, however short its work is; all its samples agree.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.measurement import Finding
from gpulab.scaling._curve import Curve
from gpulab.scaling._curve_points import MeasureTask
from gpulab.scaling._intersection import size_text
from gpulab.sweeps import Point, Task
from gpulab.units import format_time

_THREADS = Path("/proc/self/task")  # Linux has it; elsewhere nothing is known and nothing said
_NS = 1e-9

_SHORTEST_WAIT_S = 0.5e-3  # a thread that is woken waits some microseconds, for a time slice ms
_LEAST_SHARE = 0.25  # a quiet host has about 0.01, one busy program for each core 0.5
_LEAST_OF_SAMPLES = 0.5  # fewer waits than that leave a median where it is
_LONGEST_OF_READING = 2.0  # a reading that holds a wait is no shorter; this much is scatter


@dataclass(frozen=True, slots=True)
class SchedulerCounters:
    """How the scheduler treated one thread.

    Attributes
    ----------
    ran_s
        Seconds on a core.
    waited_s
        Seconds in which it could have run and had no core. Sleep, or a lock, is not in it.
    n
        How often it was given a core.
    """

    ran_s: float = 0.0
    waited_s: float = 0.0
    n: int = 0

    def since(self, before: "SchedulerCounters") -> "SchedulerCounters":
        """Return what came after an earlier reading."""
        return SchedulerCounters(
            self.ran_s - before.ran_s, self.waited_s - before.waited_s, self.n - before.n
        )

    def wait_in(self, point: Point) -> float:
        """Return how long one wait within a point's median lasts, in seconds; 0 if none is."""
        if self.n < max(1, _LEAST_OF_SAMPLES * point.n_samples):
            return 0.0
        wait_s = self.waited_s / self.n
        fits = _SHORTEST_WAIT_S <= wait_s <= _LONGEST_OF_READING * point.median_s
        return wait_s if fits and self.waited_s >= _LEAST_SHARE * self._wanted_s else 0.0

    @property
    def _wanted_s(self) -> float:
        return self.ran_s + self.waited_s


class ContentionWatch:
    """Measures points, and notes which times of the CPU contain waits for a core.

    The scheduler's own counters tell it: no clock is read, real or virtual, and nothing happens
    within a timed interval.
    """

    def __init__(self, measure: MeasureTask) -> None:
        self._measure = measure
        self._waits: list[tuple[int, float]] = []

    @property
    def waits(self) -> tuple[tuple[int, float], ...]:
        """Sizes with such a time, each with the seconds of one wait."""
        return tuple(self._waits)

    def __call__(self, task: Task) -> Point:
        """Return the point of a task."""
        if task.on == "gpu":
            return self._measure(task)
        before = _read()
        point = self._measure(task)
        changes = (
            now.since(before.get(name, SchedulerCounters())) for name, now in _read().items()
        )
        wait_s = max((change.wait_in(point) for change in changes), default=0.0)
        if wait_s:
            self._waits.append((task.size, wait_s))
        return point


def _read() -> dict[str, SchedulerCounters]:
    """Return the counters of every thread of this process, by its name in the system."""
    found = {}
    for path in _THREADS.glob("*/schedstat"):
        # A thread may end meanwhile, and a system may count in another way.
        with suppress(OSError, ValueError):
            ran_ns, waited_ns, n = map(int, path.read_text("ascii").split())
            found[path.parent.name] = SchedulerCounters(ran_ns * _NS, waited_ns * _NS, n)
    return found


def contention_findings(curve: Curve) -> tuple[Finding, ...]:
    """Return the finding that some times of a curve contain waits for a core, if any do."""
    if not curve.waits:
        return ()
    sizes = ", ".join(size_text(size) for size, _ in curve.waits)
    longest_s = max(wait_s for _, wait_s in curve.waits)
    fewer = "" if curve.n_threads == 1 else " or ask for fewer threads (n_threads=1)"
    found = Finding(
        "waited-for-a-core",
        f"the host was short of cores: {len(curve.waits)} of {len(curve.sizes)} CPU readings "
        f"waited for one (n = {sizes}; up to {format_time(longest_s)} a wait) and came out too "
        "long",
        f"close other programs{fewer}, then run again",
    )
    return (found,)
