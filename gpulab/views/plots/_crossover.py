"""Draw a crossover: both curves with intervals, their fits, and the size where they cross."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np

from gpulab.core.requirements import FLAG, instance_of
from gpulab.figures import (
    INK,
    MUTED,
    Figure,
    FigureOptions,
    Look,
    Plot,
    finish,
    log_axis,
    look_of,
    marks,
    name_point,
    size_ticks,
    unit_of,
)
from gpulab.roofline.scaling import Crossover, Curve
from gpulab.views.plots._draw import show, typed
from gpulab.workloads import workload

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_N_ON_LINE = 100
_PALE = 0.2
_HEIGHT_IN = 4.8
# The CPU, the GPU with transfers, and the GPU without: the last two differ by their markers.
_LOOKS = (look_of("CPU"), look_of("GPU"), look_of("GPU")._replace(marker="^"))


_CROSSOVER = instance_of(Crossover, "a crossover, such as gpulab.crossover() returns")


@dataclass(frozen=True, slots=True)
class _Crossover(Plot):
    record: Crossover
    lines: bool

    def __post_init__(self) -> None:
        _CROSSOVER.check(record=self.record)
        FLAG.check(lines=self.lines)

    @property
    def title(self) -> str:
        record, crossing = self.record, self.record.crossing
        what = f"{record.workload} {record.dtype}"
        if crossing.kind == "once":
            return f"{what}: from {str(crossing).partition(' [')[0]} on the GPU is faster"
        findings = {
            "always": "the GPU is faster at every size",
            "never": "the CPU is faster at every size",
            "several": f"the curves cross {len(crossing.sizes)} times",
        }
        return f"{what}: {findings.get(crossing.kind, 'no size from which the GPU is faster')}"

    @property
    def words(self) -> str:
        sentences = [f"Where the GPU gets ahead of the CPU: {self.record}."]
        if self.lines:
            sentences.append("Dotted lines are the fits of a fixed cost and a slope.")
        sentences += [f"Doubtful: {finding}." for finding in self.record.findings]
        return "\n".join(sentences)

    height_in = _HEIGHT_IN

    def draw(self, ax: "Axes") -> "Axes":
        record = self.record
        curves = [record.cpu, record.gpu]
        if record.transfers != "none":
            curves.append(record.bare)
        scale, unit = unit_of([time_s for curve in curves for time_s in curve.median_s])
        for curve, look in zip(curves, _LOOKS, strict=False):
            _draw_curve(ax, curve, look, scale)
            if self.lines and curve.fit is not None:
                _draw_line(ax, record, curve, look, scale)
        _mark(ax, record, scale)
        log_axis(ax, "x")
        log_axis(ax, "y")
        size_ticks(ax, [size for curve in curves for size in curve.sizes])
        ax.grid(visible=True)
        x_label = f"size ({workload(record.workload).size_is})"
        names = _names(record, curves)
        return finish(ax, "Line chart", x_label, f"time per call ({unit})", names=names)


@typed
def crossover(
    record: Crossover,
    ax: "Axes | None" = None,
    *,
    lines: bool = True,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw the times of CPU and GPU over the size, both axes logarithmic.

    Bands are 95 % intervals; after a precise measurement they are narrower than the line. The
    crossing of the measured curves is marked, with its interval. Dotted lines are the fits of a
    fixed cost and a slope, which may cross elsewhere.

    Parameters
    ----------
    record
        From :func:`gpulab.crossover`.
    ax
        Axes to draw on. None: return a figure.
    lines
        Whether to draw the fits.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab import plots
    >>> found = gpulab.crossover("matmul", source="h200-sxm-2026-11")
    >>> plots.crossover(found).title.partition(" (")[0]
    'matmul float32: from n = 178 on the GPU is faster'
    """
    plot = _Crossover(record, lines)
    return show(plot, ax, {"source": record.origin, **figure})


def _names(record: Crossover, curves: list[Curve]) -> dict[str, str]:
    """Return short names for the lines, as the title has the devices; the crossing has none."""
    copies = "" if record.transfers == "none" else f", copies {record.transfers}"
    short = ("CPU", f"GPU{copies}", "GPU alone")
    named = {curve.name: name for curve, name in zip(curves, short, strict=False)}
    return {f"crossing: {record.crossing}": "", **named}


def _draw_curve(ax: "Axes", curve: Curve, look: Look, scale: float) -> None:
    middle, low, high = (
        np.array(times_s) / scale for times_s in (curve.median_s, curve.low_s, curve.high_s)
    )
    ax.fill_between(curve.sizes, low, high, color=look.colour, alpha=_PALE, linewidth=0)
    ax.plot(
        curve.sizes,
        middle,
        label=curve.name,
        **marks(look, curve.source),
    )


def _draw_line(ax: "Axes", record: Crossover, curve: Curve, look: Look, scale: float) -> None:
    ends = min(curve.sizes), max(curve.sizes)
    sizes = sorted({round(size) for size in np.geomspace(*ends, _N_ON_LINE)})
    times_s, _ = record.line(curve, sizes)
    ax.plot(sizes, times_s / scale, color=look.colour, linestyle=":", linewidth=1.2)


def _mark(ax: "Axes", record: Crossover, scale: float) -> None:
    """Mark the crossing with its interval, if there is exactly one."""
    crossing = record.crossing
    if crossing.size is None or crossing.low is None or crossing.high is None:
        return
    # An open interval ends at infinity or 0, so the band ends at the measured sizes.
    low, high = max(crossing.low, crossing.first), min(crossing.high, crossing.last)
    ax.axvspan(low, high, color=MUTED, alpha=_PALE, linewidth=0)
    ax.axvline(crossing.size, color=MUTED, linewidth=1)
    # Straight between points on logarithmic axes, as the curve is drawn.
    sizes, times_s = np.log(record.cpu.sizes), np.log(record.cpu.median_s)
    height = math.exp(np.interp(math.log(crossing.size), sizes, times_s)) / scale
    name = name_point(ax, str(crossing).partition(" [")[0], (crossing.size, height))
    name.set_fontweight("bold")
    ax.plot(
        crossing.size,
        height,
        linestyle="none",
        marker="o",
        markersize=10,
        markerfacecolor="none",
        markeredgecolor=INK,
        label=f"crossing: {crossing}",
    )
