"""Figures of lesson 04: samples in the order taken, histograms, and first against second use.

A cell calls one of the ``draw_`` functions, which return a figure with its title and its text
alternative.
"""

from typing import TYPE_CHECKING

import numpy as np

from gpulab.core.units import counted, format_time
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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd
    from matplotlib.axes import Axes

    from gpulab.views.live import Series


_MANY = 60  # more markers than this would overlap
_WIDE = 4.0  # largest over smallest value; a log axis of a smaller range has hardly any ticks
_COLUMNS = ("iteration", "duration_s", "series")
_RELATIVE = "time per call (times the shortest)"


def iterations(
    record: "pd.DataFrame",
    ax: "Axes",
    *,
    steady: "Mapping[str, int] | None" = None,
    relative: bool = False,
) -> "Axes":
    """Plot the time of each iteration, one line per series; on a log axis if they differ much.

    Parameters
    ----------
    record
        Table with columns ``iteration``, ``duration_s`` and ``series``.
    ax
        The axes to plot on.
    steady
        Number of iterations to leave out, by series. A ring marks the first that counts.
    relative
        Whether to divide each series by its shortest call.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> from gpulab.exercises.lesson_04 import traces
    >>> ax = iterations(traces.two_runs(), Canvas().subplots())
    >>> ax.get_ylabel()
    'time per call (µs)'
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
    """Plot a histogram of each series, with times divided by its shortest call.

    Parameters
    ----------
    record
        Table with columns ``iteration``, ``duration_s`` and ``series``.
    ax
        The axes to plot on.
    n_bins
        Number of bins, which all series share.

    Examples
    --------
    >>> from matplotlib.figure import Figure as Canvas
    >>> from gpulab.exercises.lesson_04 import traces
    >>> ax = histograms(traces.two_runs(), Canvas().subplots())
    >>> ax.get_xlabel()
    'time per call (times the shortest)'
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
    """Plot the first and the second use of each cost, joined by a line, on a log axis.

    Parameters
    ----------
    record
        Table with columns ``what``, ``first_s`` and ``second_s``.
    ax
        The axes to plot on.

    Examples
    --------
    >>> import pandas as pd
    >>> from matplotlib.figure import Figure as Canvas
    >>> record = pd.DataFrame({"what": ["context"], "first_s": [0.3], "second_s": [4e-6]})
    >>> ax = first_uses(record, Canvas().subplots())
    >>> ax.get_xlabel()
    'time per call (ms)'
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
    """Return a figure of samples in the order taken, one line per loop.

    Parameters
    ----------
    loops
        Seconds of each call, by the name of the loop; or a table with columns ``iteration``,
        ``duration_s`` and ``series``.
    source
        Where the times come from; by default the GPU in use.
    relative
        Whether to divide each loop by its shortest call.

    Examples
    --------
    >>> from gpulab.exercises import lesson_04 as lab
    >>> figure = lab.draw_iterations({"matmul": [9e-3, 2e-5, 2e-5]}, source="made up")
    >>> figure.caption
    'matmul: 3 calls from 20.0 µs to 9.00 ms; the first took 9.00 ms, the last 20.0 µs.'
    """
    from gpulab import device
    from gpulab.views.plots import draw

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
    """Return a figure of histograms, one per series, for a table of samples.

    Parameters
    ----------
    record
        Table with columns ``iteration``, ``duration_s`` and ``series``.
    source
        Where the times come from; by default the GPU in use.

    Examples
    --------
    >>> from gpulab.exercises import lesson_04 as lab
    >>> figure = lab.draw_histograms(lab.traces.two_runs(), source="made up")
    >>> figure.caption.partition(" from")[0]
    'run a: 60 calls'
    """
    from gpulab import device
    from gpulab.views.plots import draw

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
    """Measure first and second uses on a fresh GPU, and show a figure that grows meanwhile.

    Examples
    --------
    >>> import gpulab
    >>> from gpulab.exercises import lesson_04 as lab
    >>> with gpulab.virtual_gpu("H200"):
    ...     lab.draw_first_uses()
    7 of 7 results
    """
    from gpulab import device
    from gpulab.exercises.lesson_04 import first_use
    from gpulab.views import live

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
