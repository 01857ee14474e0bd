"""Draw a roofline: one roof with a band for all kinds of evidence, and points below it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np
from numpy.typing import NDArray

from gpulab.core.errors import InvalidOptionError
from gpulab.core.foreign_text import one_line
from gpulab.core.requirements import FLAG, instance_of
from gpulab.core.units import counted, format_bytes, format_rate, format_ratio, format_time
from gpulab.figures import (
    INK,
    MUTED,
    Figure,
    FigureOptions,
    Plot,
    finish,
    legend_below,
    log_axis,
    look_of,
    looks,
    marks,
    name_line,
    name_point,
    name_slope,
    need,
    source_of,
)
from gpulab.gpus import Roof
from gpulab.roofline import Chart
from gpulab.views.plots._draw import show, typed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_CHART = instance_of(Chart, "a chart, such as roofline.chart() returns")
_NO_FLOPS = "none of the points computes anything, so none has an intensity; draw gaps() instead"
Numbers: TypeAlias = NDArray[np.float64]

_TERA = 1e12
_NEAR = 0.25  # difference of logarithms: points so near share one label
_HEADROOM = 1.5  # factor above what is highest
_MOST_NAMES = 3
_BOUNDS = {"compute": "s", "memory": "o", "L2": "^", "launch": "D"}
_MODELS = ("plain", "refined")
_HEIGHT_IN = 5.6
_GAPS_ROW_IN = 0.2  # so that all 29 operations are seen at once
_BAND = 1.25  # times; a prediction in this band is right within a quarter
_ROW_SHARE = 0.18  # of a row, from its middle to each model


@dataclass(frozen=True, slots=True)
class _Roofline(Plot):
    record: Chart
    names: bool

    def __post_init__(self) -> None:
        _CHART.check(record=self.record)
        FLAG.check(names=self.names)
        if self.table.empty:
            raise InvalidOptionError(_NO_FLOPS)

    @property
    def table(self) -> "pd.DataFrame":
        """The points that compute something; others have no intensity."""
        return self.record.table[self.record.table["flops"] > 0]

    @property
    def title(self) -> str:
        reached = self.table.dropna(subset="flops_per_s")
        if reached.empty:
            return "What these points can reach"
        best = reached.nlargest(1, "flops_per_s").iloc[0]
        peaks = [
            roof.peak(name) for roof, name in _known(self.record) if name == best["arithmetic"]
        ]
        rate = f"{format_ratio(best['flops_per_s'] / _TERA)} TFLOP/s"
        share = f", {100 * best['flops_per_s'] / max(peaks):.0f} % of the peak" if peaks else ""
        return f"The most is reached by {_point(best)}: {rate}{share}"

    @property
    def words(self) -> str:
        table = self.table
        over = table["measured_s"] / table["refined_s"]
        # Half and twice the prediction are equally far from it.
        order = over.map(math.log).abs().sort_values().index
        near, far = (table.loc[order[position]] for position in (0, -1))
        reached = table["flops_per_s"] / _TERA
        return (
            f"{counted(len(table), 'point')} of "
            f"{counted(table['workload'].nunique(), 'operation')}, from "
            f"{format_ratio(reached.min())} to {format_ratio(reached.max())} "
            f"TFLOP/s.\nNearest to its prediction: {_point(near)}, "
            f"{over[order[0]]:.2f} times the predicted time; farthest: {_point(far)}, "
            f"{format_ratio(over[order[-1]])} times.\n"
            f"Roofs: {', '.join(self.record.evidence) or 'unknown'}."
        )

    height_in = _HEIGHT_IN

    def draw(self, ax: "Axes") -> "Axes":
        record, table = self.record, self.table
        ends = np.array([table["intensity"].min() / 2, table["intensity"].max() * 2])
        # Before anything is drawn: names at lines depend on the limits.
        ax.set(xscale="log", yscale="log", xlim=ends, ylim=_heights(record, table, ends[1]))
        _draw_roofs(ax, record, ends)
        if record.ceilings.measured is not None:
            _draw_cache_and_floor(ax, record.ceilings.measured, table, ends)
        _draw_points(ax, table)
        if self.names:
            _write_names(ax, table)
        log_axis(ax, "x")
        log_axis(ax, "y")
        ax.grid(visible=True)
        legend_below(ax)
        x_label, y_label = "arithmetic intensity (FLOP/byte)", "reached (TFLOP/s)"
        return finish(ax, "Roofline chart", x_label, y_label, legend=False)


def _point(row: "pd.Series[Any]") -> str:
    return f"{one_line(str(row['workload']))} at {row['size']:,}"


@typed
def roofline(
    record: Chart,
    ax: "Axes | None" = None,
    *,
    names: bool = True,
    **figure: Unpack[FigureOptions],
) -> "Axes | Figure":
    """Draw the FLOP/s that workloads reached over arithmetic intensity, below the GPU's roofs.

    Work without arithmetic has no intensity and is left out; :func:`gaps` shows it. The floor is
    drawn only if a point is small enough to be limited by it.

    Parameters
    ----------
    record
        From :func:`gpulab.roofline.chart`.
    ax
        Axes to draw on. A filled marker is a measured time, and its shape shows what should limit
        it. The line from it leads to the prediction of the refined model.
    names
        Whether to write the name of each workload at its largest point.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab import plots
    >>> recorded = gpulab.recordings.load("h200-sxm-2026-11")
    >>> chart = gpulab.roofline.chart(recorded, gpulab.roofline.ceilings("H200"))
    >>> plots.roofline(chart, title="What an H200 reached").title.partition(" (")[0]
    'What an H200 reached'
    """
    return show(_Roofline(record, names), ax, figure)


def _heights(record: Chart, table: "pd.DataFrame", last: float) -> tuple[float, float]:
    """Return limits of the y axis that include all points, and the roofs at the right end."""
    predicted = table["flops"] / table["refined_s"]
    reached = table["flops_per_s"].fillna(predicted)
    roofs = [roof.attainable(last, name) for roof, name in _known(record)]
    low, high = min(reached.min(), predicted.min()), max(reached.max(), predicted.max(), *roofs, 0)
    return low / 2 / _TERA, _HEADROOM * high / _TERA


def _known(record: Chart) -> list[tuple[Roof, str]]:
    """Return all pairs of a roof and a type that the chart uses and the roof has a peak for."""
    return [
        (roof, name)
        for roof in record.ceilings.roofs
        for name in record.arithmetics
        if name in roof.peak_flops_per_s
    ]


def _draw_roofs(ax: "Axes", record: Chart, ends: Numbers) -> None:
    """Draw each type's roof once: a line at the highest, and a band over all kinds of evidence."""
    known = _known(record)
    names = sorted({name for _, name in known}, key=lambda name: -_peaks(known, name)[1])
    for index, name in enumerate(names):
        roofs = [roof for roof, other in known if other == name]
        # All types have the same slope, the bandwidth: it is drawn once, for the highest peak.
        least = ends[0] if index == 0 else min(roof.ridge(name) for roof in roofs)
        ridges = [np.clip(roof.ridge(name), *ends) for roof in roofs]
        x = np.unique(
            [min(least, ends[1]), *(ridge for ridge in ridges if ridge > least), ends[1]]
        )
        heights = np.array([[roof.attainable(at, name) for at in x] for roof in roofs]) / _TERA
        low, high = heights.min(axis=0), heights.max(axis=0)
        ax.fill_between(x, low, high, color=MUTED, alpha=0.3, linewidth=0)
        (line,) = ax.plot(x, high, color=INK, linewidth=1.8)
        peaks = _peaks(known, name)
        # A roof whose flat part is outside the picture is no limit of these points.
        if math.isclose(high[-1], peaks[1] / _TERA):
            text = f"{one_line(name)}\n{_teraflops(*peaks)}"
            name_line(ax, line, text, weight="normal")
        if index == 0:
            rates = [roof.bandwidth_bytes_per_s for roof in record.ceilings.roofs]
            name_slope(ax, line, f"memory, {_bandwidth(min(rates), max(rates))}")


