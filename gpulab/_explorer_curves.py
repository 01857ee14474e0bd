"""What an explorer draws, marks and says of a crossover."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from gpulab._axes import COLOURS, unit_of
from gpulab._explorer_scene import Mark, Spot
from gpulab._sources import place
from gpulab.crossing import Crossover, Curve
from gpulab.crossover_figure import crossover
from gpulab.tasks import Point
from gpulab.units import format_estimate, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Limits = tuple[tuple[float, float], tuple[float, float]]


def curves_of(record: Crossover) -> tuple[Curve, ...]:
    """Return the curves in the order of the figure."""
    moved = () if record.transfers == "none" else (record.bare,)
    return (record.cpu, record.gpu, *moved)


def scale_of(record: Crossover) -> float:
    """Return the length in seconds of the unit that the figure writes times in."""
    return unit_of([time_s for curve in curves_of(record) for time_s in curve.median_s])[0]


def plot(record: Crossover, overlay: Sequence[Point], limits: Limits, ax: "Axes") -> None:
    """Draw both curves, what was measured here over them, and axes of these limits."""
    crossover(record, ax)
    scale = scale_of(record)
    for side, marker, colour in (("cpu", "o", COLOURS[3]), ("gpu", "s", COLOURS[4])):
        part = [point for point in overlay if point.task.on == side]
        if part:
            ax.plot(
                [point.task.size for point in part],
                [point.median_s / scale for point in part],
                linestyle="none",
                marker=marker,
                markersize=9,
                markerfacecolor="none",
                markeredgewidth=1.6,
                color=colour,
                label=_name(part[-1]),
            )
    ax.set_xlim(*limits[0])
    ax.set_ylim(*(time_s / scale for time_s in limits[1]))
    # Curves rise to the right, so this corner is free; "best" would jump about.
    ax.legend(fontsize="small", loc="upper left", edgecolor="none", framealpha=0.9)


def _name(point: Point) -> str:
    return f"{point.task.on.upper()} here: {place(point.device_name, point.source)}"


def marks(record: Crossover, size: int) -> Iterable[Mark]:
    """Mark the size of the slider, with the times of both sides there."""
    yield Mark(size)
    scale = scale_of(record)
    for curve in (record.cpu, record.gpu):
        time_s = at_size(curve, size)
        if time_s is not None:
            yield Mark(size, time_s / scale)


def at_size(curve: Curve, size: int) -> float | None:
    """Return the seconds of a curve at a size, straight in both logarithms; None beyond it."""
    if not curve.sizes[0] <= size <= curve.sizes[-1]:
        return None
    return math.exp(np.interp(math.log(size), np.log(curve.sizes), np.log(curve.median_s)))


def words(record: Crossover) -> Iterable[str]:
    """Say where the curves cross, where the lines do, and what to doubt."""
    found = str(record)
    yield f"Crossing: {found}." if found.startswith("n =") else f"{found[0].upper()}{found[1:]}."
    if record.predicted is not None:
        yield f"From the fitted lines alone: {record.predicted}."
    if record.is_mixed:
        yield "The two sides come from different sources: read it as an estimate."


def where(record: Crossover, size: int) -> str:
    """Say where the reader is: both times at the size, and their ratio."""
    cpu_s, gpu_s = (at_size(curve, size) for curve in (record.cpu, record.gpu))
    here = f"At n = {size:,}"
    for curve, time_s in ((record.cpu, cpu_s), (record.gpu, gpu_s)):
        if time_s is None:
            ends = f"{curve.sizes[0]:,} to {curve.sizes[-1]:,}"
            return f"{here} the {curve.on.upper()} has no time; it has some from {ends}."
    if cpu_s is None or gpu_s is None:
        return here
    copies = "" if record.transfers == "none" else f" with transfers {record.transfers}"
    ahead, times = ("GPU", cpu_s / gpu_s) if gpu_s < cpu_s else ("CPU", gpu_s / cpu_s)
    return (
        f"{here}: CPU {format_time(cpu_s)}, GPU{copies} {format_time(gpu_s)}; "
        f"the {ahead} is {times:.3g} times as fast."
    )


def spots(record: Crossover, overlay: Sequence[Point]) -> Iterable[Spot]:
    """Give every point a hint: what it is, whose, and how long it takes."""
    what, scale = f"{record.workload} {record.dtype}", scale_of(record)
    for curve in curves_of(record):
        columns = (curve.sizes, curve.median_s, curve.low_s, curve.high_s)
        for size, time_s, low_s, high_s in zip(*columns, strict=True):
            time = format_estimate(time_s, low_s, high_s)
            yield Spot(size, time_s / scale, f"{what}, n = {size:,}\n{curve.name}\n{time}")
    for point in overlay:
        time = format_estimate(point.median_s, point.low_s, point.high_s)
        hint = f"{what}, n = {point.task.size:,}\n{_name(point)}\n{time}"
        yield Spot(point.task.size, point.median_s / scale, hint)
