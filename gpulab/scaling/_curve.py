"""The times of one workload on one device over sizes, with the line fitted through them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpulab.errors import InvalidOptionError
from gpulab.provenance import device_label
from gpulab.requirements import Requirement, items_of
from gpulab.scaling._latency_bandwidth_fit import Array, Fit, fit_line
from gpulab.sweeps import Point, Task
from gpulab.workloads import workload

_CLEARLY = 0.9  # of the other's misfit; what grows in proportion would be chosen by rounding
_SMALLEST_SHARE = 1e-6  # of a median, for an interval that reaches zero: it has no logarithm


@dataclass(frozen=True, slots=True)
class Curve:
    """Times of one side over sizes, each with its 95 % interval.

    Attributes
    ----------
    on
        ``"cpu"`` or ``"gpu"``.
    sizes
        Sizes that have a time, smallest first.
    median_s, low_s, high_s
        Time of a call at each size and its interval, in seconds.
    source
        ``"measured"``, ``"recorded"`` or ``"virtual"``.
    device_name
        The GPU's or the CPU's.
    how
        What the times hold, e.g. ``"2 threads"`` or ``"transfers both"``.
    n_threads
        Threads that the CPU's work was given; None on the GPU, or where torch was left as set.
    missing
        Sizes without a time, each with the reason.
    waits
        Sizes whose times hold waits for a core of the host, each with the seconds of one wait.
        Known where the CPU was measured now, on Linux.
    fit
        The line through the points; None with fewer than two of them.
    """

    on: str
    sizes: tuple[int, ...]
    median_s: tuple[float, ...]
    low_s: tuple[float, ...]
    high_s: tuple[float, ...]
    source: str
    device_name: str
    how: str = ""
    n_threads: int | None = None
    missing: tuple[tuple[int, str], ...] = ()
    waits: tuple[tuple[int, float], ...] = ()
    fit: Fit | None = None

    @property
    def fixed_s(self) -> float | None:
        """Fixed cost of the line, in seconds; None without a line."""
        return None if self.fit is None else self.fit.fixed_s

    @property
    def slope_s(self) -> float | None:
        """Slope of the line, in seconds for each FLOP or byte; None without a line."""
        return None if self.fit is None else self.fit.slope_s

    @property
    def name(self) -> str:
        """Side, device and source, as a plot's label: a virtual GPU never reads as a real one."""
        how = f", {self.how}" if self.how else ""
        return f"{self.on.upper()}: {device_label(self.device_name, self.source)}{how}"

    def at(self, sizes: Iterable[int]) -> tuple[Array, Array]:
        """Return logarithms at some of its sizes: of the times, and how far down and up they go.

        Parameters
        ----------
        sizes
            Sizes that it has times for.
        """
        known = Requirement(f"one of {self.sizes}", lambda size: size in self.sizes)
        index = [self.sizes.index(size) for size in items_of("sizes", sizes, known)]
        # Logarithms, because curves that cross over six decades are straight in them, not in time.
        middle, low, high = (
            np.array(times)[index] for times in (self.median_s, self.low_s, self.high_s)
        )
        low = np.maximum(low, _SMALLEST_SHARE * middle)
        return np.log(middle), np.stack([np.log(middle / low), np.log(high / middle)])

    def __str__(self) -> str:
        return f"{self.name}: {self.fit or 'too few points for a line'}"


def curve_of(points: Sequence[Point]) -> Curve:
    """Make a curve of the points of one workload, type and side, taken in one way.

    Raises
    ------
    InvalidOptionError
        If no point has a time, or they are of more than one device.
    """
    first = points[0]
    timed = sorted((point for point in points if point.ok), key=lambda point: point.task.size)
    what = f"{first.task.workload} {first.task.dtype} on the {first.task.on.upper()}"
    if not timed:
        raise InvalidOptionError(
            f"no size of {what} could be timed: {first.error}; try other sizes"
        )
    # A recording and a sweep put together may hold two GPUs, and their mean is nobody's time.
    devices = {device_label(point.device_name, point.source) for point in timed}
    if len(devices) > 1:
        raise InvalidOptionError(
            f"the times of {what} are of several devices ({', '.join(sorted(devices))}); "
            "keep the points of one of them"
        )
    made = Curve(
        on=first.task.on,
        sizes=tuple(point.task.size for point in timed),
        median_s=tuple(point.median_s for point in timed),
        low_s=tuple(point.low_s for point in timed),
        high_s=tuple(point.high_s for point in timed),
        source=timed[0].source,
        device_name=timed[0].device_name,
        how=_how(first.task),
        n_threads=first.task.n_threads,
        missing=tuple((point.task.size, point.error) for point in points if not point.ok),
    )
    return with_fit(made, first.task.workload, first.task.dtype)


def _how(task: Task) -> str:
    """Write what the defaults do not have."""
    if task.on == "cpu":
        n = task.n_threads
        return "" if n is None else "1 thread" if n == 1 else f"{n} threads"
    way = (task.method, task.cache)
    parts = [] if way == ("synchronized", "hot") else [", ".join(way)]
    parts += [] if task.transfers == "none" else [f"transfers {task.transfers}"]
    return ", ".join(parts)


def with_fit(curve: Curve, name: str, dtype: str) -> Curve:
    """Return the curve with the line through its points: over bytes, or FLOPs if closer."""
    if len(curve.sizes) < 2:  # noqa: PLR2004 # one point has no slope
        return curve
    over_bytes, over_flops = (
        _line(curve, amounts(name, curve.sizes, dtype, unit), unit) for unit in ("B", "FLOP")
    )
    if over_flops is None or over_bytes is None:  # what only moves or compares has no FLOPs
        return replace(curve, fit=over_bytes or over_flops)
    # Most workloads grow with both in proportion, and there rounding must not choose.
    closer = over_flops.typical < _CLEARLY * over_bytes.typical
    return replace(curve, fit=over_flops if closer else over_bytes)


def _line(curve: Curve, counted: Array, unit: str) -> Fit | None:
    return fit_line(counted, curve.median_s, unit) if counted.any() else None


def amounts(name: str, sizes: Iterable[int], dtype: str, unit: str) -> Array:
    """Return what a line is drawn over: FLOPs or bytes of a workload at some sizes."""
    offered = workload(name)
    count = offered.flops if unit == "FLOP" else lambda size: offered.bytes(size, dtype)
    return np.array([count(size) for size in sizes], dtype=np.float64)