def _peaks(known: list[tuple[Roof, str]], name: str) -> tuple[float, float]:
    peaks = [roof.peak(name) for roof, other in known if other == name]
    return min(peaks), max(peaks)


def _teraflops(low: float, high: float) -> str:
    """Return a rate in the unit of the axis, or the range from ``low`` to ``high``."""
    least, most = (format_ratio(rate / _TERA) for rate in (low, high))
    return f"{most} TFLOP/s" if least == most else f"{least} to {most} TFLOP/s"


def _bandwidth(low: float, high: float) -> str:
    """Return a bandwidth as text, or the range from ``low`` to ``high``."""
    least, most = (format_rate(rate, "B") for rate in (low, high))
    (number, unit), (_, unit_of_most) = least.split(), most.split()
    return most if least == most else f"{number if unit == unit_of_most else least} to {most}"


def _draw_cache_and_floor(ax: "Axes", roof: Roof, table: "pd.DataFrame", ends: Numbers) -> None:
    known = [roof.peak(name) for name in roof.peak_flops_per_s if name in set(table["arithmetic"])]
    # A slope ends at the highest peak: nothing can be above it.
    highest = max(known, default=np.inf)
    least_bytes = table["size_bytes"].min()
    slopes: list[tuple[str, float]] = []
    if roof.l2_bytes_per_s is not None:
        slopes.append((f"L2, {format_rate(roof.l2_bytes_per_s, 'B')}", roof.l2_bytes_per_s))
    if roof.floor_s is not None and least_bytes / roof.floor_s < roof.bandwidth_bytes_per_s:
        text = f"floor of {format_time(roof.floor_s)} for {format_bytes(least_bytes)}"
        slopes.append((text, least_bytes / roof.floor_s))
    for label, bytes_per_s in slopes:
        x = np.array([ends[0], min(ends[1], highest / bytes_per_s)])
        (line,) = ax.plot(x, x * bytes_per_s / _TERA, color=MUTED, linestyle=":")
        name_slope(ax, line, label)


