"""Find CPU times that are too long because the work waited for a core of the host.

The threads of a call wait for each other. If other programs occupy the cores, even a short call
waits for time slices of the scheduler, of milliseconds each. All samples wait, so their spread
does not show it.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpulab.core.units import counted, format_time
from gpulab.device.measurement import Finding
from gpulab.roofline.scaling._curve import Curve
from gpulab.roofline.scaling._curve_points import MeasureTask
from gpulab.roofline.scaling._intersection import size_text
from gpulab.workloads.sweeps import Point, Task

_THREADS = Path("/proc/self/task")  # only Linux has it; on other systems there is no finding
_NS = 1e-9

# A thread that is woken waits some microseconds; a thread without a core waits milliseconds.
_SHORTEST_WAIT_S = 0.5e-3
# Least share of time spent waiting. It is about 0.01 on a quiet host, and 0.5 with one other busy
# program on each core.
_LEAST_SHARE = 0.25
_LEAST_OF_SAMPLES = 0.5  # with fewer waits per sample, the median does not change
# A sample that contains a wait is at least as long as the wait; the factor allows for scatter.
_LONGEST_OF_READING = 2.0


@dataclass(frozen=True, slots=True)
class SchedulerCounters:
    """The scheduler's counters for one thread: seconds on a core, and how often it got one.

    ``waited_s`` is how long it could have run but had no core, without sleep and waits for locks.
    """

    ran_s: float = 0.0
    waited_s: float = 0.0
    n: int = 0

    def since(self, before: "SchedulerCounters") -> "SchedulerCounters":
        """Return the increase since an earlier reading."""
        return SchedulerCounters(
            self.ran_s - before.ran_s, self.waited_s - before.waited_s, self.n - before.n
        )

    def wait_in(self, point: Point) -> float:
        """Return the seconds of one wait that a point's median includes; 0 if it includes none."""
        # How often it got a core is about how often it had to wait for one.
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

    It reads the scheduler's counters before and after a point. It reads no clock, real or
    virtual, and does nothing inside a timed interval.
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
        # The longest, as a call is done only when its last thread is.
        wait_s = max((change.wait_in(point) for change in changes), default=0.0)
        if wait_s:
            self._waits.append((task.size, wait_s))
        return point


def _read() -> dict[str, SchedulerCounters]:
    """Return the counters of every thread of this process, by its name in the system."""
    counters = {}
    for path in _THREADS.glob("*/schedstat"):
        # A thread may end meanwhile, and the format may differ on some systems.
        with suppress(OSError, ValueError):
            ran_ns, waited_ns, n = map(int, path.read_text("ascii").split())
            counters[path.parent.name] = SchedulerCounters(ran_ns * _NS, waited_ns * _NS, n)
    return counters


def contention_findings(curve: Curve) -> tuple[Finding, ...]:
    """Return a finding if some times of a curve contain waits for a core."""
    if not curve.waits:
        return ()
    sizes = ", ".join(size_text(size) for size, _ in curve.waits)
    longest_s = max(wait_s for _, wait_s in curve.waits)
    fewer = "" if curve.n_threads == 1 else " or ask for fewer threads (n_threads=1)"
    finding = Finding(
        "waited-for-a-core",
        f"the host had too few free cores: waits for a core are part of {len(curve.waits)} of "
        f"{counted(len(curve.sizes), 'CPU time')} (n = {sizes}; up to {format_time(longest_s)} "
        "per wait), which are too long",
        f"close other programs{fewer}, then run again",
    )
    return (finding,)
