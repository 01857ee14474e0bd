"""The roofline as a figure: three roofs drawn apart, below them what was predicted and seen."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpulab.errors import InvalidOptionError
from gpulab.figures import COLOURS, check_axes, finish, log_axis, need
from gpulab.foreign_text import one_line
from gpulab.gpus import DATA_SHEET, LIVE, MEASURED, Roof
from gpulab.plots._draw import Words, one_call
from gpulab.requirements import FLAG, instance_of
from gpulab.roofline import Chart
from gpulab.units import format_bytes, format_time

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


_CHART = instance_of(Chart, "a chart, such as roofline.chart() returns")
_NO_FLOPS = "none of the points computes anything, so none has an intensity; draw gaps() instead"
Numbers = NDArray[np.float64]

_TERA = 1e12
_GREY = "#595959"
# Colour, dashes and width of each roof: where two coincide, both can still be seen.
_ROOFS = {
    DATA_SHEET: (_GREY, "-", 3.0),
    LIVE: (COLOURS[4], "--", 1.8),
    MEASURED: (COLOURS[2], "-", 1.4),
}
_NEAR = 0.25  # of logarithms: closer names would lie on each other
_ROOM = 100.0  # above the highest roof, for names
_MOST_NAMES = 3
_BOUNDS = {"compute": "s", "memory": "o", "L2": "^", "launch": "D"}
_MODELS = {"plain": (COLOURS[1], "s", 0.18), "refined": (COLOURS[0], "o", -0.18)}


def _chart_words(record: Chart, **_: object) -> Words:
    _CHART.check(record=record)
    table = record.table[record.table["flops"] > 0]
    if table.empty:
        raise InvalidOptionError(_NO_FLOPS)
    over = (table["measured_s"] / table["refined_s"]).sort_values()
    near, far = (table.loc[over.index[place]] for place in (0, -1))
    return Words(
        "Reached and possible",
        f"{len(table)} points of {table['workload'].nunique()} operations, from "
        f"{table['flops_per_s'].min() / _TERA:.3g} to {table['flops_per_s'].max() / _TERA:.3g} "
        f"TFLOP/s. Nearest to its prediction: {_point(near)}, {over.iloc[0]:.3g} times the "
        f"predicted time; farthest: {_point(far)}, {over.iloc[-1]:.3g} times.",
        5.6,
    )


def _point(row: "pd.Series[Any]") -> str:
    return f"{one_line(str(row['workload']))} at {row['size']:,}"


def _gaps_words(record: "pd.DataFrame") -> Words:
    need(record, ("workload", "plain_ratio", "refined_ratio"))
    rows = record["workload"].nunique()
    said = [
        f"{model} prediction: {record[f'{model}_ratio'].min():.3g} to "
        f"{record[f'{model}_ratio'].max():.3g} times, median "
        f"{record[f'{model}_ratio'].median():.3g}"
        for model in _MODELS
    ]
    height_in = 1.6 + 0.28 * rows
    return Words(
        "Measured over predicted time", f"Over the {'; over the '.join(said)}.", height_in
    )


@one_call(_chart_words)
def roofline(record: Chart, ax: "Axes", *, names: bool = True) -> "Axes":
    """Draw what was reached over arithmetic intensity, below the roofs of the GPU.

    Work that computes nothing has no place on these axes; :func:`gaps` shows it, too. Where no
    point is as small as the floor, the floor is not drawn.

    Parameters
    ----------
    record
        From :func:`gpulab.roofline.chart`.
    ax
        Axes to draw on. A full sign is what was measured, its shape says what should limit it,
        and the bar from it leads to what the refined model predicts.
    names
        Whether to write the name of each workload at its largest point.
    """
    _CHART.check(record=record)
    check_axes(ax)
    FLAG.check(names=names)
    table = record.table[record.table["flops"] > 0]
    if table.empty:
        raise InvalidOptionError(_NO_FLOPS)
    ends = np.array([table["intensity"].min() / 2, table["intensity"].max() * 2])
    for roof in record.ceilings.roofs:
        _draw_roof(ax, roof, record.arithmetics, ends, record.ceilings.source)
    measured = record.ceilings.measured
    if measured is not None:
        _draw_cache_and_floor(ax, measured, table, ends, record.ceilings.source)
    _draw_points(ax, table)
    log_axis(ax, "x")
    log_axis(ax, "y")
    ax.set_xlim(*ends)
    if names and record.ceilings.roofs:
        _write_names(ax, record, table)
    ax.grid(visible=True, alpha=0.3)
    ax.legend(frameon=False, fontsize="x-small", loc="lower right", ncols=2)
    x_label, y_label = "arithmetic intensity (FLOP/byte)", "reached (TFLOP/s)"
    return finish(ax, "Roofline chart", x_label, y_label, legend=False)


def _draw_roof(
    ax: "Axes",
    roof: Roof,
    arithmetics: tuple[str, ...],
    ends: Numbers,
    source: str,
) -> None:
    colour, dashes, width = _ROOFS[roof.basis]
    known = [name for name in arithmetics if name in roof.peak_flops_per_s]
    for place, name in enumerate(sorted(known, key=roof.peak, reverse=True)):
        # The slope is the same for all types, so it is drawn once, up to the highest peak.
        least = ends[0] if place == 0 else roof.ridge(name)
        x = np.unique([least, np.clip(roof.ridge(name), *ends), ends[1]])
        y = np.array([roof.attainable(value, name) for value in x]) / _TERA
        name_of_it = _measured(source) if roof.basis == MEASURED else roof.basis
        label = name_of_it if place == 0 else None
        ax.plot(x, y, color=colour, linestyle=dashes, linewidth=width, label=label)
        if roof.basis == MEASURED:
            ax.annotate(
                name,
                (ends[1], y[-1]),
                (4, 0),
                textcoords="offset points",
                fontsize="x-small",
                va="center",
                color=colour,
                annotation_clip=False,
            )


def _draw_cache_and_floor(
    ax: "Axes",
    roof: Roof,
    table: "pd.DataFrame",
    ends: Numbers,
    source: str,
) -> None:
    colour, _, width = _ROOFS[MEASURED]
    known = [roof.peak(name) for name in roof.peak_flops_per_s if name in set(table["arithmetic"])]
    # Above the highest peak a slope would mean nothing.
    highest = max(known, default=np.inf)
    least_bytes = table["size_bytes"].min()
    slopes: list[tuple[str, float, Any]] = []
    if roof.l2_bytes_per_s is not None:
        slopes.append((f"L2, {_measured(source)}", roof.l2_bytes_per_s, (0, (5, 1, 1, 1))))
    if roof.floor_s is not None and least_bytes / roof.floor_s < roof.bandwidth_bytes_per_s:
        text = f"floor of {format_time(roof.floor_s)} for {format_bytes(least_bytes)}"
        slopes.append((text, least_bytes / roof.floor_s, ":"))
    for label, bytes_per_s, dashes in slopes:
        x = np.array([ends[0], min(ends[1], highest / bytes_per_s)])
        y = x * bytes_per_s / _TERA
        ax.plot(x, y, color=colour, linestyle=dashes, linewidth=width, label=label)


def _measured(source: str) -> str:
    """Name a measured roof; on the virtual GPU it is what its model gives."""
    return "measured on the virtual GPU" if source == "virtual" else MEASURED


def _draw_points(ax: "Axes", table: "pd.DataFrame") -> None:
    word = "virtual" if set(table["source"]) == {"virtual"} else "reached"
    reached = table["flops_per_s"] / _TERA
    predicted = table["flops"] / table["refined_s"] / _TERA
    ax.vlines(table["intensity"], reached, predicted, color=COLOURS[0], linewidth=1)
    ax.plot(
        table["intensity"],
        predicted,
        linestyle="none",
        marker="_",
        markersize=9,
        color=COLOURS[0],
        label="refined prediction",
    )
    # A sign for each bound, as colour alone would say nothing to some readers.
    for bound, marker in _BOUNDS.items():
        part = table["bound"] == bound
        if part.any():
            ax.plot(
                table["intensity"][part],
                reached[part],
                linestyle="none",
                marker=marker,
                markersize=5,
                color=COLOURS[0],
                label=f"{word}, bound by {bound}",
            )


def _write_names(ax: "Axes", record: Chart, table: "pd.DataFrame") -> None:
    """Write names upright above the roofs: most workloads keep one intensity at all sizes."""
    largest = table.loc[table.groupby("workload", sort=False)["size"].idxmax()]
    ordered = largest.sort_values("intensity")
    steps = np.diff(np.log(ordered["intensity"]), prepend=-np.inf)
    groups = np.cumsum(steps > _NEAR)
    for _, part in ordered.groupby(groups):
        intensity = part["intensity"].median()
        highest = max(
            roof.attainable(intensity, name)
            for roof in record.ceilings.roofs
            for name in record.arithmetics
            if name in roof.peak_flops_per_s
        )
        ax.annotate(
            _some(list(part["workload"])),
            (intensity, highest / _TERA),
            (0, 7),
            textcoords="offset points",
            fontsize="x-small",
            rotation="vertical",
            ha="center",
            va="bottom",
        )
    low, high = ax.get_ylim()
    ax.set_ylim(low, high * _ROOM)


def _some(names: list[str]) -> str:
    """Return as many names as there is room for, and how many more there are."""
    if len(names) <= _MOST_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:_MOST_NAMES])} +{len(names) - _MOST_NAMES}"


@one_call(_gaps_words)
def gaps(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Draw how many times longer each workload takes than either model says, a row each.

    Parameters
    ----------
    record
        From :func:`gpulab.roofline.table`; several sizes of a workload share its row.
    ax
        Axes to draw on. The band holds what is right within a quarter.
    """
    need(record, ("workload", "plain_ratio", "refined_ratio"))
    check_axes(ax)
    rows = list(dict.fromkeys(record["workload"]))
    places = record["workload"].map(rows.index)
    ax.axvspan(1 / 1.25, 1.25, color=_GREY, alpha=0.12, label="within a quarter")
    ax.axvline(1, color=_GREY, linestyle="--", linewidth=1)
    for model, (colour, marker, shift) in _MODELS.items():
        ax.plot(
            record[f"{model}_ratio"],
            places - shift,
            linestyle="none",
            marker=marker,
            markersize=4,
            alpha=0.8,
            color=colour,
            label=f"over the {model} prediction",
        )
    ax.set_yticks(range(len(rows)), [one_line(str(row)) for row in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.grid(visible=True, axis="x", alpha=0.3)
    log_axis(ax, "x")
    ax.legend(
        frameon=False, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=3
    )
    return finish(ax, "Dot plot", "measured time over predicted time", "", legend=False)
