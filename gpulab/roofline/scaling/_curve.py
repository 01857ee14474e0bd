"""The times of one workload on one device at many sizes, with a line fitted to them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpulab.core.errors import InvalidOptionError
from gpulab.core.requirements import Requirement, items_of
from gpulab.core.units import counted
from gpulab.gpus.provenance import device_label
from gpulab.roofline.scaling._latency_bandwidth_fit import Array, Fit, fit_line
from gpulab.workloads import workload
from gpulab.workloads.sweeps import Point, Task

# FLOPs replace bytes only if their misfit is below this share of the bytes' misfit. For workloads
# in which both grow in proportion, rounding errors would otherwise choose.
_CLEARLY = 0.9
# An interval that reaches zero has no logarithm; it starts at this share of the median instead.
_SMALLEST_SHARE = 1e-6


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of CPU or GPU at many sizes, each with its 95 % interval.

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
        Name of the GPU or the CPU.
    how
        How the times were taken, e.g. ``"2 threads"`` or ``"transfers both"``.
    n_threads
        Number of CPU threads; None on the GPU, and for PyTorch's own setting.
    missing
        Sizes without a time, each with the reason.
    waits
        Sizes whose times include waits for a core of the host, each with the seconds of one wait.
        They are known only if the CPU was measured now, on Linux.
    fit
        The line fitted to the points; None with fewer than two of them.

    Examples
    --------
    >>> from gpulab.roofline.scaling import Curve
    >>> times_s = (1e-6, 2e-6)
    >>> curve = Curve("gpu", (64, 128), times_s, times_s, times_s, "virtual", "NVIDIA H200")
    >>> curve.name
    'GPU: virtual NVIDIA H200'
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
        """Slope of the line, in seconds per FLOP or byte; None without a line."""
        return None if self.fit is None else self.fit.slope_s

    @property
    def name(self) -> str:
        """Label for plots: side, device and source, so that a virtual GPU is marked as one."""
        how = f", {self.how}" if self.how else ""
        return f"{self.on.upper()}: {device_label(self.device_name, self.source)}{how}"

    def at(self, sizes: Iterable[int]) -> tuple[Array, Array]:
        """Return natural logarithms at some sizes: of the times, and the reach of their intervals.

        The reach has two rows: how far the interval goes down and how far it goes up.
        """
        one_of_sizes = Requirement(f"one of {self.sizes}", lambda size: size in self.sizes)
        index = [self.sizes.index(size) for size in items_of("sizes", sizes, one_of_sizes)]
        # Logarithms, because over six decades the curves are nearly straight only in logarithms.
        middle, low, high = (
            np.array(times)[index] for times in (self.median_s, self.low_s, self.high_s)
        )
        low = np.maximum(low, _SMALLEST_SHARE * middle)
        return np.log(middle), np.stack([np.log(middle / low), np.log(high / middle)])

    def __str__(self) -> str:
        return f"{self.name}: {self.fit or 'too few points for a line'}"

    __repr__ = __str__


def curve_of(points: Sequence[Point]) -> Curve:
    """Return the curve of points that differ in their size only.

    Raises `InvalidOptionError` if no point has a time, or they are of more than one device.
    """
    first = points[0]
    timed = sorted((point for point in points if point.ok), key=lambda point: point.task.size)
    name = f"{first.task.workload} {first.task.dtype} on the {first.task.on.upper()}"
    if not timed:
        raise InvalidOptionError(
            f"no size of {name} could be timed: {first.error}; try other sizes"
        )
    # A recording and a sweep together may contain two GPUs, and a mean over both means nothing.
    devices = {device_label(point.device_name, point.source) for point in timed}
    if len(devices) > 1:
        raise InvalidOptionError(
            f"the times of {name} come from several devices ({', '.join(sorted(devices))}); "
            "keep the points of one of them"
        )
    curve = Curve(
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
    return with_fit(curve, first.task.workload, first.task.dtype)


def _how(task: Task) -> str:
    """Return how the task differs from the defaults, as text; empty if it does not."""
    if task.on == "cpu":
        return "" if task.n_threads is None else counted(task.n_threads, "thread")
    way = (task.method, task.cache)
    parts = [] if way == ("synchronized", "hot") else [", ".join(way)]
    parts += [] if task.transfers == "none" else [f"transfers {task.transfers}"]
    return ", ".join(parts)


def with_fit(curve: Curve, name: str, dtype: str) -> Curve:
    """Return the curve with a line fitted over bytes, or over FLOPs if that is clearly closer."""
    if len(curve.sizes) < 2:  # noqa: PLR2004 # one point has no slope
        return curve
    # Which of the two bounds the workload is not assumed: the points decide.
    over_bytes, over_flops = (
        _line(curve, amounts(name, curve.sizes, dtype, unit), unit) for unit in ("B", "FLOP")
    )
    if over_flops is None or over_bytes is None:  # copies and comparisons have no FLOPs
        return replace(curve, fit=over_bytes or over_flops)
    closer = over_flops.typical < _CLEARLY * over_bytes.typical
    return replace(curve, fit=over_flops if closer else over_bytes)


def _line(curve: Curve, n_units: Array, unit: str) -> Fit | None:
    return fit_line(n_units, curve.median_s, unit) if n_units.any() else None


def amounts(name: str, sizes: Iterable[int], dtype: str, unit: str) -> Array:
    """Return the FLOPs or bytes of a workload at some sizes, over which a line is fitted."""
    offered = workload(name)
    count = offered.flops if unit == "FLOP" else lambda size: offered.bytes(size, dtype)
    return np.array([count(size) for size in sizes], dtype=np.float64)
