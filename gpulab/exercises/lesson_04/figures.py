"""Figures of the lesson on warm-up: loops, their histograms, and first uses beside second.

The names that begin with ``draw_`` are one call of a cell: title and text alternative are computed
from what is drawn.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpulab.figures import (
    INK,
    MUTED,
    WIDTH_IN,
    Figure,
    finish,
    legend_below,
    log_axis,
    looks,
    marks,
    need,
    source_of,
    unit_of,
)
from gpulab.units import counted, format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.live import Series


_MANY = 60  # more markers than that run into each other
_WIDE = 4.0  # largest over smallest; a log axis of less has hardly a tick
_COLUMNS = ("iteration", "duration_s", "series")
_RELATIVE = "time per call (times the shortest)"


def iterations(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    steady: "Mapping[str, int] | None" = None,
    relative: bool = False,
) -> "Axes":
    """Draw how long each iteration took, one line a series; on a log axis if they differ much.

    Parameters
    ----------
    record
        Columns ``iteration``, ``duration_s`` and ``series``.
    ax
        Axes to draw on.
    steady
        Series to the number of its iterations that are left out; the next one is ringed.
    relative
        Whether each series is divided by its own shortest call.
    """
    need(record, _COLUMNS)
    scale, unit = unit_of(record["duration_s"])
    for (name, part), look in zip(record.groupby("series", sort=False), looks(), strict=False):
        number, times = part["iteration"].to_numpy(), part["duration_s"].to_numpy()
        heights = times / (times.min() if relative else scale)
        ax.plot(
            number,
            heights,
            linewidth=1.2,
            markersize=4,
            label=str(name),
            **marks(look, source_of(part)) | ({} if len(part) <= _MANY else {"marker": ""}),
        )
        start = (steady or {}).get(str(name), len(part))
        if start < len(part):
            ax.plot(number[start], heights[start], "o", mfc="none", mec=INK, markersize=12)
    low, high = ax.dataLim.intervaly
    if high > _WIDE * low:
        log_axis(ax, "y")
    else:
        ax.margins(y=0.2)  # room for the legend
    ax.grid(visible=True, axis="y")
    label = _RELATIVE if relative else f"time per call ({unit})"
    return finish(ax, "Line chart", "iteration, from 0", label)


def histograms(record: "pd.DataFrame", ax: "Axes", *, n_bins: int = 40) -> "Axes":
    """Count the calls of each series by their length, divided by its shortest.

    Parameters
    ----------
    record
        Columns ``iteration``, ``duration_s`` and ``series``.
    ax
        Axes to draw on.
    n_bins
        Number of bins over all series.
    """
    need(record, _COLUMNS)
    times = record.groupby("series", sort=False)["duration_s"]
    relative = record["duration_s"] / times.transform("min")
    edges = np.histogram_bin_edges(relative, bins=n_bins)
    for (name, part), look in zip(relative.groupby(record["series"]), looks(), strict=False):
        counts, _ = np.histogram(part, bins=edges)
        ax.stairs(
            counts,
            edges,
            color=look.colour,
            linestyle=marks(look, source_of(record))["linestyle"],
            linewidth=2,
            label=str(name),
        )
    return finish(ax, "Histogram", _RELATIVE, "number of calls")


def first_uses(record: "pd.DataFrame", ax: "Axes") -> "Axes":
    """Draw one row a cost: the first use and the second, joined by a line, on a log axis.

    Parameters
    ----------
    record
        Columns ``what``, ``first_s`` and ``second_s``.
    ax
        Axes to draw on.
    """
    need(record, ("what", "first_s", "second_s"))
    scale, unit = unit_of([*record["first_s"], *record["second_s"]])
    rows = np.arange(len(record))
    first, second = record["first_s"] / scale, record["second_s"] / scale
    ax.hlines(rows, second, first, color=MUTED, linewidth=1, zorder=1)
    source = source_of(record)
    for values, look, label in zip(
        (first, second), looks(), ("first use", "second use"), strict=False
    ):
        ax.plot(values, rows, label=label, **marks(look, source) | {"linestyle": "none"})
    ax.set_yticks(rows, list(record["what"]))
    ax.set_ylim(len(record) - 0.5, -0.5)
    log_axis(ax, "x")
    ax.grid(visible=True, axis="x")
    legend_below(ax)
    return finish(ax, "Dot plot", f"time per call ({unit})", "", legend=False)


def draw_iterations(
    loops: "Mapping[str, Sequence[float]] | pd.DataFrame",
    *,
    source: object = None,
    relative: bool = False,
) -> Figure:
    """Return the figure of :func:`iterations` for loops that were timed call by call.

    Parameters
    ----------
    loops
        Seconds of each call by the name of the loop, or a frame with the columns ``iteration``,
        ``duration_s`` and ``series``.
    source
        Where the times come from; None: the GPU in use.
    relative
        Whether each loop is divided by its own shortest call.
    """
    from gpulab import device
    from gpulab.plots import draw

    record = _as_frame(loops)
    return draw(
        iterations,
        record,
        title="Each call in the order taken",
        alt="\n".join(_say_loop(name, part["duration_s"]) for name, part in _parts(record)),
        ax_size=(WIDTH_IN, 4.2),
        source=source or device.current(),
        relative=relative,
    )


def draw_histograms(record: "pd.DataFrame", *, source: object = None) -> Figure:
    """Return the figure of :func:`histograms` for the same frame as :func:`draw_iterations`."""
    from gpulab import device
    from gpulab.plots import draw

    return draw(
        histograms,
        record,
        title="How many calls took how long",
        alt="\n".join(
            f"{name}: {counted(len(part), 'call')} from {_range(part['duration_s'])}."
            for name, part in _parts(record)
        ),
        ax_size=(WIDTH_IN, 3.4),
        source=source or device.current(),
    )


def draw_first_uses() -> "Series":
    """Time first and second uses where nobody has used the GPU, and draw them as they come."""
    from gpulab import device, live
    from gpulab.exercises.lesson_04 import first_use

    return live.series(
        first_use.measured(),
        first_uses,
        n_expected=len(first_use.NAMES),
        title="First use and second use",
        alt="One row for each cost: the first use and the second, on a logarithmic axis.",
        source=device.current(),
    )


def _as_frame(loops: "Mapping[str, Sequence[float]] | pd.DataFrame") -> "pd.DataFrame":
    import pandas as pd

    if isinstance(loops, pd.DataFrame):
        need(loops, _COLUMNS)
        return loops
    rows = [(i, s, name) for name, times_s in loops.items() for i, s in enumerate(times_s)]
    return pd.DataFrame(rows, columns=list(_COLUMNS))


def _parts(record: "pd.DataFrame") -> "list[tuple[str, pd.DataFrame]]":
    need(record, _COLUMNS)
    return [(str(name), part) for name, part in record.groupby("series", sort=False)]


def _say_loop(name: str, times_s: "pd.Series[float]") -> str:
    first_s, last_s = times_s.iloc[0], times_s.iloc[-1]
    return (
        f"{name}: {counted(len(times_s), 'call')} from {_range(times_s)}; the first took "
        f"{format_time(first_s)}, the last {format_time(last_s)}."
    )


def _range(times_s: "pd.Series[float]") -> str:
    return f"{format_time(times_s.min())} to {format_time(times_s.max())}"