def _draw_points(ax: "Axes", table: "pd.DataFrame") -> None:
    source = source_of(table)
    look = look_of("GPU")
    reached = table["flops_per_s"] / _TERA
    predicted = table["flops"] / table["refined_s"] / _TERA
    ax.vlines(table["intensity"], reached, predicted, color=look.colour, linewidth=1)
    ax.plot(
        table["intensity"],
        predicted,
        linestyle="none",
        marker="_",
        markersize=10,
        color=INK,
        label="prediction",
    )
    # One marker for each bound: some readers cannot tell colours apart.
    for bound, marker in _BOUNDS.items():
        part = table["bound"] == bound
        if part.any():
            signs = marks(look._replace(marker=marker), source) | {"linestyle": "none"}
            ax.plot(table["intensity"][part], reached[part], label=f"{bound}-bound", **signs)


def _write_names(ax: "Axes", table: "pd.DataFrame") -> None:
    """Write the name of each workload at its largest point."""
    largest = table.loc[table.groupby("workload", sort=False)["size"].idxmax()]
    ordered = largest.sort_values("intensity")
    steps = np.diff(np.log(ordered["intensity"]), prepend=-np.inf)
    groups = np.cumsum(steps > _NEAR)
    for _, part in ordered.groupby(groups):
        # One name for points so near one another that several would not fit.
        point = part.iloc[int(np.argmin(part["flops_per_s"].fillna(0.0)))]
        height = point["flops_per_s"] if point["flops_per_s"] > 0 else _predicted(point)
        name_point(ax, _some(list(part["workload"])), (point["intensity"], height / _TERA))


def _predicted(row: "pd.Series[Any]") -> float:
    return float(row["flops"] / row["refined_s"])


def _some(names: list[str]) -> str:
    """Return up to three names, and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} +{len(names) - _MOST_NAMES}"


@dataclass(frozen=True, slots=True)
class _Gaps(Plot):
    record: "pd.DataFrame"

    def __post_init__(self) -> None:
        need(self.record, ("workload", "plain_ratio", "refined_ratio"))

    @property
    def title(self) -> str:
        n_near = {
            model: int(self.record[f"{model}_ratio"].between(1 / _BAND, _BAND).sum())
            for model in _MODELS
        }
        refined, plain = n_near["refined"], n_near["plain"]
        return (
            f"The refined model is right within a quarter for {refined} of {len(self.record)}, "
            f"the plain one for {plain}"
        )

    @property
    def words(self) -> str:
        sentences = []
        for model in _MODELS:
            ratios = self.record[f"{model}_ratio"]
            least, most, median = map(format_ratio, (ratios.min(), ratios.max(), ratios.median()))
            sentences.append(f"{model} prediction: {least} to {most} times, median {median}")
        return f"Over the {'; over the '.join(sentences)}."

    @property
    def height_in(self) -> float:
        return 1.6 + _GAPS_ROW_IN * self.record["workload"].nunique()

    def draw(self, ax: "Axes") -> "Axes":
        rows = list(dict.fromkeys(self.record["workload"]))
        heights = self.record["workload"].map(rows.index)
        ax.axvspan(1 / _BAND, _BAND, color=MUTED, alpha=0.2, label="within a quarter")
        ax.axvline(1, color=MUTED, linewidth=1.2)
        for model, look, side in zip(_MODELS, looks(), (1, -1), strict=False):
            ax.plot(
                self.record[f"{model}_ratio"],
                heights - side * _ROW_SHARE,
                markersize=5,
                label=f"over the {model} prediction",
                **marks(look, source_of(self.record)) | {"linestyle": "none"},
            )
        ax.set_yticks(range(len(rows)), [one_line(str(row)) for row in rows])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.grid(visible=True, axis="x")
        log_axis(ax, "x")
        legend_below(ax)
        return finish(ax, "Dot plot", "measured time over predicted time", "", legend=False)


@typed
def gaps(
    record: "pd.DataFrame", ax: "Axes | None" = None, **figure: Unpack[FigureOptions]
) -> "Axes | Figure":
    """Draw the ratio of measured to predicted time for both models, one row per workload.

    Parameters
    ----------
    record
        From :func:`gpulab.roofline.table`; several sizes of a workload share its row.
    ax
        Axes to draw on. The band contains predictions that are right within a quarter.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpulab import plots
    >>> frame = pd.DataFrame({"workload": ["add"], "plain_ratio": [1.5], "refined_ratio": [1.1]})
    >>> plots.gaps(frame, source="virtual").title
    'The refined model is right within a quarter for 1 of 1, the plain one for 0 (virtual)'
    """
    return show(_Gaps(record), ax, figure)
